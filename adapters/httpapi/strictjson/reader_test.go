package strictjson_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi/strictjson"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
)

type order struct {
	Name  string
	Count decimal.Decimal
	To    *place
	Lines []line
}

type place struct{ Code string }

type line struct{ Text string }

var members = []strictjson.Member[order]{
	strictjson.Text("Name", func(o *order) *string { return &o.Name }),
	strictjson.Number("Count", func(o *order) *decimal.Decimal { return &o.Count }),
	strictjson.Object("To", func(o *order) **place { return &o.To }, []strictjson.Member[place]{
		strictjson.Text("Code", func(p *place) *string { return &p.Code }),
	}),
	strictjson.Array("Lines", func(o *order) *[]line { return &o.Lines }, 2, []strictjson.Member[line]{
		strictjson.Text("Text", func(l *line) *string { return &l.Text }),
	}),
}

func decode(text string) (o order, r *strictjson.Reader, isObject bool) {
	r = new(strictjson.Reader)
	r.Body.WriteString(text)
	isObject = strictjson.Decode(r, members, &o)
	return o, r, isObject
}

func TestValuesReachTheirFields(t *testing.T) {
	t.Parallel()
	o, r, isObject := decode(`{"Lines":[{"Text":"a\u00e7"},{}],"To":{"Code":"c"},"Count":1.50e1,"Name":" x "}`)
	require.True(t, isObject)
	require.False(t, r.Broken())
	require.Empty(t, r.Faults())
	fifteen, err := decimal.Parse("15")
	require.NoError(t, err)
	require.Equal(t, order{" x ", fifteen, &place{"c"}, []line{{"aç"}, {}}}, o)
}

func TestNullMeansAbsent(t *testing.T) {
	t.Parallel()
	o, r, isObject := decode(`{"Name":null,"Count":null,"To":null,"Lines":null}`)
	require.True(t, isObject)
	require.Empty(t, r.Faults())
	require.Equal(t, order{}, o)
}

func TestEveryFaultIsCollected(t *testing.T) {
	t.Parallel()
	o, r, isObject := decode(`{"Name":1,"name":"x","Count":"1","To":{"Code":"c","Code":"d"},"Lines":[[],{"Text":"a\u0000"}]}`)
	require.True(t, isObject)
	require.False(t, r.Broken())
	require.Equal(t, []fault.Fault{
		{Pointer: "/Name", Code: fault.WrongType, Detail: "Must be a string."},
		{Pointer: "/name", Code: fault.UnknownMember, Detail: `Unknown member. Did you mean "Name"?`},
		{Pointer: "/Count", Code: fault.WrongType, Detail: "Must be a number, without quotes."},
		{Pointer: "/To/Code", Code: fault.DuplicateMember, Detail: "Duplicate member name in this object."},
		{Pointer: "/Lines/0", Code: fault.WrongType, Detail: "Must be an object."},
		{Pointer: "/Lines/1/Text", Code: fault.InvalidCharacter, Detail: "Must not have the character U+0000."},
	}, r.Faults())
	require.Equal(t, "c", o.To.Code, "the first of two counts")
}

func TestAnArrayKeepsOneItemBeyondItsLimit(t *testing.T) {
	t.Parallel()
	o, r, _ := decode(`{"Lines":[{},{},{},{"x":1},5]}`)
	require.Len(t, o.Lines, 3)
	require.Empty(t, r.Faults(), "items beyond that are not read")
}

