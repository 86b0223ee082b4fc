package buyfund_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/buyfund"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
)

// forgetful is a port that returns before it has decided anything.
type forgetful struct{ buyfund.Books }

func (forgetful) Update(context.Context, fund.LockSet, func(*fund.Book)) error { return nil }

// A port that decides nothing has sold nothing.
func TestAPortThatDecidesNothing(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{books: func(books buyfund.Books) buyfund.Books { return forgetful{books} }})
	_, err := b.buy("a", sale("1"))
	require.Equal(t, fault.Internal, fault.KindOf(err))
}
