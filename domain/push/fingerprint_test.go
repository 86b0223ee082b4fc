package push_test

import (
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

const digestRule = `
Identities and fingerprints are stored permanently. If the same record gets another
identity, it is stored twice after an update. So never reorder, remove or
reinterpret what is hashed. To add a field, hash it only when it is present,
after everything else in content (notification.go), with its name before it.
Then add its name to TestEveryFieldIsInTheDigest, and to TestIdentitiesNeverChange and
TestFingerprintsNeverChange a push that has it, with a golden value of its own.`

// least is a push with the required fields only.
var least = push.Fields{ExternalApplicationCode: "A", UserID: "U", PushID: "P", Platform: number("79"), SendStatus: number("0")}

// full is a push with every field of the first version. It never gets another one: its
// hashes below are in books.
var full = push.Fields{
	ExternalApplicationCode: "LOANS", ExternalTranCode: "APPROVED", UserID: "user-7", PushID: "push-1",
	PushInteractionID: number("42"), Platform: number("65"), Subject: "Krediniz onaylandı", Content: "Başvurunuz sonuçlandı.",
	DeepLinkURL: "bank://loans/42", SendStatus: number("1"), SendDate: "2026-11-20",
	TranData: []push.TranDataItem{{Code: "amount", Name: "1.000 TL"}, {Code: "term", Name: ""}},
}

func TestIdentitiesNeverChange(t *testing.T) {
	t.Parallel()
	identifier := push.NewIdentifier([]byte("the key of a book"))
	for want, fields := range map[string]push.Fields{"7edba1e8333df15511b5248086dddebb": least, "318f4cfa888a1c1c75367551f254a499": full} {
		n, faults := push.New(fields)
		require.Empty(t, faults)
		identity := identifier.Of("mobile", n.Values())
		require.Equal(t, want, hex.EncodeToString(identity[:]), digestRule)
	}
}

func requireHash(t *testing.T, want string, f idempotency.Fingerprint) {
	t.Helper()
	if got := hex.EncodeToString(f.Bytes()); got != want {
		t.Errorf("%s, not %s: %s", got, want, digestRule)
	}
}

func TestFingerprintsNeverChange(t *testing.T) {
	t.Parallel()
	both := report("c-1", full, least)
	both.Header = operation.Header{AppKey: "notifier", Channel: "ŞUBE", TellerName: "Ayşe", CallerID: "c-1", ChannelSessionID: "s", ChannelRequestID: "r"}
	requireHash(t, "c08397eb4fdf77bc92f87b98d444e18f35a21e423a551170f99fe0f194ff896e", fingerprint(report("c-1", least)))
	requireHash(t, "c93c516ffecc585a53f29e5a9aa8830c2cf0dc3f6e039d60300997171bca0dc9", fingerprint(both))
}

func TestEveryFieldIsInTheDigest(t *testing.T) {
	t.Parallel()
	var names []string
	for _, of := range []reflect.Type{reflect.TypeFor[push.Values](), reflect.TypeFor[push.TranDataItem]()} {
		for i := range of.NumField() {
			names = append(names, of.Field(i).Name)
		}
	}
	require.Equal(t, []string{
		"ExternalApplicationCode", "ExternalTranCode", "UserID", "PushID", "PushInteractionID", "HasPushInteractionID",
		"Platform", "Subject", "Content", "DeepLinkURL", "Sent", "SendDate", "TranData", "Code", "Name",
	}, names, digestRule)
}

// TestEveryFieldIsAMember: files, pages and clients would not show a field that is
// no member.
func TestEveryFieldIsAMember(t *testing.T) {
	t.Parallel()
	values := func(r *push.Values) (all []string) {
		for _, m := range push.Members {
			require.NotZero(t, m.Kind, m.Name)
			all = append(all, m.Value(r))
		}
		return all
	}
	n, faults := push.New(sent())
	require.Empty(t, faults)
	full := *n.Values()
	for i := range reflect.TypeFor[push.Values]().NumField() {
		name := reflect.TypeFor[push.Values]().Field(i).Name
		if name == "TranData" {
			continue // an array
		}
		cleared := full
		field := reflect.ValueOf(&cleared).Elem().Field(i)
		require.False(t, field.IsZero(), "add %s to sent in notification_test.go", name)
		field.SetZero()
		require.NotEqual(t, values(&full), values(&cleared), "Members lacks %s", name)
	}
}
