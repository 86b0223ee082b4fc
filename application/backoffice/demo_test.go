package backoffice_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/test/fake"
)

func TestTheDemoBookHoldsAndCanBeLoadedAgain(t *testing.T) {
	t.Parallel()
	var ids fake.IDs
	office := backoffice.New(fake.NewStore().Backoffice(nil, func() time.Time { return noon }), audit.Acts{NewID: ids.Next}, time.UTC)
	for range 2 {
		require.NoError(t, office.LoadDemo(t.Context(), day.Of(noon, time.UTC)))
		proof, err := backoffice.Verify(t.Context(), office.Evidence, nil, backoffice.Watch{})
		require.NoError(t, err)
		require.Equal(t, backoffice.Proof{
			Holdings: 3, Accounts: 3, Postings: 6,
			Units: []backoffice.Total{
				{Of: "AFA Demo Portfoy", Customers: "1500.000000", Bank: "-1500.000000"},
				{Of: "GAF.F1 Demo Portfoy", Customers: "250.000000", Bank: "-250.000000"},
			},
			Money: []backoffice.Total{{Of: "TRY", Customers: "0.00", Bank: "0.00"}, {Of: "USD", Customers: "0.00", Bank: "0.00"}},
		}, proof)
	}
	customer, err := office.Customer(t.Context(), 1001, time.Time{})
	require.NoError(t, err)
	require.Len(t, customer.Holdings, 2)
	require.Len(t, customer.Accounts, 2)
}
