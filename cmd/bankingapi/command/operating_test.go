package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"bankingapi/application/backoffice"
	"bankingapi/application/fleet"
	"bankingapi/bootstrap"
	"bankingapi/bootstrap/parts"
	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// operated is a book that commands and a service work on, one after the other.
type operated struct {
	folder      string
	environment []string
	today       day.Day
}

// newOperated makes a book with a fund, two customers and the subscription shop.
func newOperated(t *testing.T) *operated {
	t.Helper()
	folder := t.TempDir()
	zone, err := time.LoadLocation("Europe/Istanbul")
	require.NoError(t, err)
	b := &operated{folder, []string{"BANKINGAPI_STORAGE__DSN=" + filepath.Join(folder, "bank.db")}, day.Of(time.Now(), zone)}
	b.must(t, "migrate", "up")
	b.load(t, "prices", "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom",
		fmt.Sprintf("1,AFA,Demo Portfoy,1.25,TRY,%s", b.today.Plus(-1)), fmt.Sprintf("2,AFA,Demo Portfoy,1.30,TRY,%s", b.today))
	b.load(t, "holdings", "CustomerNo,IMKBCode,HolderCorporationName,Units", "1001,AFA,Demo Portfoy,100", "1002,AFA,Demo Portfoy,100")
	b.load(t, "accounts", "BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance", "1,1001,1,TRY,0.00", "1,1002,1,TRY,0.00")
	b.must(t, "subscriptions", "create", "shop")
	return b
}

func (b *operated) run(t *testing.T, args ...string) outcome {
	t.Helper()
	return bankingapi(t, b.environment, args...)
}

// must runs a command that succeeds, and returns its output.
func (b *operated) must(t *testing.T, args ...string) string {
	t.Helper()
	got := b.run(t, args...)
	require.Zero(t, got.status, "%v: %s", args, got.err)
	return got.out
}

// read runs a command with --format json, and reads its output.
func (b *operated) read(t *testing.T, into any, args ...string) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(b.must(t, append(args, "--format", "json")...)), into))
}

// load imports a file of these lines.
func (b *operated) load(t *testing.T, kind string, lines ...string) {
	t.Helper()
	b.must(t, "import", kind, b.file(t, lines...))
}

func (b *operated) file(t *testing.T, lines ...string) string {
	t.Helper()
	file, err := os.CreateTemp(b.folder, "*.csv")
	require.NoError(t, err)
	for _, line := range lines {
		_, err := fmt.Fprintln(file, line)
		require.NoError(t, err)
	}
	require.NoError(t, file.Close())
	return file.Name()
}

// serve runs a service on the book, at the time that is ahead of the clock.
func (b *operated) serve(t *testing.T, ahead time.Duration, do func(*bootstrap.App)) {
	t.Helper()
	loaded, err := bootstrap.Load(bootstrap.Sources{Environment: b.environment}, parts.All())
	require.NoError(t, err)
	loaded.Settings.Settlement.Enabled = false
	app, err := bootstrap.Open(t.Context(), loaded.Settings, parts.All(), bootstrap.WithLogger(zap.NewNop()),
		bootstrap.WithClock(func() time.Time { return time.Now().Add(ahead) }))
	require.NoError(t, err)
	defer func() { require.NoError(t, app.Close(t.Context())) }()
	do(app)
}

