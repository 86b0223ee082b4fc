package push_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/push"
	"bankingapi/test/kit/value"
)

var number = value.Number

// sent is a push that breaks no rule, with the given changes.
func sent(changes ...func(*push.Fields)) push.Fields {
	f := push.Fields{
		ExternalApplicationCode: "LOANS",
		ExternalTranCode:        "APPROVED",
		UserID:                  "user-7",
		PushID:                  "push-1",
		PushInteractionID:       number("42"),
		Platform:                number("65"),
		Subject:                 "Krediniz onaylandı",
		Content:                 "Başvurunuz sonuçlandı.",
		DeepLinkURL:             "bank://loans/42",
		SendStatus:              number("1"),
		SendDate:                "2026-11-20",
		TranData:                []push.TranDataItem{{Code: "amount", Name: "1.000 TL"}, {Code: "term", Name: ""}},
	}
	for _, change := range changes {
		change(&f)
	}
	return f
}

func notification(t require.TestingT, f push.Fields) push.Notification {
	n, faults := push.New(f)
	require.Empty(t, faults)
	return n
}

// faults are the codes by their pointers.
func faults(t require.TestingT, f push.Fields) map[string]string {
	n, faults := push.New(f)
	if len(faults) > 0 {
		require.Equal(t, push.Notification{}, n, "a push with faults is none")
	}
	return byPointer(t, faults)
}

func byPointer(t require.TestingT, faults []fault.Fault) map[string]string {
	codes := make(map[string]string)
	for _, f := range faults {
		require.NotEmpty(t, f.Detail)
		require.NotContains(t, codes, f.Pointer)
		codes[f.Pointer] = f.Code
	}
	return codes
}

func TestANotificationHoldsWhatWasSentByteForByte(t *testing.T) {
	t.Parallel()
	n := notification(t, sent())
	november20, err := day.Parse("2026-11-20")
	require.NoError(t, err)
	want := push.Values{
		ExternalApplicationCode: "LOANS",
		ExternalTranCode:        "APPROVED",
		UserID:                  "user-7",
		PushID:                  "push-1",
		PushInteractionID:       42,
		HasPushInteractionID:    true,
		Platform:                push.Android,
		Subject:                 "Krediniz onaylandı",
		Content:                 "Başvurunuz sonuçlandı.",
		DeepLinkURL:             "bank://loans/42",
		Sent:                    true,
		SendDate:                november20,
		TranData:                []push.TranDataItem{{Code: "amount", Name: "1.000 TL"}, {Code: "term", Name: ""}},
	}
	require.Equal(t, want, *n.Values())
	restored := push.Restore(want)
	require.Equal(t, n, restored)

	odd := " \t<b>Ş\u0301&amp;\r\n\"'\\u0041 '; DROP TABLE\u202e "
	n = notification(t, sent(func(f *push.Fields) { f.Subject, f.Content, f.UserID = odd, odd, odd }))
	require.Equal(t, []string{odd, odd, odd}, []string{n.Values().Subject, n.Values().Content, n.Values().UserID})
}

func TestTheLeastThatAPushMayHave(t *testing.T) {
	t.Parallel()
	n := notification(t, push.Fields{
		ExternalApplicationCode: "A", UserID: "U", PushID: "P", Platform: number("79"), SendStatus: number("0"),
	})
	require.Equal(t, push.Values{ExternalApplicationCode: "A", UserID: "U", PushID: "P", Platform: push.Other}, *n.Values())
}

func TestHistoryIsNotJudgedByTodaysRules(t *testing.T) {
	t.Parallel()
	record := push.Values{Platform: 99, DeepLinkURL: "not a url"}
	n := push.Restore(record)
	require.Equal(t, record, *n.Values())
}

