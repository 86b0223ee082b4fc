package subscription_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

func made(t require.TestingT, fields subscription.Subscription) *subscription.Subscription {
	s, err := subscription.New(fields)
	require.NoError(t, err)
	return s
}

// key is a key of 16 equal bytes.
func key(t require.TestingT, b byte) subscription.Key {
	k, err := subscription.NewKey(bytes.NewReader(bytes.Repeat([]byte{b}, 16)))
	require.NoError(t, err)
	return k
}

// withKeys is an active subscription whose keys are key 1 and key 2.
func withKeys(t require.TestingT) *subscription.Subscription {
	s := made(t, subscription.Subscription{Name: "mobile"})
	require.NoError(t, s.Regenerate(subscription.Primary, key(t, 1), time.Time{}))
	require.NoError(t, s.Regenerate(subscription.Secondary, key(t, 2), time.Time{}))
	return s
}

func TestAKeyIs128BitsInHex(t *testing.T) {
	t.Parallel()
	random := bytes.NewReader([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255, 99})
	k, err := subscription.NewKey(random)
	require.NoError(t, err)
	require.Equal(t, "000102030405060708090a0b0c0d0eff", k.Reveal())
	require.Equal(t, 1, random.Len(), "no more is drawn than is needed")
	require.Equal(t, subscription.Hash(sha256.Sum256([]byte("000102030405060708090a0b0c0d0eff"))), k.Hash())
	require.Equal(t, k.Hash(), subscription.HashOf(k.Reveal()))
}

func TestNoKeyWithoutRandom(t *testing.T) {
	t.Parallel()
	empty := errors.New("no entropy")
	_, err := subscription.NewKey(iotest.ErrReader(empty))
	require.ErrorIs(t, err, empty)
	_, err = subscription.NewKey(bytes.NewReader(make([]byte, 15)))
	require.Error(t, err)
}

func TestAKeyDoesNotShowItself(t *testing.T) {
	t.Parallel()
	k := key(t, 0xab)
	for _, verb := range []string{"%s", "%v", "%+v", "%#v", "%q", "%x"} {
		require.NotContains(t, fmt.Sprintf(verb, k), "abab", verb)
		require.NotContains(t, fmt.Sprintf(verb, &k), "abab", verb)
		require.NotContains(t, fmt.Sprintf(verb, struct{ Key subscription.Key }{k}), "abab", verb)
	}
	require.Equal(t, "***", fmt.Sprint(k))
	require.Equal(t, "***", fmt.Sprintf("%#v", k))
}

func TestANewSubscriptionIsActiveAndMayCallEverything(t *testing.T) {
	t.Parallel()
	s := made(t, subscription.Subscription{Name: "mobile", State: subscription.Cancelled})
	require.Equal(t, &subscription.Subscription{
		Name: "mobile", State: subscription.Active,
		Operations: operation.AllNames(),
	}, s)
	s.Operations[0] = ""
	require.Equal(t, "AddPushNotificationResponse", operation.AllNames()[0], "the default is a copy")
}

func TestOperationsAreKeptOnceAndInOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ given, want []string }{
		{nil, operation.AllNames()},
		{[]string{}, operation.AllNames()},
		{[]string{"BuyFundFromCustomer", "Accept", "AddPushNotificationResponse", "BuyFundFromCustomer"}, []string{"AddPushNotificationResponse", "BuyFundFromCustomer", "Accept"}},
		{[]string{"BuyFundFromCustomer"}, []string{"BuyFundFromCustomer"}},
		{[]string{"AddPushNotificationResponse", "AddPushNotificationResponse"}, []string{"AddPushNotificationResponse"}},
	} {
		s := made(t, subscription.Subscription{Name: "mobile", Operations: tt.given})
		require.Equal(t, tt.want, s.Operations)
		for _, n := range operation.Names {
			require.Equal(t, slices.Contains(tt.want, n.String()), s.MayCall(n.String()))
		}
		require.False(t, s.MayCall(""))
	}
}

