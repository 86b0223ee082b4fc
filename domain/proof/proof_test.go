package proof_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"bankingapi/domain/proof"
	"bankingapi/domain/push"
)

func TestWhatIsNoLeafIsRefused(t *testing.T) {
	t.Parallel()
	l := proof.Leaves(keys, completed())[0].Leaf
	whole, err := proof.Decode(l.Content())
	require.NoError(t, err)
	for i := range len(l.Content()) {
		if d, err := proof.Decode(l.Content()[:i]); err == nil {
			require.NotEqual(t, whole, d, "cut at %d", i)
		}
	}
	_, err = proof.Decode(nil)
	require.ErrorIs(t, err, proof.ErrFormat)
	_, err = proof.Decode([]byte(strings.Repeat("\xff", 20)))
	require.ErrorIs(t, err, proof.ErrFormat)
}

func entries(t *rapid.T) []proof.Entry {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) proof.Entry {
		fill := func(name string, b []byte) { copy(b, rapid.SliceOfN(rapid.Byte(), len(b), len(b)).Draw(t, name)) }
		e := proof.Entry{Kind: proof.Kind(rapid.IntRange(1, 6).Draw(t, "kind"))}
		fill("id", e.ID[:])
		fill("leaf", e.Leaf[:])
		if e.Kind == proof.Push {
			e.Identities = make([]push.Identity, rapid.IntRange(0, 3).Draw(t, "messages"))
			for i := range e.Identities {
				fill("identity", e.Identities[i][:])
			}
		}
		return e
	}), 1, 9).Draw(t, "entries")
}

func TestEntriesAreReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := entries(t)
		encoded := proof.AppendEntries(nil, want)
		got, err := proof.ParseEntries(encoded)
		require.NoError(t, err)
		require.Equal(t, want, got)
		_, err = proof.ParseEntries(encoded[:len(encoded)-1])
		require.ErrorIs(t, err, proof.ErrFormat)
	})
	_, err := proof.ParseEntries([]byte{9})
	require.ErrorIs(t, err, proof.ErrFormat)
}

func TestARecordHasTheRootOfItsBatch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := proof.Batch{ID: id, Entries: entries(t)}
		root, leaves, err := proof.ParseRecord(b.Record())
		require.NoError(t, err)
		require.Equal(t, b.Root(), root)
		require.Equal(t, int64(len(b.Entries)), leaves)
		b.Entries[len(b.Entries)-1].Leaf[0] ^= 1
		require.NotEqual(t, root, b.Root())
	})
	b := proof.Batch{ID: id}
	record := b.Record()
	other := append([]byte("x"), record[1:]...)
	for _, wrong := range [][]byte{[]byte("short"), record[:len(record)-1], append(record, 0), other} {
		_, _, err := proof.ParseRecord(wrong)
		require.ErrorIs(t, err, proof.ErrFormat)
	}
}

func TestAMACIsOfTheWholeBatch(t *testing.T) {
	t.Parallel()
	keys, others := proof.NewKeys([]byte("secret")), proof.NewKeys([]byte("other secret"))
	rapid.Check(t, func(t *rapid.T) {
		b := proof.Batch{ID: id, Entries: entries(t)}
		encoded := proof.AppendEntries(nil, b.Entries)
		said := proof.Provenance{
			Base:      proof.Base{Size: rapid.Int64Min(0).Draw(t, "size"), Root: tlog.RecordHash([]byte("root"))},
			IsAdopted: rapid.Bool().Draw(t, "adopted"),
		}
		mac := keys.MAC(b.Record(), encoded, said)
		found, ok := keys.OpenMAC(b.Record(), encoded, mac)
		require.True(t, ok)
		require.Equal(t, said, found)
		_, ok = others.OpenMAC(b.Record(), encoded, mac)
		require.False(t, ok)
		changed := [][]byte{b.Record(), encoded, mac}
		part := changed[rapid.IntRange(0, 2).Draw(t, "part")]
		part[rapid.IntRange(0, len(part)-1).Draw(t, "changed byte")] ^= 2
		_, ok = keys.OpenMAC(changed[0], encoded, mac)
		require.False(t, ok)
	})
}

func TestATreeIsLoadedAtEachSize(t *testing.T) {
	t.Parallel()
	var tree proof.Tree
	var stored []proof.Hash
	roots := []proof.Hash{tree.Root()}
	for n := range 70 {
		stored = append(stored, tree.Append([]byte{byte(n)})...)
		roots = append(roots, tree.Root())
	}
	for size, root := range roots {
		loaded, err := proof.LoadTree(int64(size), func(indexes []int64) (found []proof.Hash, err error) {
			for _, i := range indexes {
				found = append(found, stored[i])
			}
			return found, nil
		})
		require.NoError(t, err)
		require.Equal(t, root, loaded.Root())
		require.EqualValues(t, size, loaded.Size())
	}
}

// A row of the database says how large its log is, and anybody may have changed it.
func TestNoLogHasASizeBelowZero(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{-1, math.MinInt64} {
		_, err := proof.LoadTree(size, nil)
		require.ErrorIs(t, err, proof.ErrSize)
	}
}
