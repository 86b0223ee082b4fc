package store_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/store"
	"bankingapi/test/fake"
)

// small is a storage that only answers requests.
func small() *store.Store {
	data, s := fake.NewStore(), store.Unsupported()
	s.Books, s.Inboxes, s.Subscriptions = data.Books(nil), data.Inboxes(nil), data.Subscriptions(nil)
	return s
}

func open(s *store.Store) (*store.Store, error) {
	return store.Open(s.Open, store.Options{})
}

func TestAStorageSaysWhatItCannotDo(t *testing.T) {
	t.Parallel()
	s, err := open(small())
	require.NoError(t, err)
	require.Equal(t, "data", s.DataFolder)
	_, err = backoffice.Verify(t.Context(), s.Backoffice.Evidence, nil, backoffice.Watch{})
	require.EqualError(t, err, "this storage cannot verify")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	for _, err := range s.Backoffice.Reader.Sales(t.Context(), backoffice.Query{}) {
		require.EqualError(t, err, "this storage cannot list sales")
	}
}

// TestEveryPortIsRequired takes each port away, also those that are added later.
func TestEveryPortIsRequired(t *testing.T) {
	t.Parallel()
	optional := map[string]bool{"Pools": true} // the metrics range over it
	check := func(name string, s *store.Store, field reflect.Value) {
		switch field.Kind() {
		case reflect.Interface, reflect.Func, reflect.Pointer, reflect.Map:
		default:
			return
		}
		if optional[name] {
			return
		}
		require.False(t, field.IsNil(), name)
		field.SetZero()
		_, err := open(s)
		require.ErrorContains(t, err, "has no "+name)
	}
	for i := range reflect.TypeFor[store.Store]().NumField() {
		s := small()
		check(reflect.TypeFor[store.Store]().Field(i).Name, s, reflect.ValueOf(s).Elem().Field(i))
	}
	for i := range reflect.TypeFor[backoffice.Ports]().NumField() {
		s := small()
		check("Backoffice."+reflect.TypeFor[backoffice.Ports]().Field(i).Name, s, reflect.ValueOf(&s.Backoffice).Elem().Field(i))
	}
}
