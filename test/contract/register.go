package contract

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
)

// registers calls change with a register of the known records of the keys, and
// stores the changes.
type registers func(keys []idempotency.Key, change func(*idempotency.Register)) error

// unknown checks that the CallerId of an operation is unknown.
func unknown(t *testing.T, o interface {
	Key() (idempotency.Key, bool)
}, update registers) {
	t.Helper()
	key, _ := o.Key()
	require.NoError(t, update([]idempotency.Key{key}, func(r *idempotency.Register) {
		_, found, _ := r.Find(key, idempotency.Fingerprint{}, nil)
		require.False(t, found)
	}))
}

// number returns the n of id(n).
func number(i operation.ID) int { return int(i[4])<<8 | int(i[5]) }
