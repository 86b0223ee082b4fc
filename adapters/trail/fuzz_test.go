package trail_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	trailadapter "bankingapi/adapters/trail"
	application "bankingapi/application/trail"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// fixedBank is a bank that is the same in every process of a fuzz run.
func fixedBank(t testing.TB, key byte, batches int) *bank {
	t.Helper()
	seed := bytes.Repeat([]byte{key}, ed25519.SeedSize)
	public, ok := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	require.True(t, ok)
	verifying, err := note.NewEd25519VerifierKey("bank.example", public)
	require.NoError(t, err)
	hash := strings.Split(verifying, "+")[1]
	return newBankWith(t, "PRIVATE+KEY+bank.example+"+hash+"+"+base64.StdEncoding.EncodeToString(append([]byte{1}, seed...)), batches)
}

func (b *bank) receipt(t testing.TB, position, index int) *trailadapter.Proof {
	t.Helper()
	p, err := b.notary.Receipt(b.leaf(position, index))
	require.NoError(t, err)
	return p
}

// files are what the bank hands out: proofs, receipts and checkpoints.
func (b *bank) files(t testing.TB) (files [][]byte) {
	t.Helper()
	for _, p := range []*trailadapter.Proof{b.prove(t, 0, 0), b.prove(t, 3, 1), b.prove(t, 4, 4), b.receipt(t, 3, 2)} {
		file, err := p.Marshal()
		require.NoError(t, err)
		files = append(files, file)
	}
	files = append(files, []byte("Receipt: "+base64.StdEncoding.EncodeToString(files[3])+"\r\n"))
	for _, checkpoint := range b.checkpoints {
		files = append(files, []byte(checkpoint))
	}
	return files
}

// FuzzFile hands any bytes to the checkers. What holds says what files of the
// bank say: a file may have one of their proofs twice.
func FuzzFile(f *testing.F) {
	b, other := fixedBank(f, 1, 5), fixedBank(f, 2, 5)
	f.Add(b.contents[0][0])
	facts := map[string]bool{}
	for _, file := range b.files(f) {
		f.Add(file)
		if proved, err := trailadapter.CheckFile(file, b.key); err == nil {
			last := len(proved) - 1
			facts[strings.Join(proved[:last], "\n")], facts[proved[last]] = true, true
			f.Add(bytes.Repeat(file, 2))
		}
	}
	require.Len(f, facts, 4+2)
	for _, file := range other.files(f) {
		f.Add(file)
	}
	_, signature, _ := strings.Cut(other.checkpoints[4], "\n\n")
	f.Add([]byte(b.checkpoints[4] + strings.Replace(signature, "bank.", "witness.", 1))) // one more signature
	f.Fuzz(func(t *testing.T, file []byte) {
		if proved, err := trailadapter.CheckFile(file, b.key); err == nil {
			said := strings.Join(proved, "\n")
			for fact := range facts {
				said = strings.ReplaceAll(said, fact, "")
			}
			require.Empty(t, strings.Trim(said, "\n"), "a forgery holds: %q", file)
		}
		if _, err := trailadapter.OpenCheckpoint(string(file), b.key); err == nil {
			require.Contains(t, b.checkpoints, string(file), "a forgery holds")
		}
		if _, err := proof.Decode(file); err == nil {
			require.Contains(t, string(file), proof.Format)
		}
	})
}

