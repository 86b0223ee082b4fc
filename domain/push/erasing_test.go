package push_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/push"
)

// No personal text is left after an erasure. A new text is personal unless its member says that
// it is a code.
func TestErasingEmptiesEveryPersonalText(t *testing.T) {
	t.Parallel()
	n, faults := push.New(sent())
	require.Empty(t, faults)
	erased := *n.Values()
	erased.Erase()
	kept := map[string]bool{"ExternalApplicationCode": true, "ExternalTranCode": true, "PushID": true}
	for field, value := range reflect.ValueOf(erased).Fields() {
		before := reflect.ValueOf(*n.Values()).FieldByName(field.Name)
		require.False(t, before.IsZero(), "add %s to sent in notification_test.go", field.Name)
		switch field.Type.Kind() {
		case reflect.String, reflect.Slice, reflect.Map:
			require.Equal(t, kept[field.Name], !value.IsZero(), "%s: is it personal? Then its member has the kind User or Message", field.Name)
		default:
			require.True(t, value.Equal(before), field.Name)
		}
	}
	for _, m := range push.Members {
		if m.IsPersonal() {
			require.Empty(t, m.Value(&erased), m.Name)
		}
	}
}

// The limit of a member is the one that New checks.
func TestLimitsOfMembersAreThoseOfTheRules(t *testing.T) {
	t.Parallel()
	for _, m := range push.Members {
		if m.Limit == 0 {
			continue
		}
		for length, isTooLong := range map[int]bool{m.Limit: false, m.Limit + 1: true} {
			fields := sent()
			of := reflect.ValueOf(&fields).Elem().FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, m.Name) })
			of.SetString(strings.Repeat("a", length))
			_, faults := push.New(fields)
			require.Equal(t, isTooLong, len(faults) > 0, "%s of %d characters: %v", m.Name, length, faults)
		}
	}
}
