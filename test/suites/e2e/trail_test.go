package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/testdb"
)

// withTrail gives the bank a key of its own, and returns the public one.
func (b bank) withTrail(t *testing.T) (verifying string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "log.key")
	verifying = strings.TrimSpace(b.Must(t, "trail", "keygen", "bank.example/log", "--file", file))
	_ = os.Remove(filepath.Join(filepath.Dir(b.DSN), "trail.key")) // migrate up may have made one
	b.Set("trail.enabled", "true").Set("trail.key_file", file)
	return verifying
}

// trailHouse is a service with a trail and a book.
func trailHouse(t *testing.T, b bank) (s *running, key, verifying string) {
	t.Helper()
	verifying = b.withTrail(t)
	b.Load(t, "prices", "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom", "1,AFA,Demo Portfoy,1.25,TRY,2024-01-01")
	b.Load(t, "holdings", "CustomerNo,IMKBCode,HolderCorporationName,Units", "1002,AFA,Demo Portfoy,1000", "1001,AFA,Demo Portfoy,1000")
	b.Load(t, "accounts", "BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance", "1,1001,1,TRY,0")
	key = b.Subscribe(t, "shop")
	return b.serve(t), key, verifying
}

// postFor is post with Want-Receipt. It returns the receipt too.
func (s *running) postFor(t *testing.T, path, key, body, want string) (answer, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, s.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Ocp-Apim-Subscription-Key", key)
	r.Header.Set("Want-Receipt", want)
	got, err := do(s.client, r)
	require.NoError(t, err)
	return got, got.header.Get("Receipt")
}

// A partner gets a receipt, an auditor a proof. Both are checked without the
// database. What is altered is refused.
func TestReceiptsAndProofs(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		s, key, verifying := trailHouse(t, b)
		anywhere := bank{b.Replica(t)} // checks need nothing of the bank
		check := func(content string, key string) (int, string) {
			file := filepath.Join(t.TempDir(), "proof")
			require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
			got := anywhere.Run(t, "trail", "check", file, "--key", key)
			return got.Status, got.Out + got.Err
		}
		other := strings.TrimSpace(b.Must(t, "trail", "keygen", "other.example", "--file", filepath.Join(t.TempDir(), "other.key")))
		holds := func(content string, facts ...string) {
			status, text := check(content, verifying)
			require.Zero(t, status, text)
			for _, fact := range facts {
				require.Contains(t, text, fact)
			}
			status, text = check(content, other)
			require.Equal(t, 1, status)
			require.Contains(t, text, "the signature is not of this key")
			status, text = check(content[:100]+"A"+content[101:], verifying)
			if content[100] != 'A' {
				require.Equal(t, 1, status)
				require.Contains(t, text, "the proof does not hold")
			}
			status, _ = check(content[:len(content)/2], verifying)
			require.Equal(t, 1, status)
		}

		sold, receipt := s.postFor(t, buyFund, key, sale("sold", 1001, "10", ""), "1")
		require.Equal(t, completed, sold.body)
		id := sold.header.Get("Operation-Id")
		holds(receipt, "leaf: sale "+id, `Sale.CustomerNo: "1001"`, `Sale.Proceeds: "12.50"`, `State: "completed"`, `CallerId: "sold"`, "\nThe receipt holds: bank.example/log signed it.\n")
		holds("Receipt: "+receipt+"\r\n", "leaf: sale "+id)

		again, receipt := s.postFor(t, buyFund, key, sale("sold", 1001, "10", ""), "1")
		require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
		holds(receipt, "leaf: sale "+id)
		refused, receipt := s.postFor(t, buyFund, key, sale("refused", 1001, "99999", ""), "1")
		require.Contains(t, refused.body, "holding-insufficient")
		holds(receipt, "leaf: sale "+refused.header.Get("Operation-Id"), "holding-insufficient")
		push, receipt := s.postFor(t, addPush, key, `{"Header":{"CallerId":"push"},"Parameters":[`+validPush+`]}`, "1")
		require.Equal(t, completed, push.body)
		holds(receipt, "leaf: push "+push.header.Get("Operation-Id"))
		_, receipt = s.postFor(t, addPush, key, `{"Header":{},"Parameters":[`+strings.Replace(validPush, "{", `{"Content":"another one",`, 1)+`]}`, "1")
		holds(receipt, "leaf: push ")
		require.NotContains(t, receipt, "another one")

		for _, want := range []string{"", "0", "yes"} {
			got, receipt := s.postFor(t, buyFund, key, sale("sold", 1001, "10", ""), want)
			require.Equal(t, completed, got.body)
			require.Empty(t, receipt, want)
		}
		bad, receipt := s.postFor(t, buyFund, key, "{", "1")
		require.Equal(t, 400, bad.status)
		require.Empty(t, receipt)

		proof := b.Must(t, "trail", "prove", "--operation", id)
		holds(proof, "log: bank.example/log, batch ", "leaf: sale "+id, `Sale.FundAmount: "10"`, `Sale.SettledPrice: "1.25"`, "\nThe proof holds: the checkpoint of bank.example/log with the size ")
		require.Equal(t, leafOf(proof), leafOf(b.Must(t, "trail", "prove", id)))
		require.Equal(t, leafOf(proof), leafOf(b.Must(t, "trail", "prove", "--subscription", "shop", "--caller-id", "sold")))
		require.Equal(t, 1, b.Run(t, "trail", "prove", "--subscription", "shop", "--caller-id", "nothing").Status)
		require.Equal(t, 1, b.Run(t, "trail", "prove", "--operation", "01935c3e-6d0e-7cc3-8d5e-3f0b8f6f2c11").Status)
		require.Equal(t, verifying+"\n", b.Must(t, "trail", "key"))
		b.Must(t, "sales", "reverse", id, "--reason", "a mistake")
		holds(b.Must(t, "trail", "prove", "--operation", id), "leaf: sale "+id, "leaf: end "+id, `ReversedAt: "20`)
		b.Verify(t)
	})
}

