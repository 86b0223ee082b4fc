package tables

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bankingapi/domain/push"
)

func TestTranDataIsJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items := []push.TranDataItem{} // not null
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			items = append(items, push.TranDataItem{Code: rapid.String().Draw(t, "code"), Name: rapid.String().Draw(t, "name")})
		}
		want, err := json.Marshal(items)
		require.NoError(t, err)
		text, err := formatTranData(items)
		require.NoError(t, err)
		if len(items) == 0 {
			want = nil
		}
		require.Equal(t, string(want), text)
	})
	_, err := formatTranData([]push.TranDataItem{{Code: "\xff"}})
	require.Error(t, err)
}
