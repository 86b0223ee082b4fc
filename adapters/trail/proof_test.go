package trail_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"

	trailadapter "bankingapi/adapters/trail"
	application "bankingapi/application/trail"
	"bankingapi/domain/audit"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// bank is a log with batches of 1, 2, 3 and more leaves.
type bank struct {
	notary      *trailadapter.Notary
	key         string
	hashes      []proof.Hash
	batches     []proof.Batch
	contents    [][][]byte
	checkpoints []string
}

func (b *bank) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		found[i] = b.hashes[at]
	}
	return found, nil
}

// stored reads hashes as a storage does.
func (b *bank) stored(indexes []int64) ([]proof.Hash, error) {
	found := make([]proof.Hash, len(indexes))
	for i, at := range indexes {
		found[i] = b.hashes[at]
	}
	return found, nil
}

func newBank(t testing.TB, batches int) *bank {
	t.Helper()
	signing, _, err := trailadapter.GenerateKeys("bank.example")
	require.NoError(t, err)
	return newBankWith(t, signing+"\n", batches)
}

func newBankWith(t testing.TB, signing string, batches int) *bank {
	t.Helper()
	notary, err := trailadapter.NewNotary(signing)
	require.NoError(t, err)
	b := &bank{notary: notary, key: notary.VerifyingKey()}
	var state application.State
	for i := range batches {
		batch := proof.Batch{ID: operation.ID{1, byte(i)}}
		var contents [][]byte
		for k := range i + 1 {
			act := &audit.Act{ID: operation.ID{2, byte(i), byte(k)}, Details: strconv.Itoa(k)}
			l := proof.OfAct(act.ID, act, nil, nil)
			batch.Entries = append(batch.Entries, l.Entry())
			contents = append(contents, l.Leaf.Content())
		}
		added, err := notary.Append(state, [][]byte{batch.Record()}, b.stored)
		require.NoError(t, err)
		require.EqualValues(t, len(b.hashes), added.First)
		checkpoint := added.Checkpoint
		state = application.State{Size: int64(i) + 1, Checkpoint: checkpoint}
		b.hashes = append(b.hashes, added.Hashes...)
		b.batches, b.contents, b.checkpoints = append(b.batches, batch), append(b.contents, contents), append(b.checkpoints, checkpoint)
	}
	return b
}

func (b *bank) prove(t testing.TB, position, index int) *trailadapter.Proof {
	t.Helper()
	last := len(b.checkpoints)
	file, err := b.notary.Prove(b.leaf(position, index), application.State{Size: int64(last), Checkpoint: b.checkpoints[last-1]}, b)
	require.NoError(t, err)
	p, err := trailadapter.ParseProof(file)
	require.NoError(t, err)
	return p
}

func (b *bank) leaf(position, index int) *application.Leaf {
	return &application.Leaf{Content: b.contents[position][index], Batch: b.batches[position], Index: index, BatchIndex: int64(position)}
}

// A key with another name would replace that of a book, and nothing could read it again.
func TestAKeyThatIsMadeCanBeRead(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bank.example/log", "m\u00fc\u015fteri", "a\u00a0b", "a\u2003b", "a\u0085b", "a\vb", "a b", "a+b", "a\xff", "a\x01", "a\nb", ""} {
		signing, verifying, err := trailadapter.GenerateKeys(name)
		if err != nil {
			require.ErrorContains(t, err, "only printable characters", "%q", name)
			continue
		}
		notary, err := trailadapter.NewNotary(signing)
		require.NoError(t, err, "%q", name)
		require.Equal(t, verifying, notary.VerifyingKey())
	}
}

func TestEveryLeafIsProved(t *testing.T) {
	t.Parallel()
	b := newBank(t, 9)
	for position, batch := range b.batches {
		for index, entry := range batch.Entries {
			leaf, checkpoint, err := b.prove(t, position, index).Check(b.key)
			require.NoError(t, err)
			require.Equal(t, entry.ID, leaf.ID)
			require.Equal(t, "act", leaf.Kind)
			require.Equal(t, int64(9), checkpoint.Size)
			receipt, err := b.notary.Receipt(b.leaf(position, index))
			require.NoError(t, err)
			_, err = receipt.CheckReceipt(b.key)
			require.NoError(t, err)
			_, _, err = receipt.Check(b.key)
			require.Error(t, err, "a receipt is not in the log yet")
		}
	}
}

