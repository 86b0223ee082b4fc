package operation_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/test/kit/value"
)

func TestAnIDIsWrittenAsAUUID(t *testing.T) {
	t.Parallel()
	id, err := operation.ParseID("0199f3a1-2b4c-7d5e-8f60-718293a4b5c6")
	require.NoError(t, err)
	require.Equal(t, operation.ID{0x01, 0x99, 0xf3, 0xa1, 0x2b, 0x4c, 0x7d, 0x5e, 0x8f, 0x60, 0x71, 0x82, 0x93, 0xa4, 0xb5, 0xc6}, id)
	require.Equal(t, "0199f3a1-2b4c-7d5e-8f60-718293a4b5c6", id.String())
	upper, err := operation.ParseID("0199F3A1-2B4C-7D5E-8F60-718293A4B5C6")
	require.NoError(t, err)
	require.Equal(t, id, upper)
	bare, err := operation.ParseID("0199f3a12b4c7d5e8f60718293a4b5c6")
	require.NoError(t, err)
	require.Equal(t, id, bare, "as trail check prints it")
	require.Equal(t, "00000000-0000-0000-0000-000000000000", operation.ID{}.String())
}

func TestEveryIDIsReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var id operation.ID
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		back, err := operation.ParseID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, back)
	})
}

func TestWhatIsNotAUUIDIsNoID(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "0199f3a1", "0199f3a12b4c7d5e8f60718293a4b5c", "0199f3a12b4c7d5e8f60718293a4b5c60", "0199f3a12b4c-7d5e8f60718293a4b5c6", "{0199f3a1-2b4c-7d5e-8f60-718293a4b5c6}",
		"0199f3a1-2b4c-7d5e-8f60-718293a4b5c", "0199f3a1-2b4c-7d5e-8f60-718293a4b5c60",
		"0199f3a1x2b4c-7d5e-8f60-718293a4b5c6", "0199f3a1-2b4cx7d5e-8f60-718293a4b5c6",
		"0199f3a1-2b4c-7d5ex8f60-718293a4b5c6", "0199f3a1-2b4c-7d5e-8f60x718293a4b5c6",
		"0199f3a-12b4c-7d5e-8f60-718293a4b5c6", "g199f3a1-2b4c-7d5e-8f60-718293a4b5c6",
		"0199f3a1-2b4c-7d5e-8f60-718293a4b5cg", "0199f3a1-2b4c-7d5e-8f60-718293a4b5 6", "0199f3a1-2b4c-7d5e-8f60-71829ıı4b5c6",
	} {
		id, err := operation.ParseID(text)
		require.ErrorIs(t, err, operation.ErrSyntax, text)
		require.Equal(t, operation.ID{}, id, text)
	}
}

func TestNamesOfOperations(t *testing.T) {
	t.Parallel()
	for i, n := range operation.Names {
		require.Equal(t, n.String(), operation.AllNames()[i])
	}
	require.Equal(t, "AddPushNotificationResponse", operation.AddPushNotificationResponse.String())
	require.Equal(t, "BuyFundFromCustomer", operation.BuyFundFromCustomer.String())
	require.Empty(t, operation.Name(0).String())
	require.Len(t, operation.AllNames(), len(operation.Names))
}

func TestANameIsOneElementOfAPath(t *testing.T) {
	t.Parallel()
	require.True(t, operation.IsName(strings.Repeat("a", 100)))
	for _, text := range []string{"", "a b", "a/b", "a.b", "ä", strings.Repeat("a", 101)} {
		require.False(t, operation.IsName(text), text)
	}
}

func TestStorageKeepsOperationsByTheseNumbers(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, 1, operation.AddPushNotificationResponse)
	require.EqualValues(t, 2, operation.BuyFundFromCustomer)
}

func TestStatesAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, 1, operation.Recorded)
	require.EqualValues(t, 2, operation.Completed)
	require.EqualValues(t, 8, operation.Failed)
	require.Equal(t, "recorded", operation.Recorded.String())
	require.Equal(t, "completed", operation.Completed.String())
	require.Equal(t, "failed", operation.Failed.String())
	require.Equal(t, "none", operation.State(0).String())
}