// What a partner sends looks like no other field, in no program.
func TestProofsQuoteWhatAPartnerSends(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EngineSQLite)
	b.Migrate(t)
	s, key, verifying := trailHouse(t, b)
	sold := s.post(t, buyFund, key, sale(`x\nSale.FundAmount: \"999\"\u2028\u202e`, 1001, "10", ""))
	require.Equal(t, completed, sold.body)
	file := filepath.Join(t.TempDir(), "proof.json")
	require.NoError(t, os.WriteFile(file, []byte(b.Must(t, "trail", "prove", "--operation", sold.header.Get("Operation-Id"))), 0o600))
	texts := []string{b.Must(t, "trail", "check", file, "--key", verifying)}
	if python, err := exec.LookPath("python3"); err == nil {
		out, err := exec.Command(python, "../../../adapters/trail/check.py", file, verifying).CombinedOutput()
		require.NoError(t, err, string(out))
		texts = append(texts, string(out))
	}
	for _, text := range texts {
		require.Contains(t, text, "\nSale.FundAmount: \"10\"\n")
		require.NotContains(t, text, "\nSale.FundAmount: \"999\"")
		require.NotContains(t, text, "\u2028")
		require.NotContains(t, text, "\u202e")
	}
}

func leafOf(proof string) string {
	leaf, _, _ := strings.Cut(proof, `"index"`)
	return leaf
}

