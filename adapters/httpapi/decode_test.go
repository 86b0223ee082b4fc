package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bankingapi/domain/operation"
)

// hostile is a body and the faults it must be answered with, as
// "code pointer"; none means 200.
type hostile struct {
	name   string
	path   string
	body   string
	faults []string
}

// withSale is saleBody with something else in place of old; it fails when there is
// no old.
func withSale(old, other string) string { return replace(saleBody, old, other) }

func withPush(old, other string) string { return replace(pushBody, old, other) }

func replace(body, old, other string) string {
	if strings.Count(body, old) != 1 {
		panic("not exactly one " + old)
	}
	return strings.Replace(body, old, other, 1)
}

// nested is n objects, one in the other.
func nested(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }

func arrays(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

const (
	record     = "/Parameters/0"
	fundAmount = record + "/FundAmount"
	platform   = record + "/Platform"
)

func hostileJSON() []hostile {
	var all []hostile
	add := func(path, name, body string, faults ...string) {
		all = append(all, hostile{name, path, body, faults})
	}
	onSale := func(name, body string, faults ...string) { add(salePath, "sale: "+name, body, faults...) }
	onPush := func(name, body string, faults ...string) { add(pushPath, "push: "+name, body, faults...) }

	// What is not JSON. Its one fault is that.
	for name, body := range map[string]string{
		"empty": "", "blank": " \t\r\n", "only a BOM": "\ufeff", "BOM": "\ufeff" + saleBody, "UTF-16": "\xff\xfe{\x00}\x00",
		"truncated": saleBody[:len(saleBody)-1], "half": saleBody[:100], "trailing comma in object": withSale(`"PriceID":1`, `"PriceID":1,`),
		"trailing comma in array": withSale(`}]}`, `},]}`), "trailing text": saleBody + "x", "trailing object": saleBody + "{}", "trailing bracket": saleBody + "}",
		"trailing NUL": saleBody + "\x00", "trailing BOM": saleBody + "\ufeff", "second value": saleBody + " " + saleBody, "leading comma": "," + saleBody,
		"comment": "/**/" + saleBody, "line comment": saleBody + "//", "single quotes": strings.ReplaceAll(saleBody, `"`, `'`), "unquoted name": withSale(`"Header"`, `Header`),
		"equals sign": withSale(`"CustomerNo":1001,"T`, `"CustomerNo"=1001,"T`), "missing comma": withSale(`2,`, `2 `), "missing colon": withSale(`"PriceID":1`, `"PriceID" 1`), "missing value": withSale(`"PriceID":1`, `"PriceID":`),
		"double comma": withSale(`2,`, `2,,`), "number as name": withSale(`"PriceID"`, `1`), "null as name": withSale(`"PriceID"`, `null`), "object as name": withSale(`"PriceID"`, `{}`),
		"wrong bracket": withSale(`}]}`, `}}]`), "unclosed string": withSale(`"TRY"`, `"TRY`), "True": withSale("1.5", "True"), "nul": withSale("1.5", "nul"), "nulll": withSale("1.5", "nulll"), "undefined": withSale("1.5", "undefined"),
		"newline in string": withSale("TRY", "T\nRY"), "tab in string": withSale("TRY", "T\tRY"), "NUL in string": withSale("TRY", "T\x00RY"), "DEL alone is fine but 0x1f not": withSale("TRY", "T\x1fRY"),
		"escape x": withSale("TRY", `\x41`), "escape a": withSale("TRY", `\a`), "escape 0": withSale("TRY", `\0`), "short unicode escape": withSale("TRY", `\u41`), "unicode escape without digits": withSale("TRY", `\u`),
		"unicode escape of letters": withSale("TRY", `\uGGGG`), "unicode escape with braces": withSale("TRY", `\u{41}`), "escaped line break": withSale("TRY", "\\\n"), "backslash at the end": withSale(`"TRY"`, `"TRY\"`),
		"no-break space": "\u00a0" + saleBody, "form feed": "\f" + saleBody, "vertical tab": "\v" + saleBody, "line separator": "\u2028" + saleBody, "zero width space": "\u200b" + saleBody,
		"many open arrays in place of a name": strings.Repeat("{[", 100), "xml": "<a/>", "form": "a=b", "only a comma": ",", "only a colon": ":", "only a quote": `"`, "only a minus": "-", "only a bracket": "]", "only a backslash": `\`,
	} {
		onSale("not JSON: "+name, body, "invalid-json")
	}
	for name, bad := range map[string]string{
		"lone byte": "\xff", "continuation": "\x80", "truncated 2": "\xc3", "truncated 3": "\xe2\x82", "truncated 4": "\xf0\x9f\x98", "overlong slash": "\xc0\xaf", "overlong NUL": "\xc0\x80",
		"overlong 3": "\xe0\x80\xaf", "overlong 4": "\xf0\x80\x80\xaf", "surrogate": "\xed\xa0\x80", "surrogate pair": "\xed\xa0\xbd\xed\xb8\x80", "beyond Unicode": "\xf4\x90\x80\x80", "5 bytes": "\xf8\x88\x80\x80\x80", "latin-1": "M\xfcller",
	} {
		onSale("invalid UTF-8 in a value: "+name, withSale("Demo", bad), "invalid-json")
		onSale("invalid UTF-8 in a name: "+name, withSale("HolderCorporationName", bad), "invalid-json")
		onSale("invalid UTF-8 under an unknown name: "+name, withSale(`"Header"`, `"x":["`+bad+`"],"Header"`), "invalid-json")
	}
	for name, bad := range map[string]string{
		"high": `\ud800`, "low": `\udc00`, "high capital": `\uD83D`, "swapped": `\ude00\ud83d`, "two high": `\ud83d\ud83d`, "high and text": `\ud83dx`, "high and escape": `\ud83d\n`, "high and BMP": `\ud83d\u0041`,
	} {
		onSale("lone surrogate in a value: "+name, withSale("Demo", bad), "invalid-json")
		onSale("lone surrogate in a name: "+name, withSale(`"Header"`, `"`+bad+`":1,"Header"`), "invalid-json")
	}
	for _, bad := range []string{
		"+1", "01", "-01", "00", "1.", ".5", "-.5", "1.e3", "1e", "1e+", "1e-", "1E", "0x10", "0b1", "0o7", "1_000", "1,5", "1 000", "--1", "- 1", "1e1.5", "1e 1", "NaN", "nan", "-NaN", "Infinity", "-Infinity", "inf", "∞", "１", "١", "½", "1f", "1n", "1L", "0.1.2", "1-1", "(1)", "1%",
	} {
		onSale("not a number: "+bad, withSale("1.5", bad), "invalid-json")
	}

	// Every spelling of a number is its value.
	for _, spelling := range []string{
		"65", "65.0", "65.000000000000000000000", "6.5e1", "6.5E1", "6.5e+1", "6.5e01", "0.65e2", "650e-1", "6500E-02", "0.00000000000000000000000000065e29", "65e0", "65e-0", "65E+00",
		"65" + strings.Repeat("0", 300) + "e-300", "0." + strings.Repeat("0", 300) + "65e302",
	} {
		onPush("65 as "+spelling[:min(20, len(spelling))], withPush("65", spelling))
	}
	for _, spelling := range []string{"0", "-0", "0.0", "0e0", "-0.0e-5", "0e999999999999999999999", "0e-999999999999999999999", "1", "1e0", "10e-1"} {
		onPush("SendStatus as "+spelling, withPush(`"SendStatus":1`, `"SendStatus":`+spelling))
	}
	for _, other := range []string{"66", "65.5", "-65", "0", "6.5", "650", "65e1", "65.0000000000000000000000001", "64.99999999999999999999999", "9223372036854775807", "1e400", "-1e400", "1e-400", "1e99999999999999999999"} {
		onPush("not 65: "+other, withPush("65", other), "not-allowed "+platform)
	}
	for _, amount := range []string{"0.000001", "1e-6", "1e12", "1000000000000", "1000000000000.000000", "999999999999.999999", "0.1e1"} {
		onSale("FundAmount "+amount, withSale("1.5", amount))
	}
	for amount, code := range map[string]string{
		"0": "out-of-range", "-0": "out-of-range", "-1": "out-of-range", "1000000000001": "out-of-range", "1000000000000.000001": "out-of-range", "1e13": "out-of-range", "1e400": "out-of-range", "-1e400": "out-of-range",
		"0.0000001": "too-many-decimals", "1e-7": "too-many-decimals", "1.0000001": "too-many-decimals", "1e-400": "too-many-decimals",
		`"1"`: "wrong-type", "true": "wrong-type", "[]": "wrong-type", "{}": "wrong-type", "[1]": "wrong-type", `""`: "wrong-type", "null": "required",
	} {
		onSale("FundAmount "+amount, withSale("1.5", amount), code+" "+fundAmount)
	}
	onPush("integer of 64 bits", withPush(`"PushId":"p"`, `"PushId":"p","PushInteractionId":9223372036854775807`))
	onPush("least integer", withPush(`"PushId":"p"`, `"PushId":"p","PushInteractionId":-9223372036854775808`))
	onPush("one more", withPush(`"PushId":"p"`, `"PushId":"p","PushInteractionId":9223372036854775808`), "out-of-range "+record+"/PushInteractionId")
	onPush("one less", withPush(`"PushId":"p"`, `"PushId":"p","PushInteractionId":-9223372036854775809`), "out-of-range "+record+"/PushInteractionId")
	onPush("beyond doubles", withPush(`"PushId":"p"`, `"PushId":"p","PushInteractionId":9007199254740993.5`), "not-an-integer "+record+"/PushInteractionId")

	// Types.
	for _, body := range []string{"null", "true", "0", `"text"`, "[]", "[{}]", `["Header","Parameters"]`} {
		onSale("outermost "+body, body, "wrong-type ")
	}
	for _, value := range []string{"true", "0", `"text"`, "[]", `"{}"`} {
		onSale("Header "+value, withSale(`{"CallerId":"c"}`, value), "wrong-type /Header")
	}
	for _, value := range []string{"true", "0", `"text"`, `{"0":{}}`, `{}`, `"[]"`} {
		onSale("Parameters "+value, `{"Header":{},"Parameters":`+value+`}`, "wrong-type /Parameters")
	}
	for _, value := range []string{"null", "true", "0", `"text"`, "[]", "[{}]"} {
		onSale("record "+value, `{"Header":{},"Parameters":[`+value+`]}`, "wrong-type /Parameters/0")
		onPush("item "+value, withPush(`"PushId":"p"`, `"PushId":"p","TranData":[{"Code":"c"},`+value+`]`), "wrong-type "+record+"/TranData/1")
	}
	for _, value := range []string{"true", "0", `"text"`, "[]"} {
		onSale("FundToProcess "+value, withSale(`{"IMKBCode":"AFA","HolderCorporationName":"Demo","PriceID":1}`, value), "wrong-type "+record+"/FundToProcess")
		onPush("TranData "+value, withPush(`"PushId":"p"`, `"PushId":"p","TranData":`+map[bool]string{true: "{}", false: value}[value == "[]"]), "wrong-type "+record+"/TranData")
	}
	for _, value := range []string{"1", "true", "{}", "[]", `["u"]`} {
		onPush("UserId "+value, withPush(`"u"`, value), "wrong-type "+record+"/UserId")
	}
	onSale("Header null", withSale(`{"CallerId":"c"}`, "null"), "required /Header")
	onSale("no Header", withSale(`"Header":{"CallerId":"c"},`, ""), "required /Header")
	onSale("Parameters null", `{"Header":{},"Parameters":null}`, "required /Parameters")
	onSale("no Parameters", `{"Header":{}}`, "required /Parameters")
	onSale("nothing", `{}`, "required /Header", "required /Parameters")
	onSale("Parameters empty", `{"Header":{},"Parameters":[]}`, "too-few /Parameters")
	onSale("FundToProcess null", withSale(`{"IMKBCode":"AFA","HolderCorporationName":"Demo","PriceID":1}`, "null"), "required "+record+"/FundToProcess")
	onPush("UserId null", withPush(`"u"`, "null"), "required "+record+"/UserId")
	onPush("TranData null", withPush(`"PushId":"p"`, `"PushId":"p","TranData":null`))
	onSale("every optional null", withSale(`{"CallerId":"c"}`, `{"AppKey":null,"Channel":null,"TellerName":null,"CallerId":null,"ChannelSessionId":null,"ChannelRequestId":null}`))

	// Names.
	for wrong, ours := range map[string]string{
		"header": "Header", "HEADER": "Header", "Headers": "Header", "Parameter": "Parameters", "parameters": "Parameters", "Paremeters": "Parameters",
	} {
		onSale("outermost "+wrong, withSale(`"Header":`, `"`+wrong+`":0,"Header":`), "unknown-member /"+wrong+" "+ours)
	}
	for wrong, ours := range map[string]string{
		"fundAmount": "FundAmount", "fund_amount": "FundAmount", "FundAmont": "FundAmount", "Customerno": "CustomerNo", "CustomerNumber": "", "x": "", "": "", "F": "", "Amout": "Amount", "FundAmountFundAmount": "", "__proto__": "", "constructor": "",
	} {
		want := "unknown-member " + record + "/" + wrong
		if ours != "" {
			want += " " + ours
		}
		onSale("member "+wrong, withSale(`"FundAmount"`, `"`+wrong+`":0,"FundAmount"`), want)
	}
	onSale("member in place of ours", withSale(`"FundAmount"`, `"fundamount"`), "unknown-member "+record+"/fundamount FundAmount", "required "+fundAmount)
	onSale("name with slash and tilde", withSale(`"FundAmount"`, `"a/b~c":0,"FundAmount"`), "unknown-member "+record+"/a~1b~0c")
	onSale("name of 64", withSale(`"FundAmount"`, `"`+strings.Repeat("n", 64)+`":0,"FundAmount"`), "unknown-member "+record+"/"+strings.Repeat("n", 64))
	onSale("name of 65", withSale(`"FundAmount"`, `"`+strings.Repeat("n", 65)+`":0,"FundAmount"`), "unknown-member "+record)
	onSale("name with line break", withSale(`"FundAmount"`, `"a\nb":0,"FundAmount"`), "unknown-member "+record)
	onSale("name with escape", withSale(`"FundAmount"`, `"\u001b[31m":0,"FundAmount"`), "unknown-member "+record)
	onSale("name with direction override", withSale(`"FundAmount"`, `"\u202e":0,"FundAmount"`), "unknown-member "+record)
	onSale("name with NUL", withSale(`"FundAmount"`, `"a\u0000":0,"FundAmount"`), "invalid-character "+record)
	onSale("name with umlaut", withSale(`"FundAmount"`, `"Tür":0,"FundAmount"`), "unknown-member "+record+"/Tür")
	onSale("our name with escapes", withSale(`"FundAmount"`, `"\u0046und\u0041mount"`))
	onSale("our name and NUL", withSale(`"FundAmount":1.5`, `"FundAmount\u0000":1.5`), "invalid-character "+record, "required "+fundAmount)
	onSale("Cyrillic A", withSale(`"Demo"`, `"Demo","Аmount":1`), "unknown-member "+record+"/FundToProcess/Аmount")
	onSale("unknown in Header", withSale(`"CallerId":"c"`, `"CallerId":"c","CallerID":"d"`), "unknown-member /Header/CallerID CallerId")
	onPush("unknown in item", withPush(`"PushId":"p"`, `"PushId":"p","TranData":[{"Code":"c","Value":"v"}]`), "unknown-member "+record+"/TranData/0/Value")
	onSale("every level", `{"a":1,"Header":{"b":{"deep":[null]}},"Parameters":[],"c":"x"}`, "unknown-member /a", "unknown-member /Header/b", "unknown-member /c", "too-few /Parameters")

	// The same name twice.
	for level, test := range map[string][2]string{
		"outermost Header":     {withSale(`"Parameters"`, `"Header":{},"Parameters"`), "/Header"},
		"outermost Parameters": {`{"Header":{},"Parameters":[],"Parameters":[]}`, "/Parameters"},
		"Header":               {withSale(`"CallerId":"c"`, `"CallerId":"c","CallerId":"c"`), "/Header/CallerId"},
		"record":               {withSale(`"FundAmount":1.5`, `"FundAmount":1.5,"FundAmount":1.5`), fundAmount},
		"escaped":              {withSale(`"FundAmount":1.5`, `"FundAmount":1.5,"Fund\u0041mount":2`), fundAmount},
		"null first":           {withSale(`"FundAmount":1.5`, `"FundAmount":null,"FundAmount":1.5`), fundAmount},
		"object":               {withSale(`"FundToProcess"`, `"FundToProcess":{},"FundToProcess"`), record + "/FundToProcess"},
		"in object":            {withSale(`"PriceID":1`, `"PriceID":1,"PriceID":2`), record + "/FundToProcess/PriceID"},
		"account":              {withSale(`"BranchCode":1`, `"BranchCode":1,"BranchCode":1`), record + "/DestinationAccount/BranchCode"},
		"first broken":         {withSale(`"FundAmount":1.5`, `"FundAmount":0,"FundAmount":1.5`), fundAmount},
	} {
		onSale("twice: "+level, test[0], "duplicate-member "+test[1])
	}
	// Only the first one is read.
	onSale("twice: not looked into", withSale(`"Parameters":[{`, `"Header":{"AppKey":1,"x":2},"Parameters":[{`), "duplicate-member /Header")
	onPush("twice: item", withPush(`"PushId":"p"`, `"PushId":"p","TranData":[{"Code":"c","Code":"c"}]`), "duplicate-member "+record+"/TranData/0/Code")
	onPush("three times", withPush(`"PushId":"p"`, `"PushId":"p","PushId":"p","PushId":"p"`), "duplicate-member "+record+"/PushId", "duplicate-member "+record+"/PushId")

	// Characters.
	onPush("NUL", withPush(`"u"`, `"a\u0000b"`), "invalid-character "+record+"/UserId")
	onPush("only NUL", withPush(`"u"`, `"\u0000"`), "invalid-character "+record+"/UserId")
	onPush("NUL in Header", withPush(`{}`, `{"AppKey":"\u0000"}`), "invalid-character /Header/AppKey")
	onPush("NUL in TranData", withPush(`"PushId":"p"`, `"PushId":"p","TranData":[{"Code":"c","Name":"\u0000"}]`), "invalid-character "+record+"/TranData/0/Name")
	onPush("NUL in optional", withPush(`"PushId":"p"`, `"PushId":"p","Subject":"\u0000"`), "invalid-character "+record+"/Subject")
	onPush("escaped backslash before u0000", withPush(`"u"`, `"\\u0000"`))
	onPush("other control characters", withPush(`"u"`, `"\u0001\b\f\n\r\t\u001f\u007f"`))
	onPush("noncharacters", withPush(`"u"`, "\"\uffff\U0010ffff\\uffff\\udbff\\udfff\""))
	onPush("pair of surrogates", withPush(`"u"`, `"\ud83d\ude00"`))
	onPush("replacement character", withPush(`"u"`, "\"\ufffd\""))
	onPush("BOM in a text", withPush(`"u"`, "\"\ufeff\""))
	onPush("solidus", withPush(`"u"`, `"\/"`))
	onPush("characters, not bytes", withPush(`"u"`, `"`+strings.Repeat("ş", 200)+`"`))
	onPush("characters, not UTF-16 units", withPush(`"u"`, `"`+strings.Repeat(`\ud83d\ude00`, 200)+`"`))
	onPush("one character more", withPush(`"u"`, `"`+strings.Repeat("ş", 201)+`"`), "too-long "+record+"/UserId")
	onPush("no normalising, no trimming", withPush(`"u"`, `" e\u0301 "`))

	// Depth: the outermost object is 1.
	onSale("depth 16 in objects", withSale(`"Header":`, `"x":`+nested(15)+`,"Header":`), "unknown-member /x")
	onSale("depth 17 in objects", withSale(`"Header":`, `"x":`+nested(16)+`,"Header":`), "nesting-too-deep")
	onSale("depth 16 in arrays", withSale(`"Header":`, `"x":`+arrays(15)+`,"Header":`), "unknown-member /x")
	onSale("depth 17 in arrays", withSale(`"Header":`, `"x":`+arrays(16)+`,"Header":`), "nesting-too-deep")
	onSale("depth 16 in a record", withSale(`1.5`, arrays(13)), "wrong-type "+fundAmount)
	onSale("depth 17 in a record", withSale(`1.5`, arrays(14)), "nesting-too-deep")
	onSale("outermost array of 16", arrays(16), "wrong-type ")
	onSale("outermost array of 17", arrays(17), "nesting-too-deep")
	onSale("as deep as fits", strings.Repeat("[", bodyLimit), "nesting-too-deep")
	onSale("as deep as fits in objects", strings.Repeat(`{"a":`, bodyLimit/5), "nesting-too-deep")
	onSale("deep and then not JSON", strings.Repeat("[", 20)+"}", "nesting-too-deep")

	// White space and order do not count.
	onSale("spread out", strings.NewReplacer(",", " ,\r\n\t", ":", " : ", "{", "{ ", "}", " }\n", "[", "[ ").Replace(saleBody)+"\n\n")
	onSale("backwards", `{"Parameters":[{"SelectedTransactionDate":"","Amount":0,"FundToProcess":{"PriceID":1,"HolderCorporationName":"D","IMKBCode":"AFA.F1"},"DestinationAccount":{"CurrencyCode":"TRY","AccountSuffix":0,"CustomerNo":1,"BranchCode":0},"FundAmount":1,"TransactionType":2,"CustomerNo":1}],"Header":{}}`)

	// Lengths of arrays; limit is 3.
	three := strings.Repeat(`{},`, 3)
	onPush("as many records as may be", `{"Header":{},"Parameters":[`+strings.TrimSuffix(strings.Repeat(pushBody[27:len(pushBody)-2]+",", 3), ",")+`]}`)
	onPush("one more record", `{"Header":{},"Parameters":[`+three+`{}]}`, "too-many /Parameters")
	onPush("far more", `{"Header":{},"Parameters":[`+strings.Repeat(`{},`, 1000)+`{}]}`, "too-many /Parameters")
	onPush("what is beyond is not looked at", `{"Header":{},"Parameters":[`+three+`{},{"x":0},5]}`, "too-many /Parameters")
	onPush("the first beyond is not looked at", `{"Header":{},"Parameters":[`+three+`{"x":0}]}`, "too-many /Parameters")
	onPush("the first beyond is no object", `{"Header":{},"Parameters":[`+three+`5]}`, "too-many /Parameters")
	onPush("what is beyond is JSON", `{"Header":{},"Parameters":[`+three+`{"x":01}]}`, "invalid-json")
	onPush("what is beyond is not too deep", `{"Header":{},"Parameters":[`+three+arrays(15)+`]}`, "nesting-too-deep")
	onSale("a sale beyond", `{"Header":{},"Parameters":[`+three+`{"CustomerNo":"1","x":0}]}`, "too-many /Parameters")
	onPush("100 items", withPush(`"PushId":"p"`, `"PushId":"p","TranData":[`+strings.Repeat(`{"Code":"c"},`, 99)+`{"Code":"c"}]`))
	onPush("101 items", withPush(`"PushId":"p"`, `"PushId":"p","TranData":[`+strings.Repeat(`{"Code":"c"},`, 100)+`{"Code":"c"}]`), "too-many "+record+"/TranData")
	onPush("101st item is not looked at", withPush(`"PushId":"p"`, `"PushId":"p","TranData":[`+strings.Repeat(`{"Code":"c"},`, 100)+`{"x":0}]`), "too-many "+record+"/TranData")

	// All at once.
	onSale("many kinds", `{"Header":{"CallerId":5,"x":1},"Parameters":[{"CustomerNo":"1","TransactionType":3,"FundAmount":0,"DestinationAccount":{"BranchCode":-1,"CustomerNo":1.5,"AccountSuffix":null,"CurrencyCode":"try"},"FundToProcess":{"IMKBCode":"afa","HolderCorporationName":"","PriceID":[]},"Amount":-1,"SelectedTransactionDate":"2026-02-30"}]}`,
		"wrong-type /Header/CallerId", "unknown-member /Header/x", "wrong-type "+record+"/CustomerNo", "wrong-type "+record+"/FundToProcess/PriceID",
		"not-allowed "+record+"/TransactionType", "out-of-range "+fundAmount, "out-of-range "+record+"/DestinationAccount/BranchCode", "not-an-integer "+record+"/DestinationAccount/CustomerNo",
		"required "+record+"/DestinationAccount/AccountSuffix", "invalid-currency "+record+"/DestinationAccount/CurrencyCode", "invalid-format "+record+"/FundToProcess/IMKBCode",
		"required "+record+"/FundToProcess/HolderCorporationName", "out-of-range "+record+"/Amount", "invalid-date "+record+"/SelectedTransactionDate")
	return all
}

func TestHostileJSON(t *testing.T) {
	t.Parallel()
	all := hostileJSON()
	require.Greater(t, len(all), 150)
	for _, test := range all {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newService()
			w := s.post(t, test.path, test.body)
			if len(test.faults) == 0 {
				require.Equal(t, http.StatusOK, w.Code, "%s", w.Body)
				require.Equal(t, 1, s.calls)
				return
			}
			require.Equal(t, http.StatusBadRequest, w.Code)
			require.Zero(t, s.calls)
			var got []string
			for _, f := range problemIn(t, w).Errors {
				text := f.Code + " " + f.Pointer
				if _, ours, suggests := strings.Cut(f.Detail, `Did you mean "`); suggests {
					text += " " + strings.TrimSuffix(ours, `"?`)
				}
				if f.Code == "invalid-json" || f.Code == "nesting-too-deep" {
					text = f.Code
				}
				got = append(got, text)
			}
			require.ElementsMatch(t, test.faults, got)
		})
	}
}

// A request has the same answer and the same values in the use case, whatever
// the previous request was. Buffers are reused.
func TestNothingIsLeftOfTheRequestBefore(t *testing.T) {
	t.Parallel()
	full := map[string]string{
		pushPath: `{"Header":{"AppKey":"a","Channel":"b","TellerName":"c","CallerId":"d","ChannelSessionId":"e","ChannelRequestId":"f"},"Parameters":[` +
			strings.Repeat(`{"ExternalApplicationCode":"\u0041","ExternalTranCode":"g","UserId":"h","PushId":"i","PushInteractionId":1,"Platform":65,`+
				`"Subject":"j","Content":"k","DeepLinkUrl":"l:m","SendStatus":1,"SendDate":"2026-11-20","TranData":[{"Code":"n","Name":"o"}]},`, limit-1) +
			`{"ExternalApplicationCode":"A","UserId":"u","PushId":"p","Platform":65,"SendStatus":1}]}`,
		salePath: withSale(`{"CallerId":"c"}`, `{"AppKey":"a","Channel":"b","TellerName":"c","CallerId":"d","ChannelSessionId":"e","ChannelRequestId":"f"}`),
	}
	unread := map[string]string{ // faults for every member, so that nothing is said about their values
		pushPath: `{"Header":1,"Parameters":[{"ExternalApplicationCode":1,"ExternalTranCode":1,"UserId":1,"PushId":1,"PushInteractionId":"","Platform":"",` +
			`"Subject":1,"Content":1,"DeepLinkUrl":1,"SendStatus":"","SendDate":1,"TranData":1,"x":1}]}`,
		salePath: `{"Header":1,"Parameters":[{"CustomerNo":"","TransactionType":"","FundAmount":"","DestinationAccount":1,"FundToProcess":1,"Amount":"",` +
			`"SelectedTransactionDate":1,"x":1}]}`,
	}
	shared := newService()
	for _, before := range []map[string]string{full, unread, {pushPath: `{"Header":`, salePath: `{"Header":`}} {
		for _, test := range hostileJSON() {
			shared.post(t, test.path, before[test.path])
			shared.header, shared.pushes, shared.sales, shared.calls = operation.Header{}, nil, nil, 0
			alone := newService()
			want, got := alone.post(t, test.path, test.body), shared.post(t, test.path, test.body)
			require.Equal(t, want.Code, got.Code, test.name)
			require.Equal(t, want.Body.String(), got.Body.String(), test.name)
			require.Equal(t, alone.header, shared.header, test.name)
			require.Equal(t, alone.pushes, shared.pushes, test.name)
			require.Equal(t, alone.sales, shared.sales, test.name)
			require.Equal(t, alone.calls, shared.calls, test.name)
		}
	}
}

// A day that could not be read is no day, not even today.
func TestOnlyDaysThatCouldBeReadDiffer(t *testing.T) {
	t.Parallel()
	const (
		sameDay = `"2026-11-21"`
		nextDay = `"2026-11-22"`
	)
	unread := []string{`5`, `true`, `[]`, `{}`, `"\u0000"`, `"2026-11-22\u0000"`}
	for _, day := range unread {
		requireDaysDiffer(t, "wrong day, then one day", nil, day, sameDay, sameDay)
		requireDaysDiffer(t, "between", nil, sameDay, day, sameDay)
		requireDaysDiffer(t, "wrong day, then two days", []string{"/Parameters/2/SelectedTransactionDate"}, day, sameDay, nextDay)
	}
	requireDaysDiffer(t, "no record, then one day", nil, "", sameDay, sameDay)
	requireDaysDiffer(t, "no record, then two days", []string{"/Parameters/2/SelectedTransactionDate"}, "", sameDay, nextDay)
}

// requireDaysDiffer sends a sale for each day. An empty day stands for a record that is no object.
func requireDaysDiffer(t *testing.T, name string, want []string, days ...string) {
	t.Helper()
	records := make([]string, len(days))
	for i, day := range days {
		records[i] = `"text"`
		if day != "" {
			records[i] = `{"SelectedTransactionDate":` + day + `}`
		}
	}
	body := `{"Header":{},"Parameters":[` + strings.Join(records, ",") + `]}`
	var got []string
	for _, f := range problemIn(t, newService().post(t, salePath, body)).Errors {
		if f.Code == "dates-differ" {
			got = append(got, f.Pointer)
		}
	}
	require.Equal(t, want, got, "%s: %s", name, body)
}

func TestAtMostAHundredFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body   string
		listed int
		detail string
	}{
		"100 of JSON":          {`{"Header":{` + unknownMembers(100) + `},"Parameters":[` + oneRecord() + `]}`, 100, " The request breaks 100 rules. All are listed in errors."},
		"101 of JSON":          {`{"Header":{` + unknownMembers(101) + `},"Parameters":[` + oneRecord() + `]}`, 100, " The request breaks more than 100 rules. The first 100 are listed in errors."},
		"100 of JSON, 1 field": {`{"Header":{` + unknownMembers(100) + `},"Parameters":[]}`, 100, " The request breaks more than 100 rules. The first 100 are listed in errors."},
		"99 of JSON, 1 field":  {`{"Header":{` + unknownMembers(99) + `},"Parameters":[]}`, 100, " The request breaks 100 rules. All are listed in errors."},
		"200 wrong types":      {`{"Header":{},"Parameters":[{"TranData":[` + strings.Repeat("1,", 99) + `1]},{"TranData":[` + strings.Repeat("1,", 99) + `1]}]}`, 100, " The request breaks more than 100 rules. The first 100 are listed in errors."},
		"not JSON after 200":   {`{"Header":{` + unknownMembers(200) + `},}`, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := problemIn(t, newService().post(t, pushPath, test.body))
			require.Len(t, p.Errors, test.listed)
			require.Equal(t, p.Message+test.detail, p.Detail)
		})
	}
}

