package client

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// TestTheClientSendsEveryField: a field that the API has but the client lacks
// would get lost without an error.
func TestTheClientSendsEveryField(t *testing.T) {
	t.Parallel()
	for name, types := range map[string][2]reflect.Type{
		"Header":            {reflect.TypeFor[wireHeader](), reflect.TypeFor[operation.Header]()},
		"push notification": {reflect.TypeFor[wirePush](), reflect.TypeFor[push.Fields]()},
		"sale":              {reflect.TypeFor[wireSale](), reflect.TypeFor[fund.SaleFields]()},
		"account":           {reflect.TypeFor[wireAccount](), reflect.TypeFor[fund.AccountFields]()},
		"fund":              {reflect.TypeFor[wireFund](), reflect.TypeFor[fund.FundFields]()},
	} {
		fields := types[1].NumField()
		if types[1] == reflect.TypeFor[operation.Header]() {
			fields-- // RequestID is an HTTP header
		}
		require.Equal(t, fields, types[0].NumField(), "operations.go does not send every field of the %s", name)
	}
}