// An earlier checkpoint proves that the log only grew. A changed row is named,
// although the book adds up.
func TestHistoryIsNotChangedUnnoticed(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		s, key, _ := trailHouse(t, b)
		var ids []string
		for _, callerID := range []string{"first", "second"} {
			got := s.post(t, buyFund, key, sale(callerID, 1001, "10", ""))
			require.Equal(t, completed, got.body)
			ids = append(ids, got.header.Get("Operation-Id"))
		}
		earlier := filepath.Join(t.TempDir(), "checkpoint")
		require.NoError(t, os.WriteFile(earlier, []byte(b.Must(t, "trail", "checkpoint")), 0o600))
		require.Equal(t, completed, s.post(t, buyFund, key, sale("third", 1001, "10", "")).body)
		require.Contains(t, b.Run(t, "verify", "--against", earlier).Err, "The book is correct.")
		s.Stop(t)

		of := "operation_id = '" + ids[1] + "'"
		if b.Engine == testdb.EngineSQLite {
			of = "operation_id = x'" + strings.ReplaceAll(ids[1], "-", "") + "'"
		}
		b.execute(t, "DELETE FROM sales WHERE "+of)
		b.execute(t, "DELETE FROM operations WHERE "+of)
		b.execute(t, "UPDATE holdings SET units = units + 10000000 WHERE customer_no = 1001")
		b.execute(t, "UPDATE accounts SET balance = balance - 1250 WHERE customer_no = 1001")
		got := b.Run(t, "verify")
		require.Equal(t, 1, got.Status)
		require.Equal(t, "operation "+ids[1]+": is in the trail, but not in the rows, or not as often\n", got.Out)

		b.execute(t, "DELETE FROM trail_batches")
		b.execute(t, "DELETE FROM trail_hashes")
		b.execute(t, "UPDATE properties SET value = '0' WHERE name IN ('log_size', 'log_begun')")
		b.execute(t, "UPDATE properties SET value = '' WHERE name = 'log_checkpoint'")
		got = b.Run(t, "verify", "--against", earlier)
		require.Equal(t, 1, got.Status)
		require.Contains(t, got.Out, "the log has become shorter")
		got = b.Run(t, "trail", "checkpoint")
		require.Equal(t, 1, got.Status, "the file of checkpoints is beside the data: nothing is signed that contradicts it")
	})
}

// A copy of the book without its key cannot be checked. It is said once, and no
// other key is made.
func TestACopyWithoutItsKey(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		s, key, _ := trailHouse(t, b)
		require.Equal(t, completed, s.post(t, buyFund, key, sale("sold", 1001, "10", "")).body)
		require.Equal(t, completed, s.post(t, addPush, key, `{"Header":{},"Parameters":[`+validPush+`]}`).body)
		s.Stop(t)
		keyFile := b.Setting("trail.key_file")

		b.Set("trail.key_file", "")
		got := b.Run(t, "verify")
		require.Equal(t, 1, got.Status)
		require.Equal(t, 1, strings.Count(got.Out, "\n"), got.Out)
		require.Contains(t, got.Out, "the key of its log is missing. Set trail.key_file")
		require.NoFileExists(t, filepath.Join(filepath.Dir(b.DSN), "trail.key"))

		other := filepath.Join(t.TempDir(), "other.key")
		b.Must(t, "trail", "keygen", "other.example", "--file", other)
		b.Set("trail.key_file", other)
		got = b.Run(t, "verify")
		require.Equal(t, 1, got.Status)
		require.Equal(t, 1, strings.Count(got.Out, "\n"), got.Out)
		require.Contains(t, got.Out, "is not that of the log of this book")
		s = b.serve(t)
		status, ready := s.Get(t, "/readyz?verbose")
		require.Equal(t, 503, status)
		require.Contains(t, ready, "[-]trail failed: The key of "+other)
		refused := s.post(t, buyFund, key, sale("later", 1001, "10", ""))
		require.Equal(t, 503, refused.status, "it cannot extend the log")
		require.NotContains(t, refused.body, "Data")
		s.Stop(t)

		b.Set("trail.enabled", "false")
		b.Verify(t)
		b.Set("trail.enabled", "true").Set("trail.key_file", keyFile)
		b.Verify(t)
	})
}

