package batch_test

import (
	"encoding/hex"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm/schema"

	"bankingapi/adapters/storage/batch"
)

type (
	eight struct{ A, B, C, D, E, F, G, H string }
	Full  struct {
		S1 eight `gorm:"embedded;embeddedPrefix:s1"`
		S2 eight `gorm:"embedded;embeddedPrefix:s2"`
		S3 eight `gorm:"embedded;embeddedPrefix:s3"`
		S4 eight `gorm:"embedded;embeddedPrefix:s4"`
		S5 eight `gorm:"embedded;embeddedPrefix:s5"`
		S6 eight `gorm:"embedded;embeddedPrefix:s6"`
		S7 eight `gorm:"embedded;embeddedPrefix:s7"`
		S8 eight `gorm:"embedded;embeddedPrefix:s8"`
	}
	tooMany struct {
		Full
		Last string
	}
)

// Columns that are empty in all rows are left out by a bit for each. With one column
// more, the last ones would be left out whatever is in them.
func TestATableHasAtMost64Columns(t *testing.T) {
	t.Parallel()
	require.Len(t, batch.NewTable[Full](jsonDialect{}, schema.NamingStrategy{}).Columns, 64)
	require.PanicsWithValue(t, "batch: model batch_test.tooMany has 65 columns, and a table has at most 64", func() {
		batch.NewTable[tooMany](jsonDialect{}, schema.NamingStrategy{})
	})
}

// written is an Encoder that writes what it receives as texts.
type written []string

func (w *written) add(column, value string) { *w = append(*w, column+"="+value) }

func (w *written) Int(column string, value int64) { w.add(column, strconv.FormatInt(value, 10)) }
func (w *written) Text(column, value string)      { w.add(column, value) }
func (w *written) Bytes(column string, value []byte) {
	w.add(column, hex.EncodeToString(value))
}
func (w *written) Time(column string, value time.Time) {
	w.add(column, value.Format(batch.TextLayout))
}

// The leaves of the trail are made of these values. A column with 0, or with an identifier of
// zeros, is left out. If a column may be NULL, only NULL is left out.
func TestARowIsEncodedColumnByColumn(t *testing.T) {
	t.Parallel()
	table := batch.NewTable[shelf](jsonDialect{}, namer)
	encoded := func(row shelf, skip ...string) (w written) {
		batch.Encode(table, &row, &w, skip...)
		return w
	}
	require.Equal(t, written{
		"room=1", "name=a 'b' \"c\" ?", "owner=010200000000000000000000000000ff", "label=ğ\n{}", "items=5", "seal=0001ff",
		"most=0", "built=2026-02-28", "seen_at=2026-11-20T09:00:00.000001Z", "emptied_at=2026-11-20T09:00:00.999999Z",
	}, encoded(full))
	require.Equal(t, written{"room=2", "name=b", "label=", "seal=09", "built=", "emptied_at=0001-01-01T00:00:00.000000Z"}, encoded(empty, "seen_at"))
}
