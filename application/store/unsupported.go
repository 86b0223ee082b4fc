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
	"sync"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/fleet"
	"bankingapi/application/subscriptions"
	"bankingapi/application/summary"
	"bankingapi/application/trail"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// openTimeout is the maximum time to open a storage, without its migration.
const openTimeout = 10 * time.Second

// Open returns the Store of an adapter. Start opens it. The error names the missing fields.
func Open(adapter Opener, o Options) (*Store, error) {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	opened, err := adapter(ctx, o)
	if err != nil {
		return nil, err
	}
	if opened == nil {
		return nil, errors.New("the storage opened nothing")
	}
	if err := opened.complete(); err != nil {
		return nil, err
	}
	s := *opened
	if o.MayWrite != nil && !opened.Guarded {
		s.guard(o.MayWrite)
	}
	s.DataFolder = cmp.Or(opened.DataFolder, o.DataFolder, "data")
	s.Start = func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, openTimeout)
		defer cancel()
		return opened.Start(ctx)
	}
	return &s, nil
}

// complete returns an error that names the required fields that are missing: all ports and
// functions.
func (s *Store) complete() error {
	var missing []string
	for prefix, of := range map[string]reflect.Value{"": reflect.ValueOf(s).Elem(), "Backoffice.": reflect.ValueOf(&s.Backoffice).Elem()} {
		for field, value := range of.Fields() {
			kind := value.Kind()
			if (kind == reflect.Interface || kind == reflect.Func || kind == reflect.Pointer) && value.IsNil() {
				missing = append(missing, prefix+field.Name)
			}
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("the storage that was opened is incomplete: its store.Store has no %s. Begin with store.Unsupported",
			strings.Join(missing, ", "))
	}
	return nil
}

// Unsupported returns a Store whose optional ports return an error like "this storage cannot
// verify". A storage adapter sets the ports that it supports. Books, Inboxes and Subscriptions
// are not optional and are nil. The errors are errors.ErrUnsupported.
func Unsupported() *Store {
	return &Store{
		Usage: lacking{}, Requests: lacking{}, Replicas: noReplicas{},
		Backoffice: backoffice.Ports{
			Imports: noImports{}, Reader: noReader{}, Lookups: lacking{}, Evidence: lacking{}, Books: lacking{},
			Audit: lacking{}, Outcomes: lacking{}, Erasing: lacking{}, Withdrawing: lacking{},
			RuleBook: new(keptRules), Pricing: noPricing{},
		},
		Trail:  trail.None,
		Schema: noSchema{},
		Marker: lacking{},
		Ping:   func(context.Context) error { return nil },
		Risks:  func(context.Context) ([]Risk, error) { return nil, nil },
		Clock:  func(context.Context) (now, newest time.Time, err error) { return now, newest, nil },
		Within: func(any) (*Store, error) { return nil, cannot("work inside a transaction of the host") },
		Index:  func(context.Context) error { return nil },
		Alone:  func(context.Context) error { return nil }, // the storage cannot detect other processes
		Backup: func(context.Context, string) error { return cannot("back itself up: use its own tools") },
		Copy: func(context.Context, *Store, CopyWatch) (int64, error) {
			return 0, cannot("be copied: use its own tools")
		},
		RemoveMark: func(context.Context) error { return cannot("be marked") },
		Start:      func(context.Context) error { return nil },
		Close:      func() error { return nil },

		FreeSpace: func() int64 { return -1 },
		LogSize:   func() int64 { return -1 },
	}
}

func cannot(do string) error { return unsupported("this storage cannot " + do) }

// unsupported is errors.ErrUnsupported with its own sentence.
type unsupported string

func (u unsupported) Error() string { return string(u) }
func (u unsupported) Unwrap() error { return errors.ErrUnsupported }

// lacking has the ports of a storage that can only answer requests. The ports of the back
// office fail, unless it is correct to do nothing: a bank without a calendar is open every day.
type lacking struct{}

type noPricing struct{}

func (noPricing) PricesOn(context.Context, day.Day) ([]backoffice.FundPrice, error) {
	return nil, cannot("list prices by fund")
}

// noReplicas is for a storage without rows of replicas: each replica sees only itself.
type noReplicas struct{}

func (noReplicas) Keep(context.Context, fleet.Replica, time.Duration) error { return nil }
func (noReplicas) All(context.Context) ([]fleet.Replica, error)             { return nil, nil }
func (noReplicas) Remove(context.Context, operation.ID) error               { return nil }

func (lacking) KeepUses(context.Context, []subscriptions.Use) error { return nil }
func (lacking) Keep(context.Context, audit.Act) error               { return nil }
func (lacking) Add(context.Context, []summary.Answered) error       { return nil }
func (lacking) Forget(context.Context, time.Time, int, int) error   { return nil }
func (lacking) DueDays(context.Context, backoffice.DueQuery) (none []backoffice.DueDay, err error) {
	return none, nil
}
func (lacking) CountReceived(context.Context, time.Time, time.Time) (none backoffice.Received, err error) {
	return none, nil
}
func (lacking) Operation(context.Context, operation.ID) (none backoffice.Operation, err error) {
	return none, cannot("look up operations")
}
func (lacking) OperationOf(context.Context, idempotency.Key) (none backoffice.Operation, err error) {
	return none, cannot("look up operations")
}
func (lacking) Read(context.Context, backoffice.Witness) error { return cannot("verify") }
func (lacking) Update(context.Context, fund.LockSet, func(*fund.Book)) error {
	return cannot("correct the book")
}
func (lacking) Outcomes(context.Context, string, int64, int) ([]fund.Ended, error) {
	return nil, cannot("list outcomes")
}
func (lacking) LastOutcome(context.Context) (int64, error) { return 0, cannot("list outcomes") }
func (lacking) Secret(context.Context) ([]byte, error)     { return nil, cannot("list outcomes") }
func (lacking) Note(context.Context) (string, error)       { return "", cannot("be a sandbox") }
func (lacking) SetNote(context.Context, string) error      { return cannot("be a sandbox") }
func (lacking) Empty(context.Context, string) error        { return cannot("be a sandbox") }
func (lacking) Erase(context.Context, query) (erased int, last operation.ID, err error) {
	return 0, last, cannot("erase messages")
}
func (lacking) EraseSessions(context.Context, query) (erased int, last operation.ID, err error) {
	return 0, last, cannot("erase messages")
}
func (lacking) ErasedBefore(context.Context) (none day.Day, err error) {
	return none, cannot("erase messages")
}
func (lacking) SetErasedBefore(context.Context, day.Day) error      { return cannot("erase messages") }
func (lacking) WithdrawPrice(context.Context, int64, day.Day) error { return cannot("withdraw prices") }

// KeepsRules reports whether the storage keeps the rules of the bank. That of Unsupported does not: its
// rules are those with which the service started.
func (s *Store) KeepsRules() bool {
	_, isKept := s.Backoffice.RuleBook.(*keptRules)
	return !isKept
}

// keptRules are the rules of a storage that does not keep them: they are those with which the
// service started, as long as it runs.
type keptRules struct {
	mu    sync.Mutex
	rules *fund.Rules
}

func (k *keptRules) Rules(context.Context) (fund.Rules, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rules == nil {
		return fund.Rules{}, backoffice.ErrNoRules
	}
	return *k.rules, nil
}

func (k *keptRules) ChangeRules(_ context.Context, change func(*fund.Rules, bool) (fund.Rules, error)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rules != nil {
		return cannot("change the rules of the bank: start the service with others")
	}
	rules, err := change(nil, false)
	if err != nil {
		return err
	}
	k.rules = &rules
	return nil
}

type noImports struct{}

type (
	lines[T any] = backoffice.Lines[T]
	imported     = backoffice.Imported
	options      = backoffice.ImportOptions
)

func (noImports) Prices(context.Context, lines[fund.Price], options) (none imported, err error) {
	return none, cannot("import prices")
}
func (noImports) Holdings(context.Context, lines[fund.Holding], options) (none imported, err error) {
	return none, cannot("import holdings")
}
func (noImports) Accounts(context.Context, lines[fund.Account], options) (none imported, err error) {
	return none, cannot("import accounts")
}
func (noImports) ClosedDays(context.Context, lines[fund.ClosedDay], options) (none imported, err error) {
	return none, cannot("import a calendar")
}

type noReader struct{}

type (
	query       = backoffice.Query
	list[T any] = iter.Seq2[T, error]
)

func cannotList[T any](rows string) list[T] {
	return func(yield func(T, error) bool) { yield(*new(T), cannot("list "+rows)) }
}

func (noReader) Prices(context.Context, query) list[fund.Price] {
	return cannotList[fund.Price]("prices")
}
func (noReader) Holdings(context.Context, query) list[fund.Holding] {
	return cannotList[fund.Holding]("holdings")
}
func (noReader) Accounts(context.Context, query) list[fund.Account] {
	return cannotList[fund.Account]("accounts")
}
func (noReader) ClosedDays(context.Context) list[fund.ClosedDay] {
	return func(func(fund.ClosedDay, error) bool) {}
}
func (noReader) Sales(context.Context, query) list[fund.SaleEntry] {
	return cannotList[fund.SaleEntry]("sales")
}
func (noReader) Postings(context.Context, query) list[fund.PostingEntry] {
	return cannotList[fund.PostingEntry]("postings")
}
func (noReader) Notifications(context.Context, query) list[push.Entry] {
	return cannotList[push.Entry]("notifications")
}
func (noReader) Decisions(context.Context, query) list[operation.Decision] {
	return cannotList[operation.Decision]("operations")
}
func (noReader) Requests(context.Context, query) list[summary.Answered] {
	return cannotList[summary.Answered]("requests")
}
func (noReader) Acts(context.Context, query) list[audit.Act] { return cannotList[audit.Act]("acts") }

// HasSchema reports whether the storage has something to migrate.
func (s *Store) HasSchema() bool { return s.Schema != noSchema{} }

// noSchema is the schema of a storage that has nothing to migrate.
type noSchema struct{}

func (noSchema) Up(context.Context) ([]Migration, error)         { return nil, nil }
func (noSchema) Status(context.Context) (none Status, err error) { return none, nil }
func (noSchema) Require(context.Context) error                   { return nil }
