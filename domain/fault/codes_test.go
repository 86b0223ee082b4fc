package fault_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fault"
)

// stable are the codes of all versions with their numbers. Clients rely on them: codes
// may be added here, but never changed or removed, and no number is given twice.
const stable = `
required=1001 wrong-type=1002 unknown-member=1003 duplicate-member=1004 too-long=1005 too-few=1006 too-many=1007
not-allowed=1008 out-of-range=1009 not-an-integer=1010 too-many-decimals=1011 invalid-format=1012 invalid-date=1013
date-in-the-past=1014 date-too-far=1015 dates-differ=1016 invalid-url=1017 invalid-currency=1018
invalid-character=1019 invalid-json=1020 nesting-too-deep=1021 holding-not-found=2001 holding-insufficient=2002
price-not-found=2003 price-not-current=2004 account-not-found=2005 currency-mismatch=2006 amount-mismatch=2007
proceeds-zero=2008 proceeds-out-of-range=2009 balance-out-of-range=2010 cancelled=2011 day-closed=2012
after-cut-off=2013 key-missing=3001 key-invalid=3002 operation-not-granted=3003 contradicts-subscription=3004
caller-id-reused=3005 rate-limit-exceeded=3006 unknown-path=4001 method-not-allowed=4002 body-too-large=4003
unsupported-media-type=4004 unsupported-content-encoding=4005 cursor-lost=4006 internal-error=5001 overloaded=5002 shutting-down=5003
storage-unavailable=5004 outcome-unknown=5005`

func TestCodesAreStable(t *testing.T) {
	t.Parallel()
	var listed []string
	for _, c := range fault.Codes() {
		listed = append(listed, c.Name+"="+strconv.Itoa(c.Number))
	}
	for _, known := range strings.Fields(stable) {
		require.True(t, slices.Contains(listed, known), "%s was changed or removed, but callers rely on it", known)
	}
	for _, code := range listed {
		require.True(t, slices.Contains(strings.Fields(stable), code), "%s is new: add it to stable in codes_test.go", code)
	}
}

func TestNoNumberIsGivenTwice(t *testing.T) {
	t.Parallel()
	names := map[int]string{fault.Unlisted: "a code that is not in the list"}
	for _, c := range fault.Codes() {
		require.Positive(t, c.Number, c.Name)
		require.Empty(t, names[c.Number], "%s has the number of another code", c.Name)
		names[c.Number] = c.Name
		require.Equal(t, c.Number, fault.NumberOf(c.Name))
	}
	require.Equal(t, fault.Unlisted, fault.NumberOf("no-such-code"))
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
