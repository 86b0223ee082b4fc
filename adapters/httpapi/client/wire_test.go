package client

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// TestTheClientSendsEveryField: a field that the API has but the client lacks
// would get lost without an error.
func TestTheClientSendsEveryField(t *testing.T) {
	t.Parallel()
	for name, types := range map[string][2]reflect.Type{
		"Header":  {reflect.TypeFor[wireHeader](), reflect.TypeFor[operation.Header]()},
		"sale":    {reflect.TypeFor[wireSale](), reflect.TypeFor[fund.SaleFields]()},
		"account": {reflect.TypeFor[wireAccount](), reflect.TypeFor[fund.AccountFields]()},
		"fund":    {reflect.TypeFor[wireFund](), reflect.TypeFor[fund.FundFields]()},
	} {
		for f := range types[1].Fields() {
			_, sent := types[0].FieldByName(f.Name)
			// RequestID is an HTTP header.
			require.True(t, sent || f.Name == "RequestID", "operations.go does not send %s of the %s", f.Name, name)
		}
	}
}