// FuzzProof makes proofs of the members of others: of other leaves, of receipts,
// of a shorter log and of another bank. Then it changes bytes. What holds is a
// leaf of the bank at its place.
func FuzzProof(f *testing.F) {
	b, other := fixedBank(f, 1, 6), fixedBank(f, 2, 6)
	parts := []*trailadapter.Proof{
		b.prove(f, 5, 3), b.prove(f, 5, 4), b.prove(f, 3, 3), b.prove(f, 0, 0), b.receipt(f, 5, 3), b.receipt(f, 4, 1),
		fixedBank(f, 1, 5).prove(f, 3, 3), other.prove(f, 5, 3), other.receipt(f, 5, 3),
	}
	for i := range parts {
		f.Add([]byte{byte(i), byte(i), byte(i), byte(i), byte(i), byte(i), byte(i), byte(i)}, uint16(0), byte(0))
		f.Add([]byte{byte(i), 0, 0, 0, 0, 0, 0, byte(i)}, uint16(10*i), byte(1<<(i%8)))
	}
	f.Fuzz(func(t *testing.T, from []byte, at uint16, change byte) {
		if len(from) < 8 {
			return
		}
		part := func(i int) *trailadapter.Proof { return parts[int(from[i])%len(parts)] }
		p := &trailadapter.Proof{
			Format: trailadapter.ProofFormat, Leaf: slices.Clone(part(0).Leaf), Index: part(1).Index, Leaves: part(2).Leaves,
			Path: part(3).Path, Record: slices.Clone(part(4).Record), Position: part(5).Position, LogPath: part(6).LogPath,
			Checkpoint: part(7).Checkpoint,
		}
		if n := int(at) % (len(p.Leaf) + len(p.Record)); n < len(p.Leaf) {
			p.Leaf[n] ^= change
		} else {
			p.Record[n-len(p.Leaf)] ^= change
		}
		file, err := p.Marshal()
		require.NoError(t, err)
		if !holds(file, b.key) {
			return
		}
		for position, contents := range b.contents {
			if bytes.Equal(b.batches[position].Record(), p.Record) && (p.Position == -1 || p.Position == int64(position)) {
				require.Equal(t, contents[p.Index], p.Leaf)
				return
			}
		}
		t.Errorf("a forgery holds: %s", file)
	})
}

// FuzzLog changes a log: batches are removed, repeated, exchanged, cut off or
// altered, and the notary signs the result, as if its key were stolen. An earlier
// checkpoint shows it.
// Then it changes a stored hash: the notary does not sign, or it signs the same.
func FuzzLog(f *testing.F) {
	const size = 12
	b := fixedBank(f, 1, size)
	genuine := make([][]byte, size)
	for i := range b.batches {
		genuine[i] = b.batches[i].Record()
	}
	added := (&proof.Batch{ID: operation.ID{3}, Entries: b.batches[0].Entries}).Record()
	next, err := b.notary.Append(application.State{Size: size, Checkpoint: b.checkpoints[size-1]}, [][]byte{added}, b.stored)
	require.NoError(f, err)
	for how := range byte(6) {
		for _, place := range []uint16{0, 3, 7, 11} {
			f.Add(how, place, 5*place, byte(8), byte(1))
		}
	}
	f.Fuzz(func(t *testing.T, how byte, place, other uint16, earlier, change byte) {
		records := slices.Clone(genuine)
		i, k := int(place)%size, int(other)%size
		switch how % 6 {
		case 0:
			records = slices.Delete(records, i, i+1)
		case 1:
			records = slices.Insert(records, i, records[k])
		case 2:
			records[i], records[k] = records[k], records[i]
		case 3:
			records = records[:i]
		case 4:
			records[i] = slices.Clone(records[i])
			records[i][int(other)%len(records[i])] ^= change
		default:
			records = append(records, added)
		}
		forged, err := b.notary.Append(application.State{}, records, b.stored)
		require.NoError(t, err)
		newer, err := trailadapter.OpenCheckpoint(forged.Checkpoint, b.key)
		require.NoError(t, err)
		older, err := trailadapter.OpenCheckpoint(b.checkpoints[int(earlier)%size], b.key)
		require.NoError(t, err)
		err = trailadapter.CheckExtends(older, newer, tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
			found := make([]tlog.Hash, len(indexes))
			for n, index := range indexes {
				found[n] = forged.Hashes[index]
			}
			return found, nil
		}))
		extends := newer.Size >= older.Size
		for n := range int(older.Size) {
			extends = extends && bytes.Equal(records[n], genuine[n])
		}
		require.Equal(t, extends, err == nil, "%v", err)

		hashes := slices.Clone(b.hashes)
		hashes[int(other)%len(hashes)][i] ^= change
		signed, err := b.notary.Append(application.State{Size: size, Checkpoint: b.checkpoints[size-1]}, [][]byte{added},
			func(indexes []int64) ([]proof.Hash, error) {
				found := make([]proof.Hash, len(indexes))
				for n, index := range indexes {
					found[n] = hashes[index]
				}
				return found, nil
			})
		if err == nil {
			require.Equal(t, next, signed)
		}
		state := application.State{Size: int64(i), Checkpoint: b.checkpoints[k]}
		if _, err := b.notary.Append(state, [][]byte{added}, b.stored); i != k+1 {
			require.Error(t, err, "a size that is not signed")
		}
	})
}