func TestLengthsOfTexts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pointer     string
		least, most int
		set         func(*push.Fields, string)
	}{
		{"/ExternalApplicationCode", 1, 100, func(f *push.Fields, s string) { f.ExternalApplicationCode = s }},
		{"/ExternalTranCode", 0, 100, func(f *push.Fields, s string) { f.ExternalTranCode = s }},
		{"/UserId", 1, 200, func(f *push.Fields, s string) { f.UserID = s }},
		{"/PushId", 1, 200, func(f *push.Fields, s string) { f.PushID = s }},
		{"/Subject", 0, 1000, func(f *push.Fields, s string) { f.Subject = s }},
		{"/Content", 0, 10_000, func(f *push.Fields, s string) { f.Content = s }},
		{"/TranData/1/Code", 1, 100, func(f *push.Fields, s string) { f.TranData[1].Code = s }},
		{"/TranData/0/Name", 0, 1000, func(f *push.Fields, s string) { f.TranData[0].Name = s }},
	} {
		with := func(text string) push.Fields { return sent(func(f *push.Fields) { tt.set(f, text) }) }
		for _, character := range []string{"x", " ", "ğ", "€", "🎉"} {
			require.Empty(t, faults(t, with(strings.Repeat(character, tt.most-1))), "%s of one less", tt.pointer)
			require.Empty(t, faults(t, with(strings.Repeat(character, tt.most))), "%s of the most", tt.pointer)
			require.Equal(t, map[string]string{tt.pointer: "too-long"}, faults(t, with(strings.Repeat(character, tt.most+1))), tt.pointer)
			require.Empty(t, faults(t, with(character)), "%s of one character", tt.pointer)
		}
		for _, text := range value.Unkeepable {
			require.Equal(t, map[string]string{tt.pointer: "invalid-character"}, faults(t, with(text)), "%s %q", tt.pointer, text)
		}
		want := map[string]string{}
		if tt.least > 0 {
			want[tt.pointer] = "required"
		}
		require.Equal(t, want, faults(t, with("")), tt.pointer)
	}
}

func TestPlatform(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]push.Platform{
		"65": push.Android, "73": push.IOS, "79": push.Other, "65.0": push.Android, "7.3e1": push.IOS, "790e-1": push.Other,
	} {
		n := notification(t, sent(func(f *push.Fields) { f.Platform = number(text) }))
		require.Equal(t, want, n.Values().Platform, text)
	}
	for _, text := range []string{"0", "1", "64", "66", "72", "74", "78", "80", "-65", "65.5", "65.00000000000000000001", "1e99", "321", "650"} {
		require.Equal(t, map[string]string{"/Platform": "not-allowed"}, faults(t, sent(func(f *push.Fields) { f.Platform = number(text) })), text)
	}
	require.Equal(t, map[string]string{"/Platform": "required"}, faults(t, sent(func(f *push.Fields) { f.Platform = number("") })))
}

func TestSendStatus(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"0": 0, "1": 1, "-0": 0, "0.0": 0, "0e5": 0, "1.0": 1, "10e-1": 1} {
		n := notification(t, sent(func(f *push.Fields) { f.SendStatus = number(text) }))
		require.Equal(t, want, n.Values().SendStatus(), text)
		require.Equal(t, want == 1, n.Values().Sent, text)
	}
	for _, text := range []string{"2", "-1", "0.5", "1.0000000000000000000001", "1e99", "1e-99"} {
		require.Equal(t, map[string]string{"/SendStatus": "not-allowed"}, faults(t, sent(func(f *push.Fields) { f.SendStatus = number(text) })), text)
	}
	require.Equal(t, map[string]string{"/SendStatus": "required"}, faults(t, sent(func(f *push.Fields) { f.SendStatus = number("") })))
}

func TestPushInteractionIDIsAnyInteger(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "-1": -1, "42.0": 42, "1e3": 1000, "9223372036854775807": 1<<63 - 1, "-9223372036854775808": -1 << 63,
	} {
		n := notification(t, sent(func(f *push.Fields) { f.PushInteractionID = number(text) }))
		require.Equal(t, want, n.Values().PushInteractionID, text)
		require.True(t, n.Values().HasPushInteractionID, text)
	}
	for text, code := range map[string]string{
		"1.5": "not-an-integer", "1e-1": "not-an-integer", "0.00000000000000000000001": "not-an-integer",
		"9223372036854775808": "out-of-range", "-9223372036854775809": "out-of-range", "1e99": "out-of-range",
		"123456789012345678901234567890": "out-of-range",
	} {
		require.Equal(t, map[string]string{"/PushInteractionId": code}, faults(t, sent(func(f *push.Fields) { f.PushInteractionID = number(text) })), text)
	}
	absent := notification(t, sent(func(f *push.Fields) { f.PushInteractionID = number("") }))
	require.False(t, absent.Values().HasPushInteractionID)
	require.Zero(t, absent.Values().PushInteractionID)
}