func oneRecord() string { return pushBody[27 : len(pushBody)-2] }

// No answer and no observation repeats a value that the caller sent.
func TestNoValueIsRepeated(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const canary = "73140926535"
		value := rapid.SampledFrom([]string{
			`"` + canary + `"`, canary, "-" + canary + ".5", canary + "e99", `["` + canary + `"]`, `{"a":"` + canary + `"}`, `"` + canary + `\u0000"`, `"` + canary + `\ud800"`, `"` + canary + "\xff\"", canary + "x", `"` + canary,
			`"` + strings.Repeat(canary, 30) + `"`,
		})
		body := rapid.SampledFrom([]string{pushBody, saleBody}).Draw(t, "body")
		for range rapid.IntRange(1, 4).Draw(t, "values") {
			var starts []int // behind each colon
			for i, c := range body {
				if c == ':' {
					starts = append(starts, i+1)
				}
			}
			at := rapid.SampledFrom(starts).Draw(t, "at")
			end := at + strings.IndexAny(body[at:]+",", ",}]")
			body = body[:at] + value.Draw(t, "value") + body[min(end, len(body)):]
		}
		s := newService()
		path := pushPath
		if strings.Contains(body, "FundAmount") {
			path = salePath
		}
		w := s.do(post(path, body))
		require.NotContains(t, w.Body.String(), canary)
		x := s.observed()[0]
		x.CallerID, x.ChannelRequestID, x.ChannelSessionID = "", "", "" // the log line has the ids of the caller
		require.NotContains(t, fmt.Sprintf("%+v", x), canary)
	})
}

