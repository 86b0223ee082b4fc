package console

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A session forgets old forms, and does not accept them again.
func TestAFormThatWasForgottenIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := newSessions(&Options{Machine: time.Now}).begin(&http.Request{}, "ayse", true)
	forms := make([]int64, maxSpent+2)
	for i := range forms {
		number, err := s.readFormToken(s.newFormToken())
		require.NoError(t, err)
		forms[i] = number
	}
	late := forms[1]
	for i, number := range forms {
		if i != 1 {
			require.NoError(t, s.spend(number))
		}
	}
	require.Len(t, s.spent, maxSpent)
	require.ErrorIs(t, s.spend(forms[len(forms)-1]), errSent)
	require.ErrorIs(t, s.spend(forms[0]), errForm, "it is not known whether it was sent")
	require.NoError(t, s.spend(late), "no form before it that was sent is forgotten")
	require.ErrorIs(t, s.spend(late), errSent)

	_, err := s.readFormToken(s.refer(7))
	require.ErrorIs(t, err, errForm, "a reference to a customer is no form")
	other, _ := newSessions(&Options{Machine: time.Now}).begin(&http.Request{}, "ayse", true)
	_, err = s.readFormToken(other.newFormToken())
	require.ErrorIs(t, err, errForm, "the form of another session")
}
