package fault_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fault"
)

// stable are the codes of all versions. Clients rely on them: codes may be
// added here, but never changed or removed.
const stable = `
required wrong-type unknown-member duplicate-member too-long too-few too-many not-allowed out-of-range
not-an-integer too-many-decimals invalid-format invalid-date date-in-the-past date-too-far dates-differ
invalid-url invalid-currency invalid-character invalid-json nesting-too-deep
holding-not-found holding-insufficient price-not-found price-not-current account-not-found currency-mismatch
amount-mismatch proceeds-zero proceeds-out-of-range balance-out-of-range cancelled
day-closed after-cut-off
key-missing key-invalid operation-not-granted contradicts-subscription caller-id-reused rate-limit-exceeded
unknown-path method-not-allowed body-too-large unsupported-media-type unsupported-content-encoding
internal-error overloaded shutting-down storage-unavailable outcome-unknown`

func TestCodesAreStable(t *testing.T) {
	t.Parallel()
	var names []string
	for _, c := range fault.Codes() {
		names = append(names, c.Name)
	}
	for _, name := range strings.Fields(stable) {
		require.True(t, slices.Contains(names, name), "%s was changed or removed, but callers rely on it", name)
	}
	for _, name := range names {
		require.True(t, slices.Contains(strings.Fields(stable), name), "%s is new: add it to stable in codes_test.go", name)
	}
}

func TestEveryCodeIsDescribedInFull(t *testing.T) {
	t.Parallel()
	sentence := regexp.MustCompile(`^[A-Z].*[.]$`)
	for _, c := range fault.Codes() {
		require.Regexp(t, `^[a-z]+(-[a-z]+)*$`, c.Name)
		for _, text := range []string{c.Meaning, c.Action, c.Example, c.Provoke} {
			require.Regexp(t, sentence, text, c.Name)
		}
		require.Contains(t, []fault.Remedy{fault.FixRequest, fault.ChangeSubscription, fault.NewOperation, fault.Retry, fault.CheckOutcome}, c.Remedy, c.Name)
		require.Equal(t, c.Pointer == "", c.Detail == "", c.Name)
		require.Equal(t, c.Remedy == fault.NewOperation, c.Detail != "", c.Name)
		require.Equal(t, c.Detail == "", c.Turkish == "", "%s: every refusal has a sentence in Turkish", c.Name)
		require.Equal(t, c.Naming == "", c.TurkishNaming == "", c.Name)
		for _, naming := range []string{c.Naming, c.TurkishNaming} {
			require.Equal(t, naming != "", strings.Contains(naming, "%s"), c.Name)
		}
		described, ok := fault.Describe(c.Name)
		require.True(t, ok)
		require.Equal(t, c, described)
	}
	unknown, ok := fault.Describe("no-such-code")
	require.False(t, ok)
	require.Zero(t, unknown)
}

func TestTheListOfCodesIsACopy(t *testing.T) {
	t.Parallel()
	clear(fault.Codes())
	require.NotEmpty(t, fault.Codes()[0].Name)
}

func TestTheDetailOfARefusal(t *testing.T) {
	t.Parallel()
	c, _ := fault.Describe(fault.PriceNotCurrent)
	require.Equal(t, "This is not the current price of the fund. The current PriceID is 7.", c.Refusal("7", false))
	require.Equal(t, "Fonun fiyatı değişti. Satış yapılmadan önce yeni fiyatı onaylamanız gerekir. Güncel PriceID: 7.", c.Refusal("7", true))
	require.Equal(t, "This is not the current price of the fund.", c.Refusal("", false))
}
