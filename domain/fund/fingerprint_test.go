package fund_test

import (
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

const fingerprintRule = `
Fingerprints are stored permanently. If the same content gets another fingerprint,
a repeated sale is answered 422 after an update. So never reorder, remove or
reinterpret what is hashed. To add a field, hash it only when it is present,
after everything else in fingerprint (operation.go), with its name before it.
Then add it to this test with a golden value of its own.`

func TestFingerprintsNeverChange(t *testing.T) {
	t.Parallel()
	header := operation.Header{AppKey: "notifier", Channel: "ŞUBE", TellerName: "Ayşe", ChannelSessionID: "s", ChannelRequestID: "r"}
	full := sale(
		selling("12.5"), at("7"), expecting("15.63"), onDay(saturday), intoSuffix("3"), into("USD"), of("GAF.F1"),
		func(f *fund.SaleFields) { f.FundToProcess.HolderCorporationName = "Demo Portföy" },
	)
	for _, tt := range []struct {
		header operation.Header
		sales  []fund.Sale
		want   string
	}{
		{operation.Header{}, []fund.Sale{sale()}, "16021d84ef11401f674a75a5de718c61303480f6605784213e6c25037ba6dd1f"},
		{header, []fund.Sale{full}, "9d70aadb9ada8ce1d3ccd79249d48766c6a2c7317e340c860087bc9c9109e627"},
		{operation.Header{}, []fund.Sale{sale(), sale(selling("0.000001"), expecting("0.01"))}, "0b484a204c882c32a5581f0f3c593def2e0a24b3d15a7ecbbd109e7c66297561"},
	} {
		f := fingerprint(t, tt.header, tt.sales...)
		if got := hex.EncodeToString(f.Bytes()); got != tt.want {
			t.Errorf("%s, not %s: %s", got, tt.want, fingerprintRule)
		}
	}
}

func TestEveryFieldIsInTheFingerprint(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"Holding.CustomerNo", "Holding.Fund.IMKBCode", "Holding.Fund.HolderCorporationName", "Units",
		"Account.CustomerNo", "Account.BranchCode", "Account.AccountSuffix", "Account.Currency",
		"PriceID", "ControlTotal", "SelectedDay",
	}, fields(reflect.TypeFor[fund.Terms]()), fingerprintRule)
	require.Equal(t, []string{"AppKey", "Channel", "TellerName", "CallerID", "ChannelSessionID", "ChannelRequestID", "RequestID"},
		fields(reflect.TypeFor[operation.Header]()), fingerprintRule)
}

// fields are the exported fields of a struct, with those of structs in it.
func fields(of reflect.Type) (names []string) {
	for i := range of.NumField() {
		f := of.Field(i)
		var inner []string
		if f.Type.Kind() == reflect.Struct {
			inner = fields(f.Type)
		}
		for _, name := range inner {
			names = append(names, f.Name+"."+name)
		}
		if f.IsExported() && len(inner) == 0 {
			names = append(names, f.Name)
		}
	}
	return names
}