// sell sends a sale of the subscription shop to a service on the book.
func (b *operated) sell(t *testing.T, callerID string, customer, units int64, on day.Day) (done operation.Outcome) {
	t.Helper()
	b.serve(t, 0, func(app *bootstrap.App) {
		manager, err := app.Manager(t.Context())
		require.NoError(t, err)
		callers, err := manager.List(t.Context())
		require.NoError(t, err)
		done, err = app.Buyer().Buy(t.Context(), callers[0], operation.Header{CallerID: callerID}, []fund.SaleFields{{
			CustomerNo: decimal.Int(customer), TransactionType: decimal.Int(2), FundAmount: decimal.Int(units),
			DestinationAccount:      &fund.AccountFields{BranchCode: decimal.Int(1), CustomerNo: decimal.Int(customer), AccountSuffix: decimal.Int(1), CurrencyCode: "TRY"},
			FundToProcess:           &fund.FundFields{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy", PriceID: decimal.Int(2)},
			SelectedTransactionDate: on.String(),
		}})
		require.NoError(t, err)
	})
	return done
}

// prices list says which price of a fund holds on a day, and how it differs from the day before.
func TestPricesList(t *testing.T) {
	t.Parallel()
	b := newOperated(t)
	b.load(t, "prices", "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom",
		fmt.Sprintf("3,AFA,Demo Portfoy,1.35,TRY,%s", b.today), fmt.Sprintf("4,AFA,Demo Portfoy,1.5,TRY,%s", b.today.Plus(1)))
	var list []listedPrice
	b.read(t, &list, "prices", "list")
	require.NotNil(t, list[0].Imported)
	require.NotEmpty(t, list[0].ImportedBy)
	list[0].Imported, list[0].ImportedBy = nil, ""
	require.Equal(t, []listedPrice{{"AFA", "Demo Portfoy", 3, decimalNumber("1.35"), "TRY", b.today.String(), decimalNumber("8.00"), nil, "", []waitingDay{}}}, list,
		"the highest PriceID of the day holds, and is compared with the day before")
	b.read(t, &list, "prices", "list", "--day", b.today.Plus(-1).String())
	require.Equal(t, int64(1), list[0].PriceID)
	require.Nil(t, list[0].ChangePercent, "there is no earlier price")
	require.Contains(t, b.must(t, "prices", "list", "--day", b.today.Plus(7).String()), "+11.11 %")
	b.read(t, &list, "prices", "list", "--day", "2020-01-01")
	require.Empty(t, list)

	const columns = "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom"
	b.load(t, "prices", columns, fmt.Sprintf("10,AFA,Demo Portfoy,1.50,TRY,%s", b.today.Plus(2)))
	below := b.file(t, columns, fmt.Sprintf("9,AFA,Demo Portfoy,1.49,TRY,%s", b.today.Plus(2)))
	require.Contains(t, b.run(t, "import", "prices", below).err,
		"1 price will not be used, because there is one with a higher PriceID for the same fund and day: PriceID 9. To correct a price, give the new one a higher PriceID.")
}

// A price in another currency would let the sales fail that wait for it. An auditor finds who imported
// it all the same.
func TestAnOddPriceNeedsForce(t *testing.T) {
	t.Parallel()
	b := newOperated(t)
	const columns = "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom"
	odd := b.file(t, columns, fmt.Sprintf("7,AFA,Demo Portfoy,1.25,USD,%s", b.today.Plus(1)), fmt.Sprintf("8,AFA,Demo Portfoy,9,TRY,%s", b.today.Plus(1)))
	refused := b.run(t, "import", "prices", odd)
	require.Equal(t, 1, refused.status)
	require.Contains(t, refused.err, odd+":2: CurrencyCode: The price is in USD, but that of ")
	require.Contains(t, refused.err, odd+":3: Price: The price differs by ")
	require.Contains(t, refused.err, "nothing was imported: 2 bad lines")
	b.must(t, "import", "prices", odd, "--force", "--as", "ayse")
	require.Contains(t, b.must(t, "export", "audit", "--action", "import.prices", "--actor", "ayse"), `"with --force; 2 new, 0 changed, 0 unchanged"`)
}

// A program that fails to fill a file leaves only its header. A calendar without days is one.
func TestAFileWithoutLinesIsTold(t *testing.T) {
	t.Parallel()
	b := newOperated(t)
	empty := b.run(t, "import", "holdings", b.file(t, "CustomerNo,IMKBCode,HolderCorporationName,Units"))
	require.Zero(t, empty.status)
	require.Contains(t, empty.err, "Imported 0 holdings: 0 new, 0 changed, 0 unchanged.\nThe file has only its header.\n")
	require.NotContains(t, b.run(t, "import", "calendar", b.file(t, "Day,Reason")).err, "only its header")
}

// A mistyped name of a subscription looks like an operation that never was, or like an empty list.
func TestAMistypedSubscriptionIsNamed(t *testing.T) {
	t.Parallel()
	b := newOperated(t)
	nobody := outcome{1, "", "bankingapi: subscription \"nobody\": there is no subscription with this name: 'bankingapi subscriptions list' names all\n"}
	for _, args := range [][]string{
		{"subscriptions", "show", "nobody"}, {"subscriptions", "suspend", "nobody"},
		{"show", "operation", "--caller-id", "later", "--subscription", "nobody"}, {"trail", "prove", "--caller-id", "later", "--subscription", "nobody"},
	} {
		require.Equal(t, nobody, b.run(t, args...), args)
	}
	exported := b.run(t, "export", "sales", "--subscription", "nobody")
	require.Equal(t, outcome{1, exported.out, nobody.err}, exported, "a mistyped name is no empty list")
	require.Zero(t, b.run(t, "export", "requests", "--subscription", "shop").status, "an empty list of a known one is right")
}

// What cannot be found has a next step.
func TestWhatIsNotFoundHasANextStep(t *testing.T) {
	t.Parallel()
	b := newOperated(t)
	const id = "01a21e87-104b-7eb1-b03e-30629044a62b"
	for said, args := range map[string][]string{
		"not found: operation " + id + ". Use --request-id if it is an X-Request-Id": {"show", "operation", id},
		"the holding does not exist: 'bankingapi show customer 1001' lists what the customer has": {
			"adjust", "holding", "--customer", "1001", "--fund", "AFA", "--holder", "demo portfoy", "--by", "1", "--reason", "r",
		},
		"the account does not exist: 'bankingapi show customer 1001' lists what the customer has": {
			"adjust", "account", "--customer", "1001", "--branch", "2", "--suffix", "1", "--currency", "TRY", "--by", "1", "--reason", "r",
		},
	} {
		require.Equal(t, outcome{1, "", "bankingapi: " + said + "\n"}, b.run(t, args...))
	}
}

// A person who suspends or cancels a subscription learns which of its sales settle nevertheless.
func TestSalesOfARefusedSubscriptionAreCounted(t *testing.T) {
	t.Parallel()
	b := newOperated(t)
	require.Equal(t, outcome{0, "", "shop is suspended.\n"}, b.run(t, "subscriptions", "suspend", "shop"))
	require.Equal(t, outcome{0, "", "shop is active.\n"}, b.run(t, "subscriptions", "activate", "shop"))
	require.Equal(t, operation.Recorded, b.sell(t, "a", 1001, 1, b.today.Plus(2)).State)
	require.Contains(t, b.run(t, "subscriptions", "suspend", "shop").err, fmt.Sprintf("1 of its sales waits and settles on its day, from %s to %[1]s.", b.today.Plus(2)))
	b.must(t, "subscriptions", "activate", "shop")
	require.Equal(t, operation.Recorded, b.sell(t, "b", 1002, 1, b.today.Plus(1)).State)
	require.Equal(t, operation.Completed, b.sell(t, "c", 1002, 1, b.today).State)
	var shown shownSubscription
	b.read(t, &shown, "subscriptions", "show", "shop")
	require.Equal(t, "active", shown.State)
	require.EqualValues(t, 2, shown.WaitingSales)
	require.Equal(t, [2]string{b.today.Plus(1).String(), b.today.Plus(2).String()}, [2]string{shown.FirstDay, shown.LastDay})
	require.Contains(t, b.must(t, "subscriptions", "show", "shop"), "Sales that wait  2, for days from ")
	require.Contains(t, b.run(t, "subscriptions", "cancel", "shop").err, "2 of its sales wait and settle on their day")
}

// A person who closes a day of the week learns which sales settle on it nevertheless.
func TestSalesOfAClosedWeekdayAreCounted(t *testing.T) {
	t.Parallel()
	b := newOperated(t)
	on := b.today.Plus(2)
	require.Equal(t, operation.Recorded, b.sell(t, "a", 1001, 1, on).State)
	change := func(rule ...string) string {
		return b.run(t, append([]string{"rules", "change", "--reason", "test"}, rule...)...).err
	}
	require.Contains(t, change("--closed-weekdays", on.Weekday().String()), fmt.Sprintf("Sales wait for days on which the bank is closed: %s (1).", on))
	require.NotContains(t, change("--cut-off", "17:00"), "Sales wait")
	require.NotContains(t, change("--closed-weekdays", on.Plus(1).Weekday().String()), "Sales wait")
}

// The audit tells who looked at a customer.
func TestTheActsThatShowedACustomerAreFound(t *testing.T) {
	t.Parallel()
	b := newOperated(t)
	b.must(t, "show", "customer", "1001")
	b.must(t, "export", "sales", "--customer", "1002")
	require.Contains(t, b.must(t, "export", "audit", "--customer", "1002"), "command.show,customer,,1002")
	found := b.must(t, "export", "audit", "--customer", "1001")
	require.Contains(t, found, "command.show,customer,,1001")
	require.NotContains(t, found, "1002")
	require.NotContains(t, found, "subscriptions.create")
	require.Contains(t, b.must(t, "export", "audit"), "command.export,audit,,\"csv, in full, customer\"", "it is an act to look for a customer")
}

// A person can read data of customers with other commands than show and export. These are acts too.
func TestWhateverShowsACustomerIsAnAct(t *testing.T) {
	t.Parallel()
	b := newOperated(t)
	sold := b.sell(t, "a", 1001, 1, b.today)
	require.Equal(t, operation.Completed, sold.State)
	b.must(t, "trail", "checkpoint")
	id := sold.ID.String()
	holdings := b.file(t, "CustomerNo,IMKBCode,HolderCorporationName,Units", "1001,AFA,Demo Portfoy,5")
	accounts := b.file(t, "BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance", "1,1001,1,TRY,5.00")
	account := []string{"adjust", "account", "--customer", "1001", "--branch", "1", "--suffix", "1", "--currency", "TRY", "--reason", "r"}
	require.Zero(t, b.run(t, "sales", "reverse", id, "--dry-run").status)
	require.NotContains(t, b.must(t, "export", "audit"), "command.show", "it shows no customer")
	b.must(t, append(slices.Clip(account), "--by", "-1")...) // the proceeds are spent
	for _, of := range []struct {
		act    string
		args   []string
		status int
		says   string
	}{
		{"command.show,operation,," + id, []string{"trail", "prove", id}, 0, ""},
		{"command.show,operation,," + id, []string{"trail", "prove", "--subscription", "shop", "--caller-id", "a"}, 0, ""},
		{"command.show,holdings,,compared with a file", []string{"reconcile", "holdings", holdings}, 1, "1001,AFA,Demo Portfoy,different,5,99"},
		{"command.show,accounts,,compared with a file", []string{"reconcile", "accounts", accounts}, 1, "1,1001,1,TRY,different,5.00,0.30"},
		{"command.show,customer,r,1001", append(slices.Clip(account), "--by", "-1000000"), 1, "the account has 0.30"},
		{"command.show,operation,," + id, []string{"sales", "reverse", id, "--dry-run"}, 1, "the account has 0.30"},
		{"command.show,operation,," + id, []string{"sales", "reverse", "--price-id", "2", "--dry-run"}, 1, "the account has 0.30"},
		{"command.show,operation,r," + id, []string{"sales", "reverse", id, "--reason", "r"}, 1, "the account has 0.30"},
	} {
		before := strings.Count(b.must(t, "export", "audit"), of.act+"\n")
		got := b.run(t, of.args...)
		require.Equal(t, of.status, got.status, got.err)
		require.Contains(t, got.out+got.err, of.says)
		require.Equal(t, before+1, strings.Count(b.must(t, "export", "audit"), of.act+"\n"), of.args)
	}
}

// The log of requests can be exported, with its filters.
func TestRequestsAreExported(t *testing.T) {
	t.Parallel()
	b := newOperated(t)
	require.Regexp(t, `^Id,At,Subscription,Method,Route,Operation,Status,`, b.must(t, "export", "requests", "--subscription", "shop", "--since", "2026-01-01"))
	require.Empty(t, b.must(t, "export", "requests", "--format", "json"))
}

// A price that settled wrongly is corrected by another one. What was settled at it is reversed, and
// what was for a later day waits again. The books and the trail stay right.
func TestReversedForItsPrice(t *testing.T) {
	t.Parallel()
	b := newOperated(t)
	now, later := b.sell(t, "now", 1001, 10, b.today), b.sell(t, "later", 1002, 10, b.today.Plus(1))
	require.Equal(t, operation.Completed, now.State)
	require.Equal(t, operation.Recorded, later.State)
	require.Equal(t, outcome{2, "", "bankingapi: --reason is missing: say why, for the audit; see 'bankingapi sales reverse --help'\n"}, b.run(t, "sales", "reverse", "--price-id", "2"))
	require.Contains(t, b.run(t, "sales", "reverse", now.ID.String(), "--reason", " \t").err, "--reason is missing", "blanks are no reason")
	require.Contains(t, b.run(t, "sales", "cancel", later.ID.String(), "--reason", " ").err, "--reason is missing")
	require.Equal(t, outcome{2, "", "bankingapi: either an ID or --price-id is needed; see 'bankingapi sales reverse --help'\n"}, b.run(t, "sales", "reverse", "--dry-run"))

	dry := b.run(t, "sales", "reverse", "--price-id", "2", "--dry-run")
	require.Equal(t, outcome{0, now.ID.String() + " would be reversed\n", "1 of 1 operation with a sale at PriceID 2 would be reversed.\n"}, dry)
	again := b.run(t, "sales", "reverse", "--price-id", "2", "--wait-again", "--reason", "wrong price")
	require.Equal(t, 1, again.status)
	require.Contains(t, again.out, now.ID.String()+" not reversed: the sale took place at once")
	require.Contains(t, again.err, "0 of 1 operation with a sale at PriceID 2 reversed.\nbankingapi: 1 is not reversed: see the reasons above\n")

	var done reversed
	b.read(t, &done, "sales", "reverse", "--price-id", "2", "--reason", " wrong price ", "--as", "ayse")
	require.Equal(t, now.ID.String(), done.OperationID)
	require.NotEmpty(t, done.ReversalID)
	require.Equal(t, b.must(t, "show", "operation", done.OperationID), b.must(t, "show", "operation", done.ReversalID), "the ID of a reversal leads to what it reversed")
	require.Equal(t, outcome{1, "", "bankingapi: price 99: nothing is stored under this ID\n"}, b.run(t, "sales", "reverse", "--price-id", "99", "--dry-run"))
	require.Equal(t, "0 of 0 operations with a sale at PriceID 2 reversed.\n", b.run(t, "sales", "reverse", "--price-id", "2", "--reason", "again").err)
	require.Regexp(t, `,ayse,.*,sales\.reverse,`+now.ID.String()+`,wrong price,1 sale`, b.must(t, "export", "audit"))
	b.must(t, "verify")
}

// An operation that waits again has its leaf in the trail, and settles at the right price. Its
// subscription reads that the first one was reversed, and how the other one ended.
func TestWhatWaitsAgainIsProved(t *testing.T) {
	t.Parallel()
	b := newOperated(t)
	tomorrow := b.today.Plus(1)
	first := b.sell(t, "later", 1002, 10, tomorrow)
	const head = "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom"
	b.load(t, "prices", head, "7,AFA,Demo Portfoy,1.31,TRY,"+tomorrow.String())
	const day = 24 * time.Hour
	b.serve(t, day, func(app *bootstrap.App) {
		settled, err := app.Settle(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, settled.Completed)
		office, err := app.Backoffice(t.Context())
		require.NoError(t, err)
		_, _, err = office.Corrector().ReverseAgain(t.Context(), first.ID)
		require.ErrorIs(t, err, fund.ErrPriceHolds)
	})
	b.load(t, "prices", head, "8,AFA,Demo Portfoy,1.13,TRY,"+tomorrow.String())
	b.serve(t, day, func(app *bootstrap.App) {
		office, err := app.Backoffice(t.Context())
		require.NoError(t, err)
		_, again, err := office.Corrector().ReverseAgain(t.Context(), first.ID)
		require.NoError(t, err)
		settled, err := app.Settle(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, settled.Completed)
		found, err := office.Operation(t.Context(), again)
		require.NoError(t, err)
		require.Equal(t, "11.30", found.Sales[0].Proceeds.String())
		keeper, err := app.Trail()
		require.NoError(t, err)
		_, err = keeper.Checkpoint(t.Context())
		require.NoError(t, err)
		for _, id := range []operation.ID{first.ID, again} {
			_, err = keeper.Prove(t.Context(), id)
			require.NoError(t, err)
		}
		proof, err := office.Verify(t.Context(), nil, backoffice.Watch{Found: func(f backoffice.Finding) { t.Error(f) }})
		require.NoError(t, err)
		require.Zero(t, proof.Findings)
		require.Empty(t, proof.Trail.Reason)
		var ended []operation.ID
		for e, err := range backoffice.EachOutcome(t.Context(), office.Outcomes, "shop", 0) {
			require.NoError(t, err)
			ended = append(ended, e.OperationID)
		}
		require.Equal(t, []operation.ID{first.ID, first.ID, again}, ended)
	})
}

// status says the same as the bar of the console. A script needs only its exit status.
func TestStatus(t *testing.T) {
	t.Parallel()
	b := newOperated(t)
	stopped := b.run(t, "status")
	require.Equal(t, 1, stopped.status)
	require.Contains(t, stopped.out, "not ready: replicas. No replica of the service reports.\n  callers: Callers get no answer.\n  next: Start the service.")
	require.Contains(t, stopped.err, "bankingapi: 1 line needs an operator\n")

	b.serve(t, 0, func(app *bootstrap.App) {
		var shown serviceStatus
		for len(shown.Replicas) == 0 { // the replica keeps its first row soon
			got := b.run(t, "status", "--format", "json")
			require.NoError(t, json.Unmarshal([]byte(got.out), &shown))
		}
		require.True(t, shown.Replicas[0].Reports)
		require.NotContains(t, b.run(t, "status").out, "No replica")
	})
}

// A backup has the row of the replica that ran. Where it is restored, nobody waits for that replica.
func TestRestoreForgetsTheReplicas(t *testing.T) {
	t.Parallel()
	b := newOperated(t)
	backup := filepath.Join(b.folder, "backup.db")
	var shown serviceStatus
	b.serve(t, 0, func(*bootstrap.App) {
		for len(shown.Replicas) == 0 { // the replica keeps its first row soon
			got := b.run(t, "status", "--format", "json")
			require.NoError(t, json.Unmarshal([]byte(got.out), &shown))
		}
		b.must(t, "backup", backup)
	})
	b.must(t, "restore", backup, "--replace")
	got := b.run(t, "status", "--format", "json")
	require.NoError(t, json.Unmarshal([]byte(got.out), &shown))
	require.Empty(t, shown.Replicas)
}

// In an outage of the database a person asks status first, and learns what to do and to tell.
func TestStatusWithoutADatabase(t *testing.T) {
	t.Parallel()
	environment := []string{"BANKINGAPI_STORAGE__DRIVER=postgres", "BANKINGAPI_STORAGE__DSN=postgres://127.0.0.1:1/bank"}
	got := bankingapi(t, environment, "status")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.out, "not ready: database. The storage cannot be reached. ")
	require.Contains(t, got.out, "\n  tell partners: Requests are answered 503. ")
	require.NotContains(t, got.out, "No replica")
	require.Contains(t, got.err, "bankingapi: 1 line needs an operator\n")
}

