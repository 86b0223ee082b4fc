package httpapi

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// TestEveryFieldHasAMember: without a member the API refuses a field of the
// domain as an unknown name.
func TestEveryFieldHasAMember(t *testing.T) {
	t.Parallel()
	require.Len(t, pushMembers, reflect.TypeFor[push.Fields]().NumField(), "addpush.go misses a field")
	require.Len(t, saleMembers, reflect.TypeFor[fund.SaleFields]().NumField(), "buyfund.go misses a field")
	const notMembers = 1 // RequestID is an HTTP header
	require.Len(t, headerMembers, reflect.TypeFor[operation.Header]().NumField()-notMembers, "request.go misses a field")
}