func TestAProofWithAnyByteChangedIsRefused(t *testing.T) {
	t.Parallel()
	b := newBank(t, 5)
	receipt, err := b.notary.Receipt(b.leaf(4, 2))
	require.NoError(t, err)
	for _, p := range []*trailadapter.Proof{b.prove(t, 4, 2), b.prove(t, 0, 0), receipt} {
		file, err := p.Marshal()
		require.NoError(t, err)
		for i := range file {
			for _, change := range []byte{1, 2, 32, 128} {
				forged := append([]byte(nil), file...)
				forged[i] ^= change
				require.False(t, holds(forged, b.key), "byte %d of %s", i, forged)
			}
		}
		for i := range file {
			require.False(t, holds(file[:i], b.key))
		}
	}
}

func holds(file []byte, key string) bool {
	p, err := trailadapter.ParseProof(file)
	if err != nil {
		return false
	}
	if p.Position == -1 {
		_, err = p.CheckReceipt(key)
	} else {
		_, _, err = p.Check(key)
	}
	return err == nil
}

func TestALogThatDoesNotGrowIsRefused(t *testing.T) {
	t.Parallel()
	b, fork := newBank(t, 9), newBank(t, 9)
	open := func(signed, key string) trailadapter.Checkpoint {
		c, err := trailadapter.OpenCheckpoint(signed, key)
		require.NoError(t, err)
		return c
	}
	newest := open(b.checkpoints[8], b.key)
	for _, signed := range b.checkpoints {
		require.NoError(t, trailadapter.CheckExtends(open(signed, b.key), newest, b))
	}
	require.ErrorContains(t, trailadapter.CheckExtends(newest, open(b.checkpoints[3], b.key), b), "shorter")
	// A fork has other batches at the beginning.
	other := open(fork.checkpoints[3], fork.key)
	require.NoError(t, trailadapter.CheckExtends(other, newest, b), "equal batches are equal logs")
	other.Root[0] ^= 1
	require.ErrorContains(t, trailadapter.CheckExtends(other, newest, b), "changed")
	other.Origin = "other.example"
	require.ErrorContains(t, trailadapter.CheckExtends(other, newest, b), "two logs")
	_, err := trailadapter.OpenCheckpoint(fork.checkpoints[3], b.key)
	require.ErrorContains(t, err, "not of this key")
}

