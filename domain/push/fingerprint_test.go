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
Digests and fingerprints are stored permanently. If the same record gets another
digest, it is stored twice after an update. So never reorder, remove or
reinterpret what is hashed. To add a field, hash it only when it is present,
after everything else in content (notification.go), with its name before it.
Then add it to this test with a golden value of its own.`

// least is a push with the required fields only.
var least = push.Fields{ExternalApplicationCode: "A", UserID: "U", PushID: "P", Platform: number("79"), SendStatus: number("0")}

func TestDigestsNeverChange(t *testing.T) {
	t.Parallel()
	requireHash(t, "d2c8d10256be2ce76fbc7fcdf371a6d4c75af4ed1f2fcd744a3ad227f1472f1b", digest(t, "mobile", least))
	requireHash(t, "d64e160baac769b57ee01cdf453f9e51093271b16855639748729ffe32b53524", digest(t, "mobile", sent()))
}

func requireHash(t *testing.T, want string, f idempotency.Fingerprint) {
	t.Helper()
	if got := hex.EncodeToString(f.Bytes()); got != want {
		t.Errorf("%s, not %s: %s", got, want, digestRule)
	}
}

func TestFingerprintsNeverChange(t *testing.T) {
	t.Parallel()
	full := report("c-1", sent(), least)
	full.Header = operation.Header{AppKey: "notifier", Channel: "ŞUBE", TellerName: "Ayşe", CallerID: "c-1", ChannelSessionID: "s", ChannelRequestID: "r"}
	requireHash(t, "c08397eb4fdf77bc92f87b98d444e18f35a21e423a551170f99fe0f194ff896e", fingerprint(report("c-1", least)))
	requireHash(t, "c93c516ffecc585a53f29e5a9aa8830c2cf0dc3f6e039d60300997171bca0dc9", fingerprint(full))
}

func TestEveryFieldIsInTheDigest(t *testing.T) {
	t.Parallel()
	var names []string
	for _, of := range []reflect.Type{reflect.TypeFor[push.Record](), reflect.TypeFor[push.TranDataItem]()} {
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
	values := func(r *push.Record) (all []string) {
		for _, m := range push.Members {
			require.NotZero(t, m.Kind, m.Name)
			all = append(all, m.Value(r))
		}
		return all
	}
	n, faults := push.New(sent())
	require.Empty(t, faults)
	full := *n.Record()
	for i := range reflect.TypeFor[push.Record]().NumField() {
		name := reflect.TypeFor[push.Record]().Field(i).Name
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
