package trail_test

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

var id = operation.ID{1, 2, 3, 15: 4}

func sale(buffer []byte) trail.Leaf {
	l := trail.NewLeaf(buffer, trail.Decided, id)
	l.BeginRow("sales")
	l.Int("customer_no", 1001)
	l.Text("imkb_code", "AFA")
	l.Text("refusal", "")
	l.Bytes("digest", []byte{1, 255})
	l.Time("received_at", time.Date(2026, 11, 21, 12, 0, 0, 1000, time.FixedZone("", 3*60*60)))
	l.Time("settled_at", time.Time{})
	l.EndRow()
	l.BeginRow("postings")
	l.Int("quantity", -5)
	l.EndRow()
	return l
}

// The hashes are stored. If this test fails, the encoding has changed: every
// stored leaf would look forged. Add a new Format instead, and keep this one.
func TestTheHashOfALeafNeverChanges(t *testing.T) {
	t.Parallel()
	l := sale(nil)
	hash := l.Hash()
	require.Equal(t, "2aa18c804f3895acee5e9a0af1fb74fdc52d11b948f7e8f8d20a9e34b58ef08b", hex.EncodeToString(hash[:]))
	again := sale(make([]byte, 0, 10))
	require.Equal(t, l.Content(), again.Content(), "the buffer does not matter")
}

func TestALeafIsReadBack(t *testing.T) {
	t.Parallel()
	l := sale(nil)
	d, err := trail.Decode(l.Content())
	require.NoError(t, err)
	require.Equal(t, trail.Decoded{Kind: "decided", ID: id, Rows: []trail.Row{
		{Table: "sales", Fields: []trail.Field{
			{Column: "customer_no", Value: "1001"}, {Column: "imkb_code", Value: "AFA"},
			{Column: "digest", Value: "01ff"}, {Column: "received_at", Value: "2026-11-21T09:00:00.000001Z"},
		}},
		{Table: "postings", Fields: []trail.Field{{Column: "quantity", Value: "-5"}}},
	}}, d)
}

func TestATimeIsInItsLayout(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		at := time.UnixMicro(rapid.Int64Range(-62_167_219_200_000_000, 400_000_000_000_000_000).Draw(r, "microseconds"))
		l := trail.NewLeaf(nil, trail.Act, id)
		l.BeginRow("audits")
		l.Time("at", at)
		l.EndRow()
		d, err := trail.Decode(l.Content())
		require.NoError(r, err)
		if !at.IsZero() {
			require.Equal(r, at.UTC().Format("2006-01-02T15:04:05.000000Z"), d.Rows[0].Fields[0].Value)
		}
	})
}

func TestWhatIsNoLeafIsRefused(t *testing.T) {
	t.Parallel()
	l := sale(nil)
	for i := range len(l.Content()) {
		if d, err := trail.Decode(l.Content()[:i]); err == nil {
			require.Less(t, len(d.Rows), 2, "cut at %d", i)
		}
	}
	_, err := trail.Decode(nil)
	require.ErrorIs(t, err, trail.ErrFormat)
	_, err = trail.Decode([]byte(strings.Repeat("\xff", 20)))
	require.ErrorIs(t, err, trail.ErrFormat)
}

func entries(t *rapid.T) []trail.Entry {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) trail.Entry {
		fill := func(name string, b []byte) { copy(b, rapid.SliceOfN(rapid.Byte(), len(b), len(b)).Draw(t, name)) }
		e := trail.Entry{Kind: trail.Kind(rapid.IntRange(1, 5).Draw(t, "kind"))}
		fill("id", e.ID[:])
		fill("leaf", e.Leaf[:])
		if e.Kind == trail.Notified {
			fill("digest", e.Digest[:])
		}
		return e
	}), 1, 9).Draw(t, "entries")
}

func TestEntriesAreReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := entries(t)
		encoded := trail.AppendEntries(nil, want)
		got, err := trail.ParseEntries(encoded)
		require.NoError(t, err)
		require.Equal(t, want, got)
		_, err = trail.ParseEntries(encoded[:len(encoded)-1])
		require.ErrorIs(t, err, trail.ErrFormat)
	})
	_, err := trail.ParseEntries([]byte{9})
	require.ErrorIs(t, err, trail.ErrFormat)
}

func TestARecordHasTheRootOfItsBatch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := trail.Batch{ID: id, Entries: entries(t)}
		root, leaves, err := trail.ParseRecord(b.Record())
		require.NoError(t, err)
		require.Equal(t, b.Root(), root)
		require.Equal(t, int64(len(b.Entries)), leaves)
		b.Entries[len(b.Entries)-1].Leaf[0] ^= 1
		require.NotEqual(t, root, b.Root())
	})
	_, _, err := trail.ParseRecord([]byte("short"))
	require.ErrorIs(t, err, trail.ErrFormat)
}

func TestAMACIsOfTheWholeBatch(t *testing.T) {
	t.Parallel()
	keys, others := trail.NewKeys([]byte("secret")), trail.NewKeys([]byte("other secret"))
	rapid.Check(t, func(t *rapid.T) {
		b := trail.Batch{ID: id, Entries: entries(t)}
		encoded := trail.AppendEntries(nil, b.Entries)
		said := trail.Provenance{
			Base:    trail.Base{Size: rapid.Int64Min(0).Draw(t, "size"), Root: tlog.RecordHash([]byte("root"))},
			IsBound: true, IsAdopted: rapid.Bool().Draw(t, "adopted"),
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

// These MACs are stored. Versions with a schema up to 9 made them, the first versions from the
// record alone.
func TestMACsOfEarlierVersionsStayValid(t *testing.T) {
	t.Parallel()
	keys := trail.NewKeys([]byte("secret"))
	b := trail.Batch{ID: id, Entries: []trail.Entry{{Kind: trail.Decided, ID: id}}}
	encoded := trail.AppendEntries(nil, b.Entries)
	for _, mac := range []string{"ae77ac8e370af62d6eb77674ffaa4386b8fa06736946c172d95139dce5f0ac6f", "f107b269a6ef49b8846e829e4f2bf2d676127fd12b738e8ca15be0474fedf8a3"} {
		bytes, err := hex.DecodeString(mac)
		require.NoError(t, err)
		found, ok := keys.OpenMAC(b.Record(), encoded, bytes)
		require.True(t, ok)
		require.False(t, found.IsBound)
	}
}

func TestATreeIsLoadedAtEachSize(t *testing.T) {
	t.Parallel()
	var tree trail.Tree
	var stored []trail.Hash
	roots := []trail.Hash{tree.Root()}
	for n := range 70 {
		stored = append(stored, tree.Append([]byte{byte(n)})...)
		roots = append(roots, tree.Root())
	}
	for size, root := range roots {
		loaded, err := trail.LoadTree(int64(size), func(indexes []int64) (found []trail.Hash, err error) {
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
		_, err := trail.LoadTree(size, nil)
		require.ErrorIs(t, err, trail.ErrSize)
	}
}