// Two services may have one file, and a book may have had another key before:
// each log is compared with its own checkpoints only.
func TestLogsShareAFileOfCheckpoints(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "trail.checkpoints")
	own, other := newBank(t, 9), newBank(t, 3)
	file, others := trailadapter.NewCheckpoints(path, own.key), trailadapter.NewCheckpoints(path, other.key)
	newest := func(want string) {
		t.Helper()
		got, _, err := file.Newest()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	state := func(b *bank, size int) application.State {
		return application.State{Size: int64(size), Checkpoint: b.checkpoints[size-1]}
	}
	newest("")
	require.NoError(t, others.Append(other.checkpoints[0]))
	newest("")
	require.NoError(t, file.Extends(application.State{}, own.stored), "a log begins")
	require.NoError(t, file.Append(own.checkpoints[4]))
	write := func(text string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	write(strings.Repeat(other.checkpoints[2]+"\n", 1000)) // more than a block
	newest(own.checkpoints[4])
	require.NoError(t, file.Extends(state(own, 9), own.stored))
	require.ErrorContains(t, file.Extends(state(own, 3), own.stored), "shorter")
	require.ErrorContains(t, file.Extends(application.State{}, own.stored), "shorter")
	require.NoError(t, others.Extends(state(other, 3), other.stored))
	require.ErrorContains(t, others.Extends(state(other, 2), other.stored), "shorter")

	// A crash has cut a line. The next checkpoint begins in it and is lost, those
	// before and after it are not.
	write(own.checkpoints[5][:30])
	newest(own.checkpoints[4])
	require.NoError(t, file.Append(own.checkpoints[6]))
	newest(own.checkpoints[4])
	require.NoError(t, file.Append(own.checkpoints[7]))
	newest(own.checkpoints[7])
}

// refusal is a leaf of a refused sale of 1.5 units whose caller expected 12.50 TRY.
func (b *bank) refusal(t testing.TB) []byte {
	t.Helper()
	lira, _ := money.ParseCurrency("TRY")
	terms := fund.Terms{Units: 1_500_000, ControlTotal: 1250, Account: fund.AccountKey{Currency: lira}}
	refused := proof.Stored{
		Envelope: operation.Envelope{ID: operation.ID{3}}, Operation: operation.BuyFundFromCustomer, State: operation.Failed,
		Sales: []fund.SaleEntry{{Terms: terms, State: operation.Failed}},
	}
	l := proof.Leaves(proof.NewKeys(nil), &refused)[0]
	batch := proof.Batch{ID: operation.ID{4}, Entries: []proof.Entry{l.Entry()}}
	p, err := b.notary.Receipt(&application.Leaf{Content: l.Leaf.Content(), Batch: batch})
	require.NoError(t, err)
	file, err := p.Marshal()
	require.NoError(t, err)
	return file
}

// People read what a refused sale asked for as they read a sale.
func TestARefusedSaleIsReadable(t *testing.T) {
	t.Parallel()
	b := newBank(t, 1)
	facts, err := trailadapter.CheckFile(b.refusal(t), b.key)
	require.NoError(t, err)
	for _, fact := range []string{`FundAmount: "1.5"`, `Amount: "12.50"`, `State: "failed"`} {
		require.Contains(t, facts, "Sale."+fact)
	}
}

// The checker in Python agrees with ours.
func TestTheOtherChecker(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: -short; run: make test")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("SKIPPED: no python3 on this machine; run: apt-get install python3")
	}
	b := newBank(t, 6)
	check := func(file []byte, key string) (string, error) {
		path := filepath.Join(t.TempDir(), "proof.json")
		require.NoError(t, os.WriteFile(path, file, 0o600))
		out, err := exec.Command(python, "check.py", path, key).CombinedOutput()
		return string(out), err
	}
	receipt, err := b.notary.Receipt(b.leaf(5, 4))
	require.NoError(t, err)
	for _, p := range []*trailadapter.Proof{b.prove(t, 5, 4), b.prove(t, 0, 0), b.prove(t, 2, 1), receipt} {
		file, err := p.Marshal()
		require.NoError(t, err)
		out, err := check(file, b.key)
		require.NoError(t, err, out)
		require.Contains(t, out, `leaf: "act"`)
		forged := *p
		forged.Leaf = append([]byte(nil), p.Leaf...)
		forged.Leaf[len(forged.Leaf)-3] ^= 1
		file, err = forged.Marshal()
		require.NoError(t, err)
		out, err = check(file, b.key)
		require.Error(t, err)
		require.Contains(t, out, "does not hold")
		require.False(t, strings.Contains(out, "Traceback"), out)
	}
	file, err := b.prove(t, 5, 4).Marshal()
	require.NoError(t, err)
	_, err = check(file, newBank(t, 1).key)
	require.Error(t, err)
	out, err := check(b.refusal(t), b.key)
	require.NoError(t, err, out)
	require.Contains(t, out, "Sale.FundAmount: \"1.5\"\n")
	require.Contains(t, out, "Sale.Amount: \"1250\" minor units of \"TRY\"\n")

	// Both refuse what is not exactly a proof.
	for name, other := range map[string]string{
		"an empty file":      "",
		"a member more":      strings.Replace(string(file), `{"`, `{"more":1,"`, 1),
		"a member twice":     strings.Replace(string(file), `{"`, `{"index":4,"`, 1),
		"true is no number":  regexp.MustCompile(`"index":\d+`).ReplaceAllString(string(file), `"index":true`),
		"a list":             "[]\n",
		"one proof and more": string(file) + "{}\n",
	} {
		out, err := check([]byte(other), b.key)
		require.Error(t, err, name)
		require.Contains(t, out, "does not hold", name)
		require.NotContains(t, out, "Traceback", name)
		_, err = trailadapter.CheckFile([]byte(other), b.key)
		require.Error(t, err, name)
	}
}