func TestDeepLinkURL(t *testing.T) {
	t.Parallel()
	long := "https://bank.example/" + strings.Repeat("a", 2048-len("https://bank.example/"))
	longInTurkish := "https://bank.example/" + strings.Repeat("ş", 2048-len("https://bank.example/"))
	for _, url := range []string{
		"",
		"https://bank.example", "https://bank.example/a.png", "http://bank.example:8080/a?b=c&d=%20#e", "HTTPS://BANK.EXAMPLE/",
		"https://user@bank.example/", "https://192.0.2.1/x", "https://[2001:db8::1]:443/x", "https://bankası.example/ş?ğ=ü",
		"bank://loans/42", "bank://loans", "bank:///loans", "bank://?screen=loans", "bank://#loans", "bank://", "bank:/loans", "bank:loans", "bank:",
		"com.example.bank+push-1://open", "mailto:info@bank.example", "tel:+908500000000", "data:image/png;base64,AAAA",
		"bank", "bank.example", "www.bank.example/x", "/loans/42", "//bank.example/x", "loans/42", "?a=b", "#a", "../a", "//", "şube/1",
		"market://details?id=com.example", "urn:isbn:0451450523", "ftp://bank.example/x",
		long, longInTurkish,
	} {
		n, got := push.New(sent(func(f *push.Fields) { f.DeepLinkURL = url }))
		require.Empty(t, got, url)
		require.Equal(t, url, n.Values().DeepLinkURL)
	}
	for _, url := range []string{
		"://bank.example", ":", ":a", "/a b", "loans 42", "/%zz", "1bank:x",
		"https:", "https://", "https:///x", "https:x", "http://?a=b", "http://:80/", "1bank://x", "ba nk://x", "bänk://x",
		" https://bank.example", "https://bank.example ", "https://bank.example/a b", "https://bank example/", "https://bank.example/\t",
		"https://bank.example/\n", "https://bank.example/\r\nX: y", "https://bank.example/\x7f", "https://bank.example/\x1b[0m",
		"https://bank.example/\u00a0", "https://bank.example/\u0085", "https://bank.example/\u2028", "https://bank.example/\u3000",
		"https://bank.example/%zz", "https://bank.example:port/", "https://[2001:db8::1", "https://%00/", `https:\\bank.example`,
	} {
		require.Equal(t, map[string]string{"/DeepLinkUrl": "invalid-url"}, faults(t, sent(func(f *push.Fields) { f.DeepLinkURL = url })), "%q", url)
	}
	for _, url := range value.Unkeepable {
		_, got := push.New(sent(func(f *push.Fields) { f.DeepLinkURL = url }))
		require.Equal(t, "invalid-character", got[0].Code, "%q", url)
	}
	for _, url := range []string{long + "a", longInTurkish + "ş"} {
		require.Equal(t, map[string]string{"/DeepLinkUrl": "too-long"}, faults(t, sent(func(f *push.Fields) { f.DeepLinkURL = url })))
	}
}

func TestSendDate(t *testing.T) {
	t.Parallel()
	for _, date := range []string{"", "2026-11-20", "2024-02-29", "0001-01-01", "9999-12-31"} {
		n := notification(t, sent(func(f *push.Fields) { f.SendDate = date }))
		require.Equal(t, date, n.Values().SendDate.String())
	}
	for _, midnight := range []string{"2026-11-20T00:00:00", "2026-11-20T00:00:00.0", "2026-11-20T00:00:00.0000000"} {
		n := notification(t, sent(func(f *push.Fields) { f.SendDate = midnight }))
		date := notification(t, sent(func(f *push.Fields) { f.SendDate = "2026-11-20" }))
		require.Equal(t, date, n, "the same content has the same identity")
	}
	for _, date := range []string{"2026-11-20T12:00:00", "2026-02-29", "2026-13-01", "0000-01-01", "20261120", "2026-11-20T10:00:00Z", " ", "20.11.2026", "today"} {
		require.Equal(t, map[string]string{"/SendDate": "invalid-date"}, faults(t, sent(func(f *push.Fields) { f.SendDate = date })), date)
	}
}