func TestWhatASubscriptionMayBe(t *testing.T) {
	t.Parallel()
	afterTheLast := time.Date(9999, 12, 31, 24, 0, 0, 0, time.UTC)
	lastOfIstanbul := subscription.KeyLife{Expires: afterTheLast.Add(-3 * time.Hour)}
	for _, s := range []subscription.Subscription{
		{Name: "m"},
		{Name: strings.Repeat("x", 100)},
		{Name: strings.Repeat("ş", 100)},
		{Name: "Mobil bankacılık (test) #1"},
		{Name: "m", RequestsPerSecond: 1_000_000},
		{Name: "m", PrimaryKey: lastOfIstanbul, SecondaryKey: lastOfIstanbul},
		{Name: "m", ClientCertificate: strings.Repeat("0A:", 31) + "0A"},
		{Name: "m", AppKey: strings.Repeat("🎉", 200), Channel: strings.Repeat("x", 200), TellerName: strings.Repeat("x", 200)},
	} {
		made(t, s)
	}
	for _, tt := range []struct {
		fields        subscription.Subscription
		pointer, code string
	}{
		{subscription.Subscription{}, "/Name", "required"},
		{subscription.Subscription{Name: strings.Repeat("x", 101)}, "/Name", "too-long"},
		{subscription.Subscription{Name: strings.Repeat("ş", 101)}, "/Name", "too-long"},
		{subscription.Subscription{Name: "a\nb"}, "/Name", "invalid-character"},
		{subscription.Subscription{Name: "a\x00"}, "/Name", "invalid-character"},
		{subscription.Subscription{Name: "a\x1b[0m"}, "/Name", "invalid-character"},
		{subscription.Subscription{Name: "a\xff"}, "/Name", "invalid-character"},
		{subscription.Subscription{Name: "a\u202eb"}, "/Name", "invalid-character"},
		{subscription.Subscription{Name: "m", RequestsPerSecond: -1}, "/RequestsPerSecond", "out-of-range"},
		{subscription.Subscription{Name: "m", ClientCertificate: "0a"}, "/ClientCertificate", "invalid-character"},
		{subscription.Subscription{Name: "m", ClientCertificate: strings.Repeat("x", 64)}, "/ClientCertificate", "invalid-character"},
		{subscription.Subscription{Name: "m", AppKey: strings.Repeat("ş", 201)}, "/AppKey", "too-long"},
		{subscription.Subscription{Name: "m", Channel: strings.Repeat("x", 201)}, "/Channel", "too-long"},
		{subscription.Subscription{Name: "m", TellerName: strings.Repeat("x", 201)}, "/TellerName", "too-long"},
		{subscription.Subscription{Name: "m", AppKey: "a\x00b"}, "/AppKey", "invalid-character"},
		{subscription.Subscription{Name: "m", Channel: "\xc3"}, "/Channel", "invalid-character"},
		{subscription.Subscription{Name: "m", TellerName: "a\x00"}, "/TellerName", "invalid-character"},
		{subscription.Subscription{Name: "m", PrimaryKey: subscription.KeyLife{Expires: afterTheLast}}, "/Expires", "out-of-range"},
		{subscription.Subscription{Name: "m", SecondaryKey: subscription.KeyLife{Expires: afterTheLast}}, "/Expires", "out-of-range"},
	} {
		s, err := subscription.New(tt.fields)
		require.Nil(t, s)
		require.Equal(t, fault.Invalid, fault.KindOf(err))
		require.Len(t, fault.Of(err), 1)
		require.Equal(t, tt.pointer, fault.Of(err)[0].Pointer)
		require.Equal(t, tt.code, fault.Of(err)[0].Code, tt.pointer)
	}
}

func TestAllFaultsOfASubscriptionComeAtOnce(t *testing.T) {
	t.Parallel()
	x := strings.Repeat("x", 201) + "\x00"
	_, err := subscription.New(subscription.Subscription{RequestsPerSecond: -1, AppKey: x, Channel: x, TellerName: x})
	var got []string
	for _, f := range fault.Of(err) {
		require.NotEmpty(t, f.Detail)
		got = append(got, f.Code+" "+f.Pointer)
	}
	require.Equal(t, []string{
		"required /Name", "out-of-range /RequestsPerSecond",
		"too-long /AppKey", "invalid-character /AppKey", "too-long /Channel", "invalid-character /Channel",
		"too-long /TellerName", "invalid-character /TellerName",
	}, got)
}

