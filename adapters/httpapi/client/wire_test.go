package client

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// TestTheClientSendsEveryField: a field that the API has but the client lacks
// would get lost without an error.
func TestTheClientSendsEveryField(t *testing.T) {
	t.Parallel()
	header := operation.Header{}
	filled := reflect.ValueOf(&header).Elem()
	for i := range filled.NumField() {
		filled.Field(i).SetString("x")
	}
	sales, err := NewSales(Sale{
		CustomerNo: 1, Units: "1", IMKBCode: "A", HolderCorporationName: "H", PriceID: 1, BranchCode: 1, AccountSuffix: 1,
		CurrencyCode: "TRY", Amount: "1", Day: "2026-12-01",
	})
	require.NoError(t, err)
	body, err := encode(header, NewBuyFund(sales...).records())
	require.NoError(t, err)
	var sent struct {
		Header     map[string]any
		Parameters []map[string]any
	}
	require.NoError(t, json.Unmarshal(body, &sent))
	sale := sent.Parameters[0]
	for name, part := range map[string]struct {
		sent   map[string]any
		fields reflect.Type
	}{
		"Header":  {sent.Header, reflect.TypeFor[operation.Header]()},
		"sale":    {sale, reflect.TypeFor[fund.SaleFields]()},
		"account": {sale["DestinationAccount"].(map[string]any), reflect.TypeFor[fund.AccountFields]()},
		"fund":    {sale["FundToProcess"].(map[string]any), reflect.TypeFor[fund.FundFields]()},
	} {
		for f := range part.fields.Fields() {
			found := f.Name == "RequestID" // it is an HTTP header
			for member := range part.sent {
				found = found || strings.EqualFold(member, f.Name)
			}
			require.True(t, found, "operations.go does not send %s of the %s", f.Name, name)
		}
	}
}
