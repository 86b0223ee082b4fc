package idempotency_test

import (
	"encoding/hex"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
)

var headerFields = map[string]func(*operation.Header) *string{
	"/Header/AppKey":           func(h *operation.Header) *string { return &h.AppKey },
	"/Header/Channel":          func(h *operation.Header) *string { return &h.Channel },
	"/Header/TellerName":       func(h *operation.Header) *string { return &h.TellerName },
	"/Header/CallerId":         func(h *operation.Header) *string { return &h.CallerID },
	"/Header/ChannelSessionId": func(h *operation.Header) *string { return &h.ChannelSessionID },
	"/Header/ChannelRequestId": func(h *operation.Header) *string { return &h.ChannelRequestID },
}

// digest is the fingerprint of what collect writes.
func digest(collect func(*idempotency.Digest)) idempotency.Fingerprint {
	var d idempotency.Digest
	collect(&d)
	return d.Sum()
}

func TestOnlyTheContentOfAHeaderCounts(t *testing.T) {
	t.Parallel()
	counted := []string{"/Header/AppKey", "/Header/Channel", "/Header/TellerName"}
	original := operation.Header{
		AppKey: "a", Channel: "b", TellerName: "c", CallerID: "d", ChannelSessionID: "e", ChannelRequestID: "f",
	}
	sum := func(h operation.Header) idempotency.Fingerprint {
		return digest(func(d *idempotency.Digest) { d.Header(&h, operation.Filled{}) })
	}
	for pointer, field := range headerFields {
		for _, other := range []string{"", "x", "aa"} {
			changed := original
			*field(&changed) = other
			require.Equal(t, slices.Contains(counted, pointer), sum(original) != sum(changed), "%s = %q", pointer, other)
		}
	}
}

func TestAFilledFieldIsLeftOut(t *testing.T) {
	t.Parallel()
	sum := func(h operation.Header, filled operation.Filled) idempotency.Fingerprint {
		return digest(func(d *idempotency.Digest) { d.Header(&h, filled) })
	}
	recorded := operation.Header{AppKey: "a", Channel: "b", TellerName: "c"}
	for _, sent := range []operation.Header{
		{}, {Channel: "b", TellerName: "c"}, {AppKey: "a", TellerName: "c"}, {AppKey: "a", Channel: "b"}, recorded,
	} {
		require.Equal(t, sum(sent, operation.Filled{}), sum(recorded, operation.FilledIn(sent, recorded)), "%+v", sent)
	}
}

func TestAFingerprintIsStoredAsTheBytesOfTheFirstRelease(t *testing.T) {
	t.Parallel()
	var d idempotency.Digest
	d.Header(&operation.Header{AppKey: "notifier", Channel: "ŞUBE", CallerID: "c-1"}, operation.Filled{})
	d.Text("AFA")
	d.Int(-300)
	f := d.Sum()
	require.Equal(t, "95d315be719f5175e7160ee4ba4ac6b938c967c6a71d11301b1da67e5c12f35d", hex.EncodeToString(f.Bytes()),
		"the encoding of a Digest must not change: fingerprints are stored permanently")
	parsed, err := idempotency.ParseFingerprint(f.Bytes())
	require.NoError(t, err)
	require.Equal(t, f, parsed)
}

func TestAFingerprintOfALaterVersionKeepsItsBytes(t *testing.T) {
	t.Parallel()
	stored := append([]byte{2}, make([]byte, 32)...)
	f, err := idempotency.ParseFingerprint(stored)
	require.NoError(t, err)
	require.Equal(t, stored, f.Bytes())
	first, err := idempotency.ParseFingerprint(stored[1:])
	require.NoError(t, err)
	require.NotEqual(t, first, f)
}

// Without the key, nobody can test whether a text belongs to a keyed fingerprint.
func TestAKeyedFingerprintIsKeyedOnce(t *testing.T) {
	t.Parallel()
	var d idempotency.Digest
	d.Text("text")
	plain := d.Sum()
	keyed := idempotency.Keyer([]byte("key"))
	once := keyed(plain)
	require.NotEqual(t, plain, once)
	require.Equal(t, once, keyed(once))
	require.Equal(t, once, keyed(plain))
	require.NotEqual(t, once, idempotency.Keyer([]byte("other"))(plain))
	require.Equal(t, plain, idempotency.Keyer(nil)(plain))
}

func TestOtherBytesAreNoFingerprint(t *testing.T) {
	t.Parallel()
	for _, stored := range [][]byte{nil, make([]byte, 31), make([]byte, 33), append([]byte{1}, make([]byte, 32)...), append([]byte{2}, make([]byte, 33)...)} {
		f, err := idempotency.ParseFingerprint(stored)
		require.ErrorIs(t, err, idempotency.ErrFingerprint)
		require.Equal(t, idempotency.Fingerprint{}, f)
	}
}

func TestADigestIsEmptyAfterItsSum(t *testing.T) {
	t.Parallel()
	var d idempotency.Digest
	empty := d.Sum()
	d.Text("a")
	first := d.Sum()
	require.NotEqual(t, empty, first)
	require.Equal(t, empty, d.Sum())
	d.Text("a")
	require.Equal(t, first, d.Sum())
}

func TestNoTwoContentsRunTogether(t *testing.T) {
	t.Parallel()
	// Texts and numbers drawn from few and short ones, so that their joined
	// forms would often be the same.
	texts := rapid.SliceOfN(rapid.OneOf(
		rapid.Map(rapid.SampledFrom([]string{"", "a", "aa", "ab", "b", "\x00", "\x01", "\x01a", "\x02", "1", "12"}), func(s string) any { return s }),
		rapid.Map(rapid.SampledFrom([]int64{0, 1, -1, 2, 12, 48, 64, 97, 128, 1 << 40, -1 << 63}), func(n int64) any { return n }),
	), 0, 4)
	shape := func(content []any) (kinds string) {
		for _, v := range content {
			kinds += reflect.TypeOf(v).Name() + " "
		}
		return kinds
	}
	write := func(content []any) idempotency.Fingerprint {
		return digest(func(d *idempotency.Digest) {
			for _, v := range content {
				switch v := v.(type) {
				case string:
					d.Text(v)
				case int64:
					d.Int(v)
				}
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		one, other := texts.Draw(t, "one"), texts.Draw(t, "other")
		if shape(one) != shape(other) {
			return // an operation always writes its fields in the same shape
		}
		require.Equal(t, cmp.Equal(one, other), write(one) == write(other))
	})
	require.NotEqual(t, write([]any{"ab", "c"}), write([]any{"a", "bc"}))
	require.NotEqual(t, write([]any{"", "a"}), write([]any{"a", ""}))
	require.NotEqual(t, write([]any{"a"}), write([]any{"a", ""}))
}
