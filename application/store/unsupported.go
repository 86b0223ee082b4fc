package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/subscriptions"
	"bankingapi/application/trail"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// openTimeout bounds the opening of a storage, without its migration.
const openTimeout = 10 * time.Second

// Open opens a storage with an adapter. The error names the fields of its Store that
// are missing.
func Open(adapter func(context.Context, Options) (Database, error), o Options) (*Store, error) {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	database, err := adapter(ctx, o)
	if err != nil {
		return nil, err
	}
	opened, err := database.Bind(o)
	if err != nil {
		return nil, err
	}
	if err := opened.complete(); err != nil {
		return nil, err
	}
	s := *opened
	s.DataFolder = cmp.Or(opened.DataFolder, o.DataFolder, "data")
	return &s, nil
}

// complete returns an error that names the required fields that are missing: all ports and
// functions.
func (s *Store) complete() error {
	var missing []string
	for prefix, of := range map[string]reflect.Value{"": reflect.ValueOf(s).Elem(), "Backoffice.": reflect.ValueOf(&s.Backoffice).Elem()} {
		for field, value := range of.Fields() {
			if kind := value.Kind(); (kind == reflect.Interface || kind == reflect.Func || kind == reflect.Pointer) && value.IsNil() {
				missing = append(missing, prefix+field.Name)
			}
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("the storage that was opened is incomplete: its store.Store has no %s. Begin with store.Unsupported if it cannot do that",
			strings.Join(missing, ", "))
	}
	return nil
}

// Unsupported returns a Store whose optional ports say that the storage cannot do
// what they are asked: "this storage cannot verify". A storage adapter sets what it
// can do. Books, Inboxes and Subscriptions are not optional and are nil. The errors
// are errors.ErrUnsupported.
func Unsupported() *Store {
	return &Store{
		Usage: noUsage{},
		Backoffice: backoffice.Ports{
			Imports: noImports{}, Reader: noReader{}, Lookups: noLookups{}, Evidence: noEvidence{}, Books: noBooks{}, Audit: noAudit{}, Calendar: noCalendar{}, Outcomes: noOutcomes{}, Erasing: noErasing{},
		},
		Trail:  trail.None,
		Schema: noSchema{},
		Marker: noMarker{},
		Ping:   func(context.Context) error { return nil },
		Risks:  func(context.Context) ([]Risk, error) { return nil, nil },
		Clock:  func(context.Context, string) (now, newest time.Time, err error) { return now, newest, nil },
		Within: func(any) (*Store, error) { return nil, cannot("work inside a transaction of the host") },
		Index:  func(context.Context) error { return nil },
		Alone:  func(context.Context) error { return nil }, // it cannot tell
		Backup: func(context.Context, string) error { return cannot("back itself up: use its own tools") },
		Copy: func(context.Context, *Store, CopyWatch) (int64, error) {
			return 0, cannot("be copied: use its own tools")
		},
		Close: func() error { return nil },

		FreeSpace: func() int64 { return -1 },
	}
}

func cannot(do string) error { return unsupported("this storage cannot " + do) }

// unsupported is errors.ErrUnsupported with a sentence of its own.
type unsupported string

func (u unsupported) Error() string { return string(u) }
func (u unsupported) Unwrap() error { return errors.ErrUnsupported }

type noUsage struct{}

func (noUsage) Used(context.Context, []subscriptions.Use) error { return nil }

type noImports struct{}

func (noImports) Prices(context.Context, backoffice.Lines[fund.Price], func(int64)) (none backoffice.Imported, err error) {
	return none, cannot("import prices")
}

func (noImports) Holdings(context.Context, operation.ID, backoffice.Lines[fund.Holding], func(int64)) (none backoffice.Imported, err error) {
	return none, cannot("import holdings")
}

func (noImports) Accounts(context.Context, operation.ID, backoffice.Lines[fund.Account], func(int64)) (none backoffice.Imported, err error) {
	return none, cannot("import accounts")
}

func (noImports) ClosedDays(context.Context, backoffice.Lines[fund.ClosedDay], func(int64)) (none backoffice.Imported, err error) {
	return none, cannot("import a calendar")
}

type noReader struct{}

func unread[T any](rows string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, cannot("list "+rows))
	}
}