func TestTextThatIsNotJSONHasOneFault(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                 "invalid-json  The body is empty. It must be a JSON object.",
		"{\x00}\x00":                       "invalid-json  The body is in UTF-16 or UTF-32. Send UTF-8.",
		"\x00{\x00}":                       "invalid-json  The body is in UTF-16 or UTF-32. Send UTF-8.",
		"\x00\x00\x00{":                    "invalid-json  The body is in UTF-16 or UTF-32. Send UTF-8.",
		"\xff\xfe{\x00}\x00":               "invalid-json  The body is in UTF-16 or UTF-32. Send UTF-8.",
		"\xfe\xff\x00{\x00}":               "invalid-json  The body is in UTF-16 or UTF-32. Send UTF-8.",
		"\ufeff{}":                         "invalid-json  The body must not begin with a byte order mark (U+FEFF). Send UTF-8 without one.",
		`{"Name":1,"x":2,}`:                "invalid-json  The body is not valid JSON at byte 15.",
		`{"To":{"Code":"a`:                 "invalid-json /To/Code The body ends too early at byte 16.",
		"{\"Name\":\"\xff\"}":              "invalid-json /Name The body is not valid UTF-8 at byte 9.",
		`{"Name":"\ud800"}`:                "invalid-json /Name A string has a lone surrogate at byte 9.",
		`{} x`:                             "invalid-json  Nothing may follow the object. There is text at byte 3.",
		strings.Repeat(`{"a":`, 17):        "nesting-too-deep " + strings.Repeat("/a", 16) + " The body must not nest deeper than 16.",
		`{"To":` + strings.Repeat("[", 20): "nesting-too-deep /To" + strings.Repeat("/0", 14) + " The body must not nest deeper than 16.",
	} {
		_, r, isObject := decode(text)
		require.True(t, r.Broken(), text)
		require.Len(t, r.Faults(), 1, text)
		f := r.Faults()[0]
		require.Equal(t, want, f.Code+" "+f.Pointer+" "+f.Detail, text)
		require.False(t, isObject && f.Detail == "", text)
	}
}

func TestOnlyAnObjectIsOne(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"null", "[]", `"{}"`, "1", "true"} {
		_, r, isObject := decode(text)
		require.False(t, isObject, text)
		require.False(t, r.Broken(), text)
		require.Equal(t, []fault.Fault{{Code: fault.WrongType, Detail: "Must be an object."}}, r.Faults(), text)
	}
}

func TestJoinLeavesOutWhatCouldNotBeRead(t *testing.T) {
	t.Parallel()
	domain := []fault.Fault{
		{Pointer: "/Name", Code: "required"}, {Pointer: "/To/Code", Code: "too-long"}, {Pointer: "/Count", Code: "required"}, {Pointer: "/Total", Code: "required"},
	}
	_, r, _ := decode(`{"Name":1,"To":5}`)
	r.Missing("/Total", "Required.")
	all, more := r.Join(domain)
	require.False(t, more)
	var got []string
	for _, f := range all {
		got = append(got, f.Code+" "+f.Pointer)
	}
	require.Equal(t, []string{"wrong-type /Name", "wrong-type /To", "required /Total", "required /Count"}, got)
}

func TestAtMostMaxFaultsAreListed(t *testing.T) {
	t.Parallel()
	_, r, _ := decode(`{"Lines":[{` + strings.Repeat(`"x":1,`, strictjson.MaxFaults) + `"x":1}]}`)
	all, more := r.Join(nil)
	require.Len(t, all, strictjson.MaxFaults)
	require.True(t, more)
}

func TestResetForgetsTheText(t *testing.T) {
	t.Parallel()
	_, r, _ := decode(`{"Name":1,` + strings.Repeat(" ", 1<<17))
	require.True(t, r.Broken())
	r.Reset()
	require.False(t, r.Broken())
	require.Empty(t, r.Faults())
	require.Less(t, r.Body.Cap(), 1<<17, "a large buffer is not kept")
	r.Body.WriteString(`{"Name":"again"}`)
	var o order
	require.True(t, strictjson.Decode(r, members, &o))
	require.Equal(t, "again", o.Name)
}

// FuzzDecode: no text makes the reader panic, and text that it accepts without
// a fault reads the same a second time.
func FuzzDecode(f *testing.F) {
	f.Add(`{"Name":"a","Count":1,"To":{"Code":"c"},"Lines":[{"Text":"t"}]}`)
	f.Add("\ufeff{}")
	f.Add(`{"Name":"\ud800"}`)
	f.Fuzz(func(t *testing.T, text string) {
		first, r, isObject := decode(text)
		if r.Broken() {
			require.Len(t, r.Faults(), 1)
			return
		}
		second, _, _ := decode(text)
		require.Equal(t, first, second)
		require.Equal(t, isObject, !strings.Contains("null true false", strings.TrimSpace(text)) && strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{"))
	})
}