func items(n int) []push.TranDataItem {
	items := make([]push.TranDataItem, n)
	for i := range items {
		items[i] = push.TranDataItem{Code: fmt.Sprint("code-", i)}
	}
	return items
}

func TestAtMost100ItemsOfTranData(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 99, 100} {
		got := notification(t, sent(func(f *push.Fields) { f.TranData = items(n) }))
		require.Len(t, got.Values().TranData, n)
	}
	require.Equal(t, map[string]string{"/TranData": "too-many"}, faults(t, sent(func(f *push.Fields) { f.TranData = items(101) })))
	require.Equal(t, map[string]string{"/TranData": "too-many"}, faults(t, sent(func(f *push.Fields) { f.TranData = make([]push.TranDataItem, 101) })))
	require.Equal(t, map[string]string{"/TranData/99/Code": "required"}, faults(t, sent(func(f *push.Fields) {
		f.TranData = items(100)
		f.TranData[99].Code = ""
	})))
}

func TestAllFaultsOfAPushComeAtOnce(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]string{
		"/ExternalApplicationCode": "required",
		"/UserId":                  "required",
		"/PushId":                  "required",
		"/Platform":                "required",
		"/SendStatus":              "required",
	}, faults(t, push.Fields{}))

	x := strings.Repeat("x", 10_001)
	require.Equal(t, map[string]string{
		"/ExternalApplicationCode": "too-long",
		"/ExternalTranCode":        "too-long",
		"/UserId":                  "too-long",
		"/PushId":                  "too-long",
		"/PushInteractionId":       "not-an-integer",
		"/Platform":                "not-allowed",
		"/Subject":                 "too-long",
		"/Content":                 "too-long",
		"/DeepLinkUrl":             "invalid-url",
		"/SendStatus":              "not-allowed",
		"/SendDate":                "invalid-date",
		"/TranData/0/Code":         "required",
		"/TranData/0/Name":         "too-long",
		"/TranData/2/Code":         "too-long",
	}, faults(t, push.Fields{
		ExternalApplicationCode: x, ExternalTranCode: x, UserID: x, PushID: x, PushInteractionID: number("1.5"), Platform: number("66"),
		Subject: x, Content: x, DeepLinkURL: "loans 42", SendStatus: number("2"), SendDate: x,
		TranData: []push.TranDataItem{{Name: x}, {Code: "c", Name: "n"}, {Code: x}},
	}))
	_, both := push.New(sent(func(f *push.Fields) { f.DeepLinkURL = ":" + x }))
	require.Len(t, both, 2, "too long, and no URL either")
}

func TestFaultsNeverRepeatTheValue(t *testing.T) {
	t.Parallel()
	const secret = "SECRET"
	x := strings.Repeat(secret, 10_000)
	_, got := push.New(push.Fields{
		ExternalApplicationCode: x, ExternalTranCode: x, UserID: x, PushID: x, PushInteractionID: number("1.5"), Platform: number("6612"),
		Subject: x, Content: x, DeepLinkURL: x, SendStatus: number("7712"), SendDate: x, TranData: []push.TranDataItem{{Code: x, Name: x}},
	})
	for _, f := range got {
		require.NotContains(t, f.Pointer+f.Code+f.Detail, secret)
		require.NotContains(t, f.Detail, "6612")
		require.NotContains(t, f.Detail, "7712")
	}
}

func TestANotificationFromARecordIsThatOfItsFields(t *testing.T) {
	t.Parallel()
	for _, f := range []push.Fields{sent(), least, sent(func(f *push.Fields) {
		f.Platform, f.SendStatus, f.PushInteractionID = number("73"), number("0"), number("-1")
	})} {
		want := notification(t, f)
		got, faults := push.FromValues(*want.Values())
		require.Empty(t, faults)
		require.Equal(t, want, got)
	}
	none, faults := push.FromValues(push.Values{})
	require.Equal(t, push.Notification{}, none)
	require.Equal(t, map[string]string{
		"/ExternalApplicationCode": "required", "/UserId": "required", "/PushId": "required", "/Platform": "not-allowed",
	}, byPointer(t, faults))
}