func (noReader) Prices(context.Context, backoffice.Query) iter.Seq2[fund.Price, error] {
	return unread[fund.Price]("prices")
}

func (noReader) Holdings(context.Context, backoffice.Query) iter.Seq2[fund.Holding, error] {
	return unread[fund.Holding]("holdings")
}

func (noReader) Accounts(context.Context, backoffice.Query) iter.Seq2[fund.Account, error] {
	return unread[fund.Account]("accounts")
}

type noCalendar struct{}

// ClosedDays yields nothing: a bank without a calendar is open every day.
func (noCalendar) ClosedDays(context.Context) iter.Seq2[fund.ClosedDay, error] {
	return func(func(fund.ClosedDay, error) bool) {}
}

func (noReader) Sales(context.Context, backoffice.Query) iter.Seq2[fund.SaleEntry, error] {
	return unread[fund.SaleEntry]("sales")
}

func (noReader) Postings(context.Context, backoffice.Query) iter.Seq2[fund.PostingEntry, error] {
	return unread[fund.PostingEntry]("postings")
}

func (noReader) Notifications(context.Context, backoffice.Query) iter.Seq2[push.Entry, error] {
	return unread[push.Entry]("notifications")
}

func (noReader) Refusals(context.Context, backoffice.Query) iter.Seq2[operation.Refusal, error] {
	return unread[operation.Refusal]("refused operations")
}

func (noReader) Decisions(context.Context, backoffice.Query) iter.Seq2[backoffice.Decision, error] {
	return unread[backoffice.Decision]("operations")
}

func (noReader) Acts(context.Context, backoffice.Query) iter.Seq2[audit.Act, error] {
	return unread[audit.Act]("acts")
}

type noLookups struct{}

func (noLookups) Operation(context.Context, operation.ID) (none backoffice.Operation, err error) {
	return none, cannot("look up operations")
}

func (noLookups) OperationOf(context.Context, idempotency.Key) (none backoffice.Operation, err error) {
	return none, cannot("look up operations")
}

func (noLookups) DueDays(context.Context, day.Day, int) ([]backoffice.DueDay, error) {
	return nil, nil
}

func (noLookups) Received(context.Context, time.Time, time.Time) (none backoffice.Received, err error) {
	return none, nil
}

type noEvidence struct{}

func (noEvidence) Read(context.Context, backoffice.Witness) error { return cannot("verify") }

type noBooks struct{}

func (noBooks) Update(context.Context, fund.LockSet, func(*fund.Book)) error {
	return cannot("correct the book")
}

type noOutcomes struct{}

func (noOutcomes) Outcomes(context.Context, string, int64, int) ([]fund.Ended, error) {
	return nil, cannot("list outcomes")
}

func (noOutcomes) LastOutcome(context.Context) (int64, error) { return 0, cannot("list outcomes") }

type noAudit struct{}

func (noAudit) Record(context.Context, audit.Act) error { return nil }

// HasSchema reports whether the storage has something to migrate.
func (s *Store) HasSchema() bool { return s.Schema != noSchema{} }

// noSchema is the schema of a storage that has nothing to migrate.
type noSchema struct{}

func (noSchema) Up(context.Context) ([]Migration, error) { return nil, nil }
func (noSchema) Down(context.Context) (none Migration, err error) {
	return none, errors.New("this storage has no schema to migrate")
}
func (noSchema) Status(context.Context) (none Status, err error) { return none, nil }
func (noSchema) Require(context.Context) error                   { return nil }

type noMarker struct{}

func (noMarker) Note(context.Context) (string, error)  { return "", cannot("be a sandbox") }
func (noMarker) SetNote(context.Context, string) error { return cannot("be a sandbox") }
func (noMarker) Empty(context.Context, string) error   { return cannot("be a sandbox") }

type noErasing struct{}

func (noErasing) Erase(context.Context, backoffice.ErasureQuery, int) (erased int, last operation.ID, err error) {
	return 0, last, cannot("erase messages")
}

func (noErasing) ErasedBefore(context.Context) (none day.Day, err error) {
	return none, cannot("erase messages")
}

func (noErasing) SetErasedBefore(context.Context, day.Day) error { return cannot("erase messages") }