// What can wait is no reason to wake somebody, and the exit status says so.
func TestStatusOfTroubles(t *testing.T) {
	t.Parallel()
	replica := fleet.Replica{Name: "api1", Silence: time.Minute}
	since := time.Date(2026, time.November, 20, 9, 30, 0, 0, time.UTC)
	good := statusOf(fleet.Status{Replicas: []fleet.Replica{replica}, Troubles: []fleet.Trouble{{Kind: fleet.Keys, Text: "A key expires.", Quiet: true}}})
	require.True(t, good.Good)
	require.Equal(t, "later", good.Troubles[0].Level)
	bad := statusOf(fleet.Status{Replicas: []fleet.Replica{replica}, Troubles: []fleet.Trouble{
		{Kind: "clock", Text: "The clock is wrong.", Effect: "Callers get 503.", Next: "Set it.", Where: "on api1", Since: since}, {Text: "Errors.", Bad: true}, {Text: "Sales wait."},
	}})
	require.False(t, bad.Good)
	require.Equal(t, trouble{"not ready", "clock", "on api1", "The clock is wrong.", instant(since), "Callers get 503.", "Set it.", ""}, bad.Troubles[0])
	require.Equal(t, "bad", bad.Troubles[1].Level)
	require.Equal(t, "warning", bad.Troubles[2].Level)
	replica.Age = time.Hour
	require.False(t, statusOf(fleet.Status{Replicas: []fleet.Replica{replica}}).Good, "nobody reports")
	killed := statusOf(fleet.Status{Replicas: []fleet.Replica{replica}, Troubles: []fleet.Trouble{{Kind: fleet.Missing, Text: "No replica reports.", Bad: true}}})
	require.False(t, killed.Good)
	require.Len(t, killed.Troubles, 1, "one outage is one line")
}