// Another key begins another log: see the page of the trail. The file of
// checkpoints still has those of the first key.
func TestABookWithAnotherKey(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		s, key, first := trailHouse(t, b)
		sold := s.post(t, buyFund, key, sale("sold", 1001, "10", ""))
		require.Equal(t, completed, sold.body)
		refused := b.Run(t, "trail", "rekey")
		require.Equal(t, 1, refused.Status, "the service signs with the first key")
		require.Contains(t, refused.Err, "another process uses")
		require.Equal(t, completed, s.post(t, buyFund, key, sale("goes on", 1001, "10", "")).body)
		b.Verify(t)
		proof := []string{"trail", "prove", "--operation", sold.header.Get("Operation-Id")}
		proofs := map[string]string{b.Must(t, proof...): first}
		s.Stop(t)
		begin := func(args ...string) {
			t.Helper()
			got := b.Run(t, append([]string{"trail", "rekey"}, args...)...)
			require.Zero(t, got.Status, got.Err)
			verifying := strings.TrimSpace(got.Out)
			require.NotContains(t, proofs, verifying)
			b.Verify(t)
			s := b.serve(t)
			require.Equal(t, completed, s.post(t, buyFund, key, sale(verifying, 1001, "10", "")).body)
			s.Stop(t)
			b.Verify(t)
			require.Equal(t, verifying+"\n", b.Must(t, "trail", "key"))
			proofs[b.Must(t, proof...)] = verifying
			require.Contains(t, b.Must(t, "export", "audit"), "trail.rekey,"+verifying)
		}
		begin()
		begin("bank.example/log3", "--as", "ayse")
		file := filepath.Join(t.TempDir(), "own.key")
		b.Must(t, "trail", "keygen", "bank.example/log4", "--file", file)
		b.Set("trail.key_file", file)
		require.Equal(t, 1, b.Run(t, "trail", "checkpoint").Status, "it is not the key of the log")
		begin()
		require.Len(t, proofs, 4)
		for text, key := range proofs {
			got := b.RunWith(t, text, "trail", "check", "-", "--key", key)
			require.Zero(t, got.Status, got.Err)
			require.Contains(t, got.Out, "leaf: sale "+sold.header.Get("Operation-Id"))
		}
	})
}

// Somebody takes a sale from a copy of the book, which runs with the same key, into the book.
func TestASaleOfACopyIsFound(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EngineSQLite)
	b.Migrate(t)
	s, key, _ := trailHouse(t, b)
	require.Equal(t, completed, s.post(t, buyFund, key, sale("before", 1001, "10", "")).body)
	file := filepath.Join(t.TempDir(), "copy.db")
	b.Must(t, "backup", file)
	copied := b.replica(t)
	copied.On(file)
	other := copied.serve(t)
	sold := other.post(t, buyFund, key, sale("forged", 1001, "10", ""))
	require.Equal(t, completed, sold.body)
	other.Stop(t)
	copied.Verify(t)

	require.Equal(t, completed, s.post(t, buyFund, key, sale("after", 1001, "10", "")).body)
	b.execute(t, "ATTACH '"+file+"' AS copied;"+
		"INSERT OR IGNORE INTO trail_batches SELECT batch_id, entries, mac, NULL FROM copied.trail_batches;"+
		"INSERT INTO sales SELECT * FROM copied.sales WHERE operation_id IN (SELECT operation_id FROM copied.operations WHERE caller_id = 'forged');"+
		"INSERT INTO operations SELECT * FROM copied.operations WHERE caller_id = 'forged';"+
		"UPDATE holdings SET units = units - 10000000 WHERE customer_no = 1001;"+
		"UPDATE accounts SET balance = balance + 1250 WHERE customer_no = 1001")
	s.Await(t, s.Err, `batches of the trail were left out`)
	eventually(t, patience, "readiness warns of the trail, and the service stays ready", func() bool {
		status, ready := s.Get(t, "/readyz?verbose") // it may be asked before the round that wrote the line has ended
		require.Equal(t, 200, status)
		return strings.Contains(ready, "[!]trail warning: ")
	})
	require.Equal(t, completed, s.post(t, buyFund, key, sale("still", 1001, "10", "")).body)
	id := sold.header.Get("Operation-Id")
	require.Contains(t, b.Run(t, "trail", "prove", "--operation", id).Err, "the trail has no leaf of this operation")
	_, receipt := s.postFor(t, buyFund, key, sale("forged", 1001, "10", ""), "1")
	require.Empty(t, receipt)
	got := b.Run(t, "verify")
	require.Equal(t, 1, got.Status, got.Err)
	require.Contains(t, got.Out, "it was made for another log, by a copy of this book or before a restore")
	require.Contains(t, got.Err, "Checked ")
}