// opens reports whether the key opens the subscription while no key expires.
func opens(s *subscription.Subscription, presented subscription.Hash) bool {
	_, ok := s.OpensAt(presented, time.Time{})
	return ok
}

func TestBothKeysOpenUntilTheyAreReplaced(t *testing.T) {
	t.Parallel()
	s := withKeys(t)
	require.True(t, opens(s, key(t, 1).Hash()))
	require.True(t, opens(s, key(t, 2).Hash()))
	require.False(t, opens(s, key(t, 3).Hash()))
	require.False(t, opens(s, subscription.HashOf("")))

	require.NoError(t, s.Regenerate(subscription.Primary, key(t, 3), time.Time{}))
	require.False(t, opens(s, key(t, 1).Hash()))
	require.True(t, opens(s, key(t, 2).Hash()), "the other key goes on")
	require.True(t, opens(s, key(t, 3).Hash()))

	require.NoError(t, s.Regenerate(subscription.Secondary, key(t, 4), time.Time{}))
	require.False(t, opens(s, key(t, 2).Hash()))
	require.True(t, opens(s, key(t, 3).Hash()))
	require.True(t, opens(s, key(t, 4).Hash()))
}

func TestStatesAndKeysHaveTheNamesThatCommandsAndStorageUse(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, "active", subscription.Active)
	require.EqualValues(t, "suspended", subscription.Suspended)
	require.EqualValues(t, "cancelled", subscription.Cancelled)
	require.EqualValues(t, "primary", subscription.Primary)
	require.EqualValues(t, "secondary", subscription.Secondary)
}

func TestOnlyTwoKeys(t *testing.T) {
	t.Parallel()
	s := withKeys(t)
	for _, slot := range []subscription.Slot{"", "tertiary", "Primary"} {
		require.Equal(t, fault.Invalid, fault.KindOf(s.Regenerate(slot, key(t, 9), time.Time{})))
	}
	require.Equal(t, withKeys(t), s, "both keys are as they were")
}

func TestAHashIsEqualOnlyToItself(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		require.Equal(t, a == b, subscription.HashOf(a).Equal(subscription.HashOf(b)))
		require.True(t, subscription.HashOf(a).Equal(subscription.HashOf(a)))
	})
}

func TestStates(t *testing.T) {
	t.Parallel()
	const none subscription.State = "none"
	all := []subscription.State{subscription.Active, subscription.Suspended, subscription.Cancelled}
	for _, from := range all {
		for _, to := range append([]subscription.State{none, "", "Active"}, all...) {
			s := withKeys(t)
			require.NoError(t, s.Become(from))
			err := s.Become(to)
			switch {
			case to == none || to == "" || to == "Active":
				require.Equal(t, fault.Invalid, fault.KindOf(err))
				require.Equal(t, from, s.State)
			case from == subscription.Cancelled && to != subscription.Cancelled:
				require.ErrorIs(t, err, subscription.ErrCancelled)
				require.Equal(t, subscription.Cancelled, s.State)
			default:
				require.NoError(t, err)
				require.Equal(t, to, s.State)
			}
			require.Equal(t, s.State == subscription.Active, opens(s, key(t, 1).Hash()))
			require.Equal(t, s.State == subscription.Active, opens(s, key(t, 2).Hash()))
		}
	}
}

func TestACancelledSubscriptionGetsNoNewKey(t *testing.T) {
	t.Parallel()
	s := withKeys(t)
	require.NoError(t, s.Become(subscription.Cancelled))
	require.ErrorIs(t, s.Regenerate(subscription.Primary, key(t, 3), time.Time{}), subscription.ErrCancelled)
	require.ErrorIs(t, s.Regenerate(subscription.Secondary, key(t, 3), time.Time{}), subscription.ErrCancelled)
	require.Equal(t, key(t, 1).Hash(), s.PrimaryHash)
	require.Equal(t, key(t, 2).Hash(), s.SecondaryHash)

	suspended := withKeys(t)
	require.NoError(t, suspended.Become(subscription.Suspended))
	require.NoError(t, suspended.Regenerate(subscription.Primary, key(t, 3), time.Time{}))
}