// headerFields are the fields of the Header by their pointers.
var headerFields = map[string]func(*operation.Header) *string{
	"/Header/AppKey":           func(h *operation.Header) *string { return &h.AppKey },
	"/Header/Channel":          func(h *operation.Header) *string { return &h.Channel },
	"/Header/TellerName":       func(h *operation.Header) *string { return &h.TellerName },
	"/Header/CallerId":         func(h *operation.Header) *string { return &h.CallerID },
	"/Header/ChannelSessionId": func(h *operation.Header) *string { return &h.ChannelSessionID },
	"/Header/ChannelRequestId": func(h *operation.Header) *string { return &h.ChannelRequestID },
}

func TestEveryHeaderFieldHasAtMost200Characters(t *testing.T) {
	t.Parallel()
	const notMembers = 1 // RequestID
	require.Len(t, headerFields, reflect.TypeFor[operation.Header]().NumField()-notMembers)
	require.Empty(t, new(operation.Header).Faults())
	for pointer, field := range headerFields {
		for _, character := range []string{"x", "ş", "€", "🎉", " "} {
			var h operation.Header
			*field(&h) = strings.Repeat(character, 200)
			require.Empty(t, h.Faults(), pointer)
			*field(&h) += character
			require.Equal(t, []fault.Fault{{Pointer: pointer, Code: "too-long", Detail: "At most 200 characters."}}, h.Faults())
		}
		for _, text := range value.Unkeepable {
			var h operation.Header
			*field(&h) = text
			require.Len(t, h.Faults(), 1)
			require.Equal(t, pointer, h.Faults()[0].Pointer)
			require.Equal(t, "invalid-character", h.Faults()[0].Code)
		}
	}
	require.NotEmpty(t, (&operation.Header{RequestID: "\x00"}).Faults())
}

func TestAllFaultsOfAHeaderComeAtOnce(t *testing.T) {
	t.Parallel()
	var h operation.Header
	for _, field := range headerFields {
		*field(&h) = strings.Repeat("x", 201)
	}
	var pointers []string
	for _, f := range h.Faults() {
		pointers = append(pointers, f.Pointer)
	}
	require.Equal(t, []string{
		"/Header/AppKey", "/Header/Channel", "/Header/TellerName", "/Header/CallerId", "/Header/ChannelSessionId", "/Header/ChannelRequestId",
	}, pointers)
}

func TestAnArrayHas1ToLimitRecords(t *testing.T) {
	t.Parallel()
	require.Equal(t, []fault.Fault{{Pointer: "/Parameters", Code: "too-few", Detail: "At least one record."}}, operation.CountFaults(0, 1000))
	require.Nil(t, operation.CountFaults(1, 1000))
	require.Nil(t, operation.CountFaults(1000, 1000))
	require.Equal(t, []fault.Fault{{Pointer: "/Parameters", Code: "too-many", Detail: "At most 1000 records."}}, operation.CountFaults(1001, 1000))
	require.Nil(t, operation.CountFaults(1, 1))
	require.Equal(t, "At most 1 records.", operation.CountFaults(2, 1)[0].Detail)
}

func TestFaultsOfARecordPointIntoParameters(t *testing.T) {
	t.Parallel()
	require.Equal(t,
		[]fault.Fault{{Pointer: "/Parameters/12/UserId", Code: fault.Required}, {Pointer: "/Parameters/12", Code: fault.WrongType}},
		operation.UnderParameter(12, []fault.Fault{{Pointer: "/UserId", Code: fault.Required}, {Code: fault.WrongType}}))
	require.Nil(t, operation.UnderParameter(0, nil))
	require.Nil(t, operation.UnderParameter(0, []fault.Fault{}), "a record without faults has none, not an empty list")
}

// Nobody finds a record at an index below zero.
func TestAPointerOfAParameterHasAnIndex(t *testing.T) {
	t.Parallel()
	for pointer, want := range map[string]int{"/Parameters/0": 0, "/Parameters/12/FundAmount": 12} {
		i, ok := operation.ParameterOf(pointer)
		require.True(t, ok, pointer)
		require.Equal(t, want, i, pointer)
	}
	for _, pointer := range []string{"", "/Header/CallerId", "/Parameters", "/Parameters/", "/Parameters/-1", "/Parameters/+1/FundAmount", "/Parameters/1x", "/Parameters/99999999999999999999"} {
		_, ok := operation.ParameterOf(pointer)
		require.False(t, ok, pointer)
	}
}
