package bookfile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/bookfile"
)

// The core bank's file and the book are compared position by position.
func TestReconcile(t *testing.T) {
	t.Parallel()
	const header = "CustomerNo,IMKBCode,HolderCorporationName,Units\n"
	book := office(nil)
	_, err := imports(t, book, "holdings", header+"1,AFA,P,5\n2,AFA,P,7\n4,AFA,P,1\n")
	require.NoError(t, err)
	compare := func(format, lines string) (c bookfile.Comparison, out string, err error) {
		var written strings.Builder
		c, err = bookfile.Reconcile(t.Context(), book, "holdings", bookfile.Format(format), strings.NewReader(header+lines), &written)
		return c, written.String(), err
	}

	const there = "3,AFA,P,9\n2,AFA,P,7.5\n1,AFA,P,5.0\n"
	c, out, err := compare("csv", there)
	require.NoError(t, err)
	require.Equal(t, bookfile.Comparison{Equal: 1, Different: 1, MissingHere: 1, MissingThere: 1}, c)
	require.False(t, c.IsEqual())
	require.Equal(t, "CustomerNo,IMKBCode,HolderCorporationName,Result,There,Here\n"+
		"2,AFA,P,different,7.5,7\n3,AFA,P,missing here,9,\n4,AFA,P,missing there,,1\n", out)
	_, out, err = compare("ndjson", "1,AFA,P,5\n2,AFA,P,7\n")
	require.NoError(t, err)
	require.Equal(t, `{"CustomerNo":4,"IMKBCode":"AFA","HolderCorporationName":"P","Result":"missing there","There":null,"Here":1}`+"\n", out)

	c, _, err = compare("csv", "4,AFA,P,1\n1,AFA,P,5\n2,AFA,P,7\n")
	require.NoError(t, err)
	require.True(t, c.IsEqual())
	require.EqualValues(t, 3, c.Equal)
	c, _, err = compare("csv", "1,AFA,P,5\n2,AFA,P,7\n3,AFA,P,0\n4,AFA,P,1\n")
	require.NoError(t, err)
	require.Equal(t, bookfile.Comparison{Equal: 4}, c, "no units of a fund are no holding")
	_, err = imports(t, book, "holdings", header+"4,AFA,P,0\n")
	require.NoError(t, err)
	c, _, err = compare("csv", "1,AFA,P,5\n2,AFA,P,7\n")
	require.NoError(t, err)
	require.Equal(t, bookfile.Comparison{Equal: 3}, c, "all of it was sold")
	_, _, err = compare("csv", "1,AFA,P,many\n")
	require.EqualError(t, err, "1 bad line")
	require.Equal(t, header+"1,AFA,P,5\n2,AFA,P,7\n4,AFA,P,0\n", exports(t, book, "holdings", "csv"), "nothing is changed")
}

// A sale is credited to an account that exists, so an empty account is not a missing one.
func TestReconcileAnEmptyAccount(t *testing.T) {
	t.Parallel()
	const header = "BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance\n"
	book := office(nil)
	_, err := imports(t, book, "accounts", header+"1,1,1,TRY,0\n")
	require.NoError(t, err)
	var written strings.Builder
	c, err := bookfile.Reconcile(t.Context(), book, "accounts", "csv", strings.NewReader(header), &written)
	require.NoError(t, err)
	require.Equal(t, bookfile.Comparison{MissingThere: 1}, c)
}
