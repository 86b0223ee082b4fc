package sandbox_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/sandbox"
	"bankingapi/domain/fault"
)

// TestRefusals tries every row of the table in the documentation: each sale is
// refused with its code, at once or on its day.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, refusal := range sandbox.Refusals() {
		t.Run(fmt.Sprint(refusal.Code, " ", refusal.OnItsDay), func(t *testing.T) {
			t.Parallel()
			p := newPartner(t)
			sale := with(t, refusal.Values)
			if refusal.OnItsDay {
				sale = on(p.day(1), sale)
				first := p.sell("a", sale)
				require.Equal(t, 1, first.state(), first.body)
				require.Equal(t, 1, p.moveClock(`{"advance":"24h"}`).Settled.Failed)
			}
			got := p.sell("a", sale)
			require.Equal(t, http.StatusOK, got.status, got.body)
			require.Equal(t, 8, got.state())
			require.Equal(t, []string{refusal.Code}, got.codes(), got.body)
		})
	}
}

// The table has every refusal of the catalogue.
func TestEveryRefusalIsInTheTable(t *testing.T) {
	t.Parallel()
	var want, found []string
	for _, code := range fault.Codes() {
		if code.Remedy == fault.NewOperation {
			want = append(want, code.Name)
		}
	}
	for _, refusal := range sandbox.Refusals() {
		found = append(found, refusal.Code)
	}
	require.Equal(t, want, slices.Compact(found))
}

// request is a request with an error.
type request struct {
	method, path, body string
	header             []string
	// before is sent first.
	before string
}

// catalogue has a request for each error that is not a refusal of a sale.
func catalogue() map[string]request {
	sale := func(old, changed string) request {
		return request{path: sellPath, body: strings.Replace(`{"Header":{},"Parameters":[`+demoSale+`]}`, old, changed, 1)}
	}
	ordered := func(name string) request {
		r := sale("", "")
		r.header = []string{"Sandbox-Fault", name}
		return r
	}
	push := func(members string) request {
		return request{path: pushPath, body: `{"Header":{},"Parameters":[{"ExternalApplicationCode":"APP","UserId":"u","PushId":"p","Platform":65,"SendStatus":1` + members + `}]}`}
	}
	withHeader := func(r request, header ...string) request { r.header = header; return r }
	return map[string]request{
		fault.Required:         sale(demoSale, "{}"),
		fault.WrongType:        sale(`"CustomerNo":1001`, `"CustomerNo":"1001"`),
		fault.UnknownMember:    push(`,"userId":"u"`),
		fault.DuplicateMember:  sale(`"FundAmount":12.5`, `"FundAmount":12.5,"FundAmount":12.5`),
		fault.TooLong:          sale(`"Header":{}`, `"Header":{"CallerId":"`+strings.Repeat("x", 201)+`"}`),
		fault.TooFew:           sale(demoSale, ""),
		fault.TooMany:          push(`,"TranData":[` + strings.Repeat(`{"Code":"a"},`, 100) + `{"Code":"a"}]`),
		fault.NotAllowed:       sale(`"TransactionType":2`, `"TransactionType":1`),
		fault.OutOfRange:       sale(`"FundAmount":12.5`, `"FundAmount":0`),
		fault.NotAnInteger:     sale(`"CustomerNo":1001`, `"CustomerNo":1001.5`),
		fault.TooManyDecimals:  sale(`"FundAmount":12.5`, `"FundAmount":1.0000001`),
		fault.InvalidFormat:    sale(`"AFA"`, `"afa"`),
		fault.InvalidDate:      sale(demoSale, on("20.11.2026", demoSale)),
		fault.DateInThePast:    sale(demoSale, on("2020-01-01", demoSale)),
		fault.DateTooFar:       sale(demoSale, on("9999-01-01", demoSale)),
		fault.DatesDiffer:      sale(demoSale, demoSale+","+on("TOMORROW", demoSale)),
		fault.InvalidURL:       push(`,"DeepLinkUrl":"a b"`),
		fault.InvalidCurrency:  sale(`"TRY"`, `"TL"`),
		fault.InvalidCharacter: push(`,"Subject":"a\u0000b"`),
		fault.InvalidJSON:      {path: sellPath, body: `{"Header":{`},
		fault.NestingTooDeep:   {path: sellPath, body: strings.Repeat("[", 17) + strings.Repeat("]", 17)},

		fault.KeyMissing:              withHeader(sale("", ""), "Ocp-Apim-Subscription-Key", ""),
		fault.KeyInvalid:              withHeader(sale("", ""), "Ocp-Apim-Subscription-Key", "other"),
		fault.OperationNotGranted:     withHeader(sale("", ""), "Ocp-Apim-Subscription-Key", "KEY"+sandbox.PushOnly),
		fault.ContradictsSubscription: withHeader(sale(`"Header":{}`, `"Header":{"Channel":"WEB"}`), "Ocp-Apim-Subscription-Key", "KEY"+sandbox.Mobile),
		fault.CallerIDReused: {path: sellPath, body: `{"Header":{"CallerId":"x"},"Parameters":[` + demoSale + `]}`,
			before: `{"Header":{"CallerId":"x"},"Parameters":[` + strings.Replace(demoSale, "12.5", "13", 1) + `]}`},
		fault.RateLimitExceeded: ordered("rate-limited"),

		fault.UnknownPath:                {path: "/BankingApiV01/Unknown", body: "{}"},
		fault.MethodNotAllowed:           {method: http.MethodGet, path: sellPath},
		fault.BodyTooLarge:               {path: sellPath, body: strings.Repeat(" ", 2<<20)},
		fault.UnsupportedMediaType:       withHeader(sale("", ""), "Content-Type", "text/plain"),
		fault.UnsupportedContentEncoding: withHeader(sale("", ""), "Content-Encoding", "gzip"),

		fault.InternalError:      ordered("internal"),
		fault.Overloaded:         ordered("overloaded"),
		fault.ShuttingDown:       ordered("shutting-down"),
		fault.StorageUnavailable: ordered("unavailable-before"),
		fault.OutcomeUnknown:     ordered("unavailable-after"),
	}
}

// TestTheWholeCatalogue gets every error code from a sandbox.
func TestTheWholeCatalogue(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	requests := catalogue()
	for _, code := range fault.Codes() {
		if code.Remedy == fault.NewOperation {
			continue // TestRefusals
		}
		r, ok := requests[code.Name]
		require.True(t, ok, "no request of %s", code.Name)
		if r.method == "" {
			r.method = http.MethodPost
		}
		for i := range r.header {
			r.header[i] = strings.Replace(r.header[i], "KEY", p.bank.Key, 1)
		}
		if r.before != "" {
			p.send(r.method, r.path, r.before)
		}
		got := p.send(r.method, r.path, strings.ReplaceAll(r.body, "TOMORROW", p.day(1)), r.header...)
		require.Contains(t, got.codes(), code.Name, got.body)
	}
}