// FuzzDecode checks any bytes: the answer is 200 if the use case accepted the
// request, and otherwise 400. Every pointer is a place in the body, and no
// detail repeats a text of it.
func FuzzDecode(f *testing.F) {
	for _, test := range hostileJSON() {
		f.Add([]byte(test.body), test.path == salePath)
	}
	f.Fuzz(func(t *testing.T, body []byte, isSale bool) {
		s := newService()
		path := pushPath
		if isSale {
			path = salePath
		}
		w := s.do(post(path, string(body)))
		switch w.Code {
		case http.StatusOK:
			require.Equal(t, 1, s.calls)
			require.True(t, json.Valid(body))
			return
		case http.StatusRequestEntityTooLarge:
			require.Greater(t, len(body), bodyLimit)
			return
		}
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.Zero(t, s.calls)
		p := problemIn(t, w)
		require.LessOrEqual(t, len(p.Errors), 100)
		broken := slices.ContainsFunc(codes(t, w), func(c string) bool { return c == "invalid-json" || c == "nesting-too-deep" })
		if broken {
			require.Len(t, p.Errors, 1)
		}
		isJSON := jsontext.Value(bytes.Clone(body)).IsValid(jsontext.AllowDuplicateNames(true))
		if !isJSON {
			require.True(t, broken)
		}
		for _, e := range p.Errors {
			if isJSON {
				require.True(t, resolves(body, e.Pointer, e.Code == "required"), "%s %s", e.Code, e.Pointer)
			}
			for _, value := range longValues(body) {
				require.NotContains(t, e.Detail, value)
			}
		}
	})
}

// resolves reports whether the pointer leads somewhere, for required at least
// to the object that lacks the member.
func resolves(body []byte, pointer string, mayLack bool) bool {
	decoder := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true))
	parent := jsontext.Pointer(pointer).Parent()
	for {
		at := string(decoder.StackPointer())
		if at == pointer || (mayLack && at == string(parent)) {
			return true
		}
		if _, err := decoder.ReadToken(); err != nil {
			return false
		}
	}
}

// longValues are the values of the body that no sentence of ours has by chance.
func longValues(body []byte) (values []string) {
	decoder := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true))
	for {
		token, err := decoder.ReadToken()
		if err != nil {
			return values
		}
		_, length := decoder.StackIndex(decoder.StackDepth())
		isText := token.Kind() == jsontext.KindString && len(token.String()) >= 24 && length%2 == 0
		isNumber := token.Kind() == jsontext.KindNumber && len(token.String()) >= 12
		if isText || isNumber {
			values = append(values, token.String())
		}
	}
}
