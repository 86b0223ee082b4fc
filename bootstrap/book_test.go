package bootstrap_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/bootstrap"
)

// Imports and exports tell how far they are, and where they ended.
func TestProgressOfFiles(t *testing.T) {
	t.Parallel()
	const rows = 2500
	var file strings.Builder
	file.WriteString("CustomerNo,IMKBCode,HolderCorporationName,Units\n")
	for n := range rows {
		fmt.Fprintf(&file, "%d,AFA,H,100\n", n+1)
	}
	office := officeOf(t, newMemory(nil).open(t, nil))
	var told []int64
	progress := func(n int64) { told = append(told, n) }
	imported, err := bookfile.Import(t.Context(), office, "holdings", strings.NewReader(file.String()), bookfile.Options{Import: backoffice.ImportOptions{Progress: progress}})
	require.NoError(t, err)
	require.EqualValues(t, rows, imported.Lines())
	requireProgress(t, told, rows)

	told = nil
	require.NoError(t, bookfile.Export(t.Context(), office, "holdings", "csv", bookfile.Query{}, io.Discard, progress))
	requireProgress(t, told, rows)

	told = nil
	proof, err := office.Verify(t.Context(), nil, backoffice.Watch{Progress: progress})
	require.NoError(t, err)
	require.EqualValues(t, rows, proof.Holdings)
	requireProgress(t, told, proof.Holdings+proof.Accounts+proof.Sales+proof.Postings)
}

// An import says what it changed, and nothing when it failed.
func TestImportSaysWhatItChanged(t *testing.T) {
	t.Parallel()
	office := officeOf(t, newMemory(nil).open(t, nil))
	var told []backoffice.Imported
	for _, file := range []string{"1,AFA,H,100\n2,AFA,H,100\n", "1,AFA,H,100\n2,AFA,H,101\n3,AFA,H,0\n", "x,AFA,H,100\n"} {
		imported, err := bookfile.Import(t.Context(), office, "holdings", strings.NewReader("CustomerNo,IMKBCode,HolderCorporationName,Units\n"+file), bookfile.Options{})
		if err == nil {
			told = append(told, imported)
		}
		require.Equal(t, strings.HasPrefix(file, "x"), err != nil, "%v", err)
	}
	require.Equal(t, []backoffice.Imported{{New: 2}, {New: 1, Changed: 1, Unchanged: 1}}, told)
}

func officeOf(t *testing.T, app *bootstrap.App) *backoffice.Office {
	t.Helper()
	office, err := app.Backoffice(t.Context())
	require.NoError(t, err)
	return office
}

func requireProgress(t *testing.T, told []int64, end int64) {
	t.Helper()
	require.GreaterOrEqual(t, len(told), 3)
	for i := 1; i < len(told); i++ {
		require.GreaterOrEqual(t, told[i], told[i-1])
	}
	require.Equal(t, end, told[len(told)-1])
}
