package httpapi

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi/strictjson"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// TestEveryFieldHasAMember: without a member the API refuses a field of the
// domain as an unknown name.
func TestEveryFieldHasAMember(t *testing.T) {
	t.Parallel()
	requireMembers[push.Fields](t, "pushMembers in addpush.go", pushMembers)
	requireMembers[fund.SaleFields](t, "saleMembers in buyfund.go", saleMembers)
	requireMembers[operation.Header](t, "headerMembers in operation.go", headerMembers, "RequestID") // an HTTP header
}

func requireMembers[Fields, T any](t *testing.T, where string, members []strictjson.Member[T], not ...string) {
	t.Helper()
	names := make(map[string]bool)
	for _, m := range members {
		names[strings.ToLower(m.Name)] = true
	}
	for f := range reflect.TypeFor[Fields]().Fields() {
		require.True(t, names[strings.ToLower(f.Name)] || slices.Contains(not, f.Name), "%s have no %s", where, f.Name)
	}
}
