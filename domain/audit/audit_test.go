package audit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/audit"
	"bankingapi/domain/operation"
)

// A terminal in ISO 8859-9 sends bytes that are not UTF-8, and so may the name of a file.
func TestTheTextsOfAnActCanBeStored(t *testing.T) {
	t.Parallel()
	acts := audit.Acts{NewID: func() operation.ID { return operation.ID{1} }, Now: func() (zero time.Time) { return zero }}
	ctx := audit.By(t.Context(), audit.Who{Actor: "ay\xfee", SystemUser: "u\x00", Origin: "h\xff", Reason: "m\xfc\xfeteri \u015f"})
	ctx = acts.Begin(ctx, "import.prices", "fiyat\xfd.csv", "d\xff")
	act, _ := audit.From(ctx)
	require.Equal(t, audit.Who{Actor: "ay\uFFFDe", SystemUser: "u\uFFFD", Origin: "h\uFFFD", Reason: "m\uFFFDteri \u015f"}, act.Who)
	require.Equal(t, "fiyat\uFFFD.csv", act.Object)
	require.Equal(t, "d\uFFFD", act.Details)
	audit.Describe(ctx, "1\xff")
	act, _ = audit.From(ctx)
	require.Equal(t, "1\uFFFD", act.Details)
}

// Not everybody may read the number of a customer.
func TestActsThatNameACustomer(t *testing.T) {
	t.Parallel()
	for _, action := range audit.Actions() {
		adjusts := action == "adjust.holding" || action == "adjust.account"
		for _, object := range []string{"customer", "operation"} {
			act := audit.Act{Action: action, Object: object}
			require.Equal(t, adjusts, act.NamesCustomer(), action)
			require.Equal(t, action == "command.show" && object == "customer", act.ShowsCustomer(), action)
		}
	}
}