// An auditor has files with many checkpoints, of any system.
func TestEarlierCheckpointsInFiles(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EngineSQLite)
	b.Migrate(t)
	s, key, verifying := trailHouse(t, b)
	for _, callerID := range []string{"first", "second"} {
		require.Equal(t, completed, s.post(t, buyFund, key, sale(callerID, 1001, "10", "")).body)
		b.Must(t, "trail", "checkpoint")
	}
	s.Stop(t)
	own := filepath.Join(filepath.Dir(b.DSN), "trail.checkpoints")
	content, err := os.ReadFile(own)
	require.NoError(t, err)
	count := strings.Count(string(content), "\u2014 ")
	require.Greater(t, count, 1)
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	for _, text := range []string{
		string(content), strings.ReplaceAll(string(content), "\n", "\r\n"), "\n\n" + strings.ReplaceAll(string(content), "\n\n", "\n\n\n") + "\n",
		"bank.example/log\n12\n" + "\n" + string(content),
	} {
		got := b.Run(t, "verify", "--against", write(text))
		require.Zero(t, got.Status, got.Out+got.Err)
		require.Contains(t, got.Err, fmt.Sprintf("It extends file 1 of --against: %d checkpoints", count))
		require.Contains(t, got.Err, "Its public key is "+verifying)
	}
	for _, text := range []string{"", "hello\n", "bank.example/log\n12\n", string(content[:40])} {
		got := b.Run(t, "verify", "--against", write(text))
		require.Equal(t, 2, got.Status, got.Err)
		require.Empty(t, got.Out)
		require.Contains(t, got.Err, "no checkpoint of a trail")
	}

	require.NoError(t, os.Rename(own, own+".moved"))
	got := b.Run(t, "verify")
	require.Zero(t, got.Status, got.Err)
	require.Contains(t, got.Err, "The log was compared with no checkpoint outside the database")
	require.NoError(t, os.Mkdir(own, 0o700)) // it cannot be read
	report := filepath.Join(t.TempDir(), "report.txt")
	got = b.Run(t, "verify", "--report", report)
	require.Contains(t, got.Err, "Warning: The log was not compared with its newest checkpoint outside the database")
	text, err := os.ReadFile(report)
	require.NoError(t, err)
	for _, want := range []string{verifying, "Newest checkpoint  size ", "was not compared with its newest", "Program"} {
		require.Contains(t, string(text), want)
	}
	b.Set("trail.enabled", "false")
	require.Contains(t, b.Run(t, "verify").Err, "The trail was not compared: this service keeps no trail: see trail.enabled")
}

// A copy is checked with the key of its book, also in the same folder and after
// the log of the book has grown.
func TestABackupWithATrail(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EngineSQLite)
	b.Set("trail.enabled", "true")
	b.Migrate(t)
	b.Load(t, "holdings", "CustomerNo,IMKBCode,HolderCorporationName,Units", "1002,AFA,Demo Portfoy,1000", "1001,AFA,Demo Portfoy,1000")
	b.Must(t, "trail", "checkpoint")
	folder := filepath.Dir(b.DSN)
	for _, copied := range []string{filepath.Join(t.TempDir(), "copy.db"), filepath.Join(folder, "copy.db")} {
		require.Contains(t, b.Run(t, "backup", copied).Err, "The copy is correct.")
	}
	b.Load(t, "accounts", "BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance", "1,1001,1,TRY,0.01")
	b.Must(t, "trail", "checkpoint")
	b.Verify(t)
	copied := b.replica(t)
	copied.On(filepath.Join(folder, "copy.db")).Set("trail.key_file", filepath.Join(folder, "trail.key"))
	copied.Verify(t)
	require.FileExists(t, filepath.Join(folder, "trail.checkpoints"))
	require.NoFileExists(t, filepath.Join(folder, "copy.trail.key"))
}

// Postgres keeps no trail without a key. Whoever runs it is told.
func TestPostgresWithoutATrailKey(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EnginePostgres)
	b.Migrate(t)
	b.Set("trail.enabled", "true")
	require.Contains(t, b.Run(t, "config", "--check").Err, "Warning: There is no trail, because trail.key_file is empty.")
	s := b.serve(t)
	s.Await(t, s.Err, `"level":"warn".*"message":"no trail is kept"`)
	eventually(t, patience, "readiness names the missing key", func() bool { // a busy database may answer late
		_, ready := s.Get(t, "/readyz?verbose")
		return strings.Contains(ready, "[!]trail warning: There is no trail, because trail.key_file is empty.")
	})
	got := b.Run(t, "trail", "checkpoint")
	require.Equal(t, 1, got.Status)
	require.Contains(t, got.Err, "trail.key_file is empty")
	b.Verify(t)
}
