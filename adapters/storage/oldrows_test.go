package storage_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage"
	"bankingapi/application/addpush"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/application/store"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
	"bankingapi/test/kit/testdb"
)

// The files in testdata are the rows that commit 923de92 wrote, byte for byte:
// the program before fingerprints had a version. Its CallerIds are replayed, its
// pushes are not stored twice, and its recorded sale is settled.
func TestRowsOfTheFirstReleaseAreRecognised(t *testing.T) {
	t.Parallel()
	for engine, open := range map[string]func(t *testing.T) (*store.Store, string, string){
		testdb.EngineSQLite: func(t *testing.T) (*store.Store, string, string) {
			file := testdb.SQLite(t)
			return testdb.OpenSQLite(t, file), "sqlite", file
		},
		testdb.EnginePostgres: func(t *testing.T) (*store.Store, string, string) {
			dsn := testdb.Postgres(t)
			return testdb.OpenPostgres(t, dsn), "pgx", dsn
		},
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s, driver, dsn := open(t)
			rows, err := os.ReadFile("testdata/first_release_" + engine + ".sql")
			require.NoError(t, err)
			_, err = connect(t, driver, dsn).ExecContext(t.Context(), string(rows))
			require.NoError(t, err)
			b := bank{s, t}
			before := b.holds()
			require.EqualValues(t, 3, before.Sales)
			notifications := func() []push.Entry {
				return all(t, s.Backoffice.Reader.Notifications(t.Context(), backoffice.Query{}))
			}
			stored := notifications()
			require.Len(t, stored, 2)

			clock := fake.NewClock(now.Add(time.Hour))
			newID := func() operation.ID { return nextID() }
			limits := commit.Limits{Batch: 100, Queue: 100, Timeout: time.Minute}
			adder, err := addpush.New(s.Inboxes, addpush.Options{ParametersLimit: 10, Commit: limits, Now: clock.Now, NewID: newID})
			require.NoError(t, err)
			buyer, err := buyfund.New(s.Books, buyfund.Options{ParametersLimit: 10, Commit: limits, Zone: time.UTC, Now: clock.Now, NewID: newID})
			require.NoError(t, err)
			shop := &subscription.Subscription{Name: "shop"}
			header := func(callerID string) operation.Header {
				return operation.Header{
					AppKey: "app", Channel: "ŞUBE", TellerName: "teller", CallerID: callerID,
					ChannelSessionID: "another session", ChannelRequestID: "another request",
				}
			}

			message := push.Fields{
				ExternalApplicationCode: "APP", ExternalTranCode: "T1", UserID: "user-ı", PushID: "push-1", PushInteractionID: decimal.Int(42),
				Platform: decimal.Int(73), Subject: "Subject", Content: "Content 漢字", DeepLinkURL: "https://bank.example/x?y=1",
				SendStatus: decimal.Int(1), SendDate: "2026-11-19", TranData: []push.TranDataItem{{Code: "c", Name: "n"}, {Code: "d", Name: ""}},
			}
			bare := push.Fields{ExternalApplicationCode: "APP", UserID: "user-2", PushID: "push-2", Platform: decimal.Int(79), SendStatus: decimal.Int(0)}
			for callerID, replayed := range map[string]bool{"push with CallerId": true, "": false, "another CallerId": false} {
				outcome, err := adder.Add(t.Context(), shop, header(callerID), []push.Fields{message, bare})
				require.NoError(t, err, callerID)
				require.Equal(t, operation.Completed, outcome.State)
				require.Equal(t, replayed, outcome.Replayed, callerID)
			}
			require.Equal(t, stored, notifications(), "stored once, as they were")
			_, err = adder.Add(t.Context(), shop, header("push with CallerId"), []push.Fields{bare})
			require.Equal(t, fault.Conflict, fault.KindOf(err), "%v", err)

			sale, later := saleFields(""), saleFields(today.Plus(1).String())
			missing := sale
			missing.CustomerNo = decimal.Int(999)
			buy := func(callerID string, want operation.State, sales ...fund.SaleFields) {
				t.Helper()
				outcome, err := buyer.Buy(t.Context(), shop, header(callerID), sales)
				require.NoError(t, err, callerID)
				require.True(t, outcome.Replayed, callerID)
				require.Equal(t, want, outcome.State, callerID)
			}
			buy("sale", operation.Completed, sale, sale)
			buy("refused", operation.Failed, sale, missing)
			buy("later", operation.Recorded, later)
			_, err = buyer.Buy(t.Context(), shop, header("sale"), []fund.SaleFields{sale})
			require.Equal(t, fault.Conflict, fault.KindOf(err), "%v", err)
			require.Equal(t, before, b.holds(), "no repeat had an effect")

			clock.Advance(24 * time.Hour)
			settled, err := buyer.SettleDue(t.Context())
			require.NoError(t, err)
			require.Equal(t, buyfund.Settlement{Completed: 1}, settled)
			ended, err := s.Backoffice.Outcomes.Outcomes(t.Context(), "shop", 0, 10)
			require.NoError(t, err)
			require.Len(t, ended, 1)
			require.Equal(t, "later", ended[0].CallerID)
			buy("later", operation.Completed, later)
			require.NoError(t, adder.Close(t.Context()))
			require.NoError(t, buyer.Close(t.Context()))
			require.EqualValues(t, before.Postings+2, b.holds().Postings)
		})
	}
}

// A due sale that this program cannot read, as one in a currency that only a newer replica
// knows, stays due and does not stop the others.
func TestADueSaleOfANewerProgramStopsNoOther(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, _ string, s *store.Store) {
		b, tomorrow := newBank(t, s, 3), today.Plus(1)
		for customer := range 3 {
			b.sell(operation.Recorded, order(nextID(), "", on(tomorrow, sale(1, customer+1, customer+1))))
		}
		require.NoError(t, storage.Exec(t.Context(), s, "UPDATE sales SET currency_code = 'XYZ' WHERE customer_no = (SELECT MIN(customer_no) FROM sales)"))
		buyer, err := buyfund.New(s.Books, buyfund.Options{NewID: nextID, Now: func() time.Time { return tomorrow.Start(time.UTC) }})
		require.NoError(t, err)
		for _, want := range []int{2, 0} {
			settled, err := buyer.SettleDue(t.Context())
			require.ErrorContains(t, err, `this version does not know the stored currency "XYZ"`)
			require.Equal(t, buyfund.Settlement{Completed: want}, settled)
		}
		require.NoError(t, buyer.Close(t.Context()))
	})
}
