package batch_test

import (
	"testing"

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
