package backoffice_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
)

func TestAProofCountsInWords(t *testing.T) {
	t.Parallel()
	p := backoffice.Proof{Holdings: 3, Sales: 1, Postings: 5}
	require.Equal(t, "3 holdings, 0 accounts, 1 sale and 5 postings", p.CheckedRows())
	require.Equal(t, "the book holds: 3 holdings, 0 accounts, 1 sale and 5 postings checked", p.String())
	p.Findings = 1
	require.Equal(t, "1 finding: 3 holdings, 0 accounts, 1 sale and 5 postings checked", p.String())
}