func TestTheHeaderIsCompletedByWhatIsDefined(t *testing.T) {
	t.Parallel()
	defined := made(t, subscription.Subscription{Name: "mobile", AppKey: "app", Channel: "chan", TellerName: "tell"})
	nothing := made(t, subscription.Subscription{Name: "mobile"})
	tracking := operation.Header{CallerID: "c-1", ChannelSessionID: "s", ChannelRequestID: "r"}
	with := func(appKey, channel, teller string) operation.Header {
		h := tracking
		h.AppKey, h.Channel, h.TellerName = appKey, channel, teller
		return h
	}
	for _, tt := range []struct {
		s                *subscription.Subscription
		sent, recorded   operation.Header
		contradictsPaths []string
	}{
		{defined, with("", "", ""), with("app", "chan", "tell"), nil},
		{defined, with("app", "", "tell"), with("app", "chan", "tell"), nil},
		{defined, with("app", "chan", "tell"), with("app", "chan", "tell"), nil},
		{defined, with("x", "", ""), operation.Header{}, []string{"/Header/AppKey"}},
		{defined, with("APP", "", ""), operation.Header{}, []string{"/Header/AppKey"}},
		{defined, with("app ", "chan", ""), operation.Header{}, []string{"/Header/AppKey"}},
		{defined, with("app", "x", ""), operation.Header{}, []string{"/Header/Channel"}},
		{defined, with("", "", "x"), operation.Header{}, []string{"/Header/TellerName"}},
		{defined, with("x", "y", "z"), operation.Header{}, []string{"/Header/AppKey", "/Header/Channel", "/Header/TellerName"}},
		{nothing, with("", "", ""), with("", "", ""), nil},
		{nothing, with("x", "y", "z"), with("x", "y", "z"), nil},
	} {
		sent := tt.sent
		recorded, err := tt.s.Complete(sent)
		require.Equal(t, tt.sent, sent, "the caller's header is left alone")
		if tt.contradictsPaths == nil {
			require.NoError(t, err)
			require.Equal(t, tt.recorded, recorded)
			continue
		}
		require.Equal(t, fault.Forbidden, fault.KindOf(err))
		var pointers []string
		for _, f := range fault.Of(err) {
			require.Equal(t, "contradicts-subscription", f.Code)
			require.NotContains(t, f.Detail, "app")
			pointers = append(pointers, f.Pointer)
		}
		require.Equal(t, tt.contradictsPaths, pointers)
	}
}

// A host makes its caller itself. What no storage can keep is refused before it is written: one
// engine would keep it, and another one fail.
func TestTextsOfACallerOfAHost(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a\x00b", "a\xff", "\xed\xa0\x80"} {
		for pointer, s := range map[string]subscription.Subscription{
			"/Name": {Name: text}, "/AppKey": {AppKey: text}, "/Channel": {Channel: text}, "/TellerName": {TellerName: text},
		} {
			_, err := s.Complete(operation.Header{})
			require.Equal(t, fault.Invalid, fault.KindOf(err), "%s %q", pointer, text)
			require.Equal(t, fault.InvalidCharacter, fault.Of(err)[0].Code)
			require.Equal(t, pointer, fault.Of(err)[0].Pointer)
		}
	}
	_, err := (&subscription.Subscription{Name: strings.Repeat("ş", 101)}).Complete(operation.Header{})
	require.NoError(t, err)
}

func TestASubscriptionMayRequireACallerID(t *testing.T) {
	t.Parallel()
	strict := &subscription.Subscription{RequireCallerID: true}
	require.Equal(t, []fault.Fault{{
		Pointer: "/Header/CallerId", Code: "required", Detail: "Required: a unique id of the operation, 1 to 200 characters.",
	}}, strict.Missing(operation.Header{AppKey: "app"}))
	require.Empty(t, strict.Missing(operation.Header{CallerID: "c"}))
	require.Empty(t, new(subscription.Subscription).Missing(operation.Header{}))
}

// A key that opens no subscription may call nothing.
func TestNoSubscriptionMayCallNothing(t *testing.T) {
	t.Parallel()
	var none *subscription.Subscription
	require.False(t, none.MayCall("BuyFundFromCustomer"))
	require.Empty(t, none.Missing(operation.Header{}))
	_, err := none.Complete(operation.Header{})
	require.Equal(t, fault.Forbidden, fault.KindOf(err))
}