func TestNewNotificationsOfAnArray(t *testing.T) {
	t.Parallel()
	good := func(n int) []push.Fields {
		all := make([]push.Fields, n)
		for i := range all {
			all[i] = sent(func(f *push.Fields) { f.PushID = fmt.Sprint("push-", i) })
		}
		return all
	}
	for _, n := range []int{1, 2, 3} {
		got, faults := push.NewNotifications(good(n), 3)
		require.Empty(t, faults)
		require.Len(t, got, n)
		for i := range got {
			require.Equal(t, notification(t, good(n)[i]), got[i])
		}
	}
	for n, code := range map[int]string{0: "too-few", 4: "too-many"} {
		got, faults := push.NewNotifications(good(n), 3)
		require.Nil(t, got)
		require.Equal(t, map[string]string{"/Parameters": code}, byPointer(t, faults))
	}
	array := good(3)
	array[1].PushID = ""
	none, one := push.NewNotifications(array, 3)
	require.Nil(t, none)
	require.Equal(t, map[string]string{"/Parameters/1/PushId": "required"}, byPointer(t, one))

	array = good(3)
	array[0].UserID, array[2].SendStatus, array[2].TranData = "", number(""), []push.TranDataItem{{}}
	got, faults := push.NewNotifications(array, 3)
	require.Nil(t, got)
	require.Equal(t, map[string]string{
		"/Parameters/0/UserId":          "required",
		"/Parameters/2/SendStatus":      "required",
		"/Parameters/2/TranData/0/Code": "required",
	}, byPointer(t, faults))
}

func FuzzDeepLinkURL(f *testing.F) {
	for _, seed := range []string{"https://bank.example/x", "bank://loans", "//x", "http://", "mailto:a@b", "\x00", "a b:c", "https://[::1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, url string) {
		n, got := push.New(sent(func(f *push.Fields) { f.DeepLinkURL = url }))
		if len(got) > 0 || url == "" {
			return
		}
		require.Equal(t, url, n.Values().DeepLinkURL)
		require.Regexp(t, `^[^\s[:cntrl:]]+$`, url)
	})
}

// fields draws pushes of few and similar values, so that many are equal or
// nearly so.
func fields() *rapid.Generator[push.Fields] {
	texts := rapid.SampledFrom([]string{"a", "aa", "ab", "b", "\x01a"})
	optional := rapid.SampledFrom([]string{"", "a", "aa"})
	return rapid.Custom(func(t *rapid.T) push.Fields {
		return push.Fields{
			ExternalApplicationCode: texts.Draw(t, "ExternalApplicationCode"),
			ExternalTranCode:        optional.Draw(t, "ExternalTranCode"),
			UserID:                  texts.Draw(t, "UserId"),
			PushID:                  texts.Draw(t, "PushId"),
			PushInteractionID:       number(rapid.SampledFrom([]string{"", "0", "1", "-1"}).Draw(t, "PushInteractionId")),
			Platform:                number(rapid.SampledFrom([]string{"65", "73", "79"}).Draw(t, "Platform")),
			Subject:                 optional.Draw(t, "Subject"),
			Content:                 optional.Draw(t, "Content"),
			DeepLinkURL:             rapid.SampledFrom([]string{"", "a:a", "a:aa"}).Draw(t, "DeepLinkUrl"),
			SendStatus:              number(rapid.SampledFrom([]string{"0", "1"}).Draw(t, "SendStatus")),
			SendDate:                rapid.SampledFrom([]string{"", "2026-11-20", "2026-11-21"}).Draw(t, "SendDate"),
			TranData: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) push.TranDataItem {
				return push.TranDataItem{Code: texts.Draw(t, "Code"), Name: optional.Draw(t, "Name")}
			}), 0, 2).Draw(t, "TranData"),
		}
	})
}

// TestANotificationSharesNothingWithItsFields: a caller reuses its fields while
// the notification may still wait to be stored.
func TestANotificationSharesNothingWithItsFields(t *testing.T) {
	t.Parallel()
	f := sent()
	n := notification(t, f)
	f.TranData[0] = push.TranDataItem{Code: "other"}
	require.Equal(t, "amount", n.Values().TranData[0].Code)
}
