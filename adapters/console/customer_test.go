package console

import (
	"context"
	"iter"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/fund"
)

// sellsMeanwhile changes a holding after it was read, and before its postings are.
type sellsMeanwhile struct {
	backoffice.Reader
	sell func()
}

func (r sellsMeanwhile) Postings(ctx context.Context, q backoffice.Query) iter.Seq2[fund.PostingEntry, error] {
	r.sell()
	return r.Reader.Postings(ctx, q)
}

// A sale that is settled while the page of its customer is read makes no line of the statement wrong.
func TestAStatementIsThatOfOneMoment(t *testing.T) {
	t.Parallel()
	o := operate(t)
	office := o.console.o.Office
	ctx := audit.By(t.Context(), audit.Who{Actor: "ayse", Reason: "test"})
	of := fund.HoldingKey{CustomerNo: 1001, Fund: fund.Fund{IMKBCode: "AFA", HolderCorporationName: "Demo"}}
	_, err := office.Imports.Holdings(ctx, func(yield func(int64, fund.Holding) error) error {
		return yield(1, fund.Holding{Key: of, Units: 100_000_000})
	}, backoffice.ImportOptions{ID: office.Acts.NewID()})
	require.NoError(t, err)
	office.Reader = sellsMeanwhile{office.Reader, func() {
		_, err := office.Corrector().AdjustHolding(ctx, of, -10_000_000)
		require.NoError(t, err)
	}}
	viewer := o.console.viewer(&session{boxes: &o.console.sessions.boxes})
	status, body := o.get(viewer.Customer(1001)[len("/console/"):])
	require.Equal(t, http.StatusOK, status, body)
	require.Regexp(t, `(?s)>−10\.000000</td>.*data-name="After" class="n">90\.000000</td>.*>&#43;100\.000000</td>.*data-name="After" class="n">100\.000000</td>`, body)
}
