package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A customer asks that the bank forgets: the messages are empty from then on, in every list,
// and the book and its trail stay correct.
func TestMessagesAreErased(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		s, key, verifying := trailHouse(t, b)
		body := `{"Header":{},"Parameters":[` + strings.Replace(validPush, "{", `{"Content":"a secret",`, 1) + `]}`
		first := s.post(t, addPush, key, body)
		require.Equal(t, completed, first.body)
		id := first.header.Get("Operation-Id")
		row := b.Export(t, "notifications")[0]
		proof := b.Must(t, "trail", "prove", "--operation", id)

		for _, args := range [][]string{
			{}, {"--user", "x", "--before", "2020-01-01"}, {"--before", "soon"}, {"--before", "2199-01-01"},
		} {
			require.Equal(t, 2, b.Run(t, append([]string{"notifications", "erase", "--reason", "r"}, args...)...).Status, args)
		}
		require.Equal(t, 2, b.Run(t, "notifications", "erase", "--user", "x").Status, "without a reason")
		user := row["UserId"]
		erased := b.Run(t, "notifications", "erase", "--user", user, "--reason", "ticket 7", "--as", "ayse")
		require.Equal(t, "Erased: 1 message.\n", erased.Err)
		require.Equal(t, completed, s.post(t, addPush, key, body).body)

		rows := b.Export(t, "notifications")
		require.Len(t, rows, 1, "a repeat is not stored again")
		require.Equal(t, "ticket 7", rows[0]["ErasureReason"])
		require.NotEmpty(t, rows[0]["ErasedAt"])
		require.Empty(t, rows[0]["UserId"])
		require.Empty(t, rows[0]["Content"])
		require.Equal(t, row["PushId"], rows[0]["PushId"])
		require.Contains(t, b.Must(t, "show", "operation", id), "ticket 7")
		audit := b.Must(t, "export", "audit")
		require.Contains(t, audit, "notifications.erase,one user,ticket 7,messages: 1")
		require.NotContains(t, audit, user)
		b.Verify(t)
		again := b.Run(t, "trail", "prove", id)
		require.Zero(t, again.Status, again.Err)
		require.Contains(t, again.Err, "The texts of 1 message of this operation were erased.")
		require.Equal(t, leafOf(proof), leafOf(again.Out), "an erasure keeps the leaf")
		anywhere := bank{b.Replica(t)}
		require.Zero(t, anywhere.RunWith(t, proof, "trail", "check", "-", "--key", verifying).Status, "a proof from before")
	})
}
