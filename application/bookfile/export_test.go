package bookfile

import (
	"context"
	"io"
	"iter"

	"bankingapi/domain/fund"
	"bankingapi/domain/push"
)

func ReadPrices(ctx context.Context, r io.Reader) (*Sorted[fund.Price], error) {
	return read(ctx, r, &prices, "", nil)
}

func ReadHoldings(ctx context.Context, r io.Reader) (*Sorted[fund.Holding], error) {
	return read(ctx, r, &holdings, "", nil)
}

func ReadAccounts(ctx context.Context, r io.Reader) (*Sorted[fund.Account], error) {
	return read(ctx, r, &accounts, "", nil)
}

func ReadCalendar(ctx context.Context, r io.Reader) (*Sorted[fund.ClosedDay], error) {
	return read(ctx, r, &calendar, "", nil)
}

func WritePrices(w io.Writer, f Format, rows iter.Seq2[fund.Price, error]) error {
	return Write(w, Style{Format: f}, priceColumns, rows)
}

func WriteHoldings(w io.Writer, f Format, rows iter.Seq2[fund.Holding, error]) error {
	return Write(w, Style{Format: f}, Holdings, rows)
}

func WriteAccounts(w io.Writer, f Format, rows iter.Seq2[fund.Account, error]) error {
	return Write(w, Style{Format: f}, Accounts, rows)
}

func WriteSales(w io.Writer, f Format, rows iter.Seq2[fund.SaleEntry, error]) error {
	return Write(w, Style{Format: f}, Sales, rows)
}

func WritePostings(w io.Writer, f Format, rows iter.Seq2[fund.PostingEntry, error]) error {
	return Write(w, Style{Format: f}, postingColumns, bothSides(rows))
}

// Outcomes are the columns of outcomes.
var Outcomes = outcomeColumns

func WriteNotifications(w io.Writer, f Format, rows iter.Seq2[push.Entry, error]) error {
	return Write(w, Style{Format: f}, Notifications, rows)
}

// Sorted is the content of a checked file.
type Sorted[T any] = sorted[T]

func (s *sorted[T]) Len() int64 { return s.count }

func (s *sorted[T]) Close() error { return s.close() }

// Each calls yield for each value.
func (s *sorted[T]) Each(yield func(line int64, value T) error) error {
	for e, err := range s.values(nil) {
		if err == nil {
			err = yield(e.Line, e.value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
