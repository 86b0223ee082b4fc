package e2e_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
	_ "time/tzdata" // the tests name zones too

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/clock"
	"bankingapi/test/kit/scenario"
	"bankingapi/test/kit/testdb"
)

// TestScenarios plays the scenario files that need no clock with the released program. Suite scenarios
// plays all of them on each store.
func TestScenarios(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EnginePostgres)
	b.Migrate(t)
	h := newHouse(t, b)
	files, err := filepath.Glob(scenarios + "/*.http")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	bank := h.scenario()
	for _, file := range files {
		if !scenario.NeedsOperator(t, file) {
			t.Run(filepath.Base(file), func(t *testing.T) { bank.Play(t, file) })
		}
	}
	h.Verify(t)
}

// scenarios has the scenario files and their book.
const scenarios = "../scenarios/testdata"

// house is a service with the book of the scenarios and several subscriptions.
type house struct {
	bank
	*running
	keys map[string]string
	zone *time.Location
}

func newHouse(t *testing.T, b bank) *house {
	t.Helper()
	h := &house{bank: b, keys: map[string]string{}}
	name, zone := noon(clock.Now())
	h.zone = zone
	b.rule(t, "--time-zone", name)
	book, err := filepath.Abs(scenarios + "/book")
	require.NoError(t, err)
	b.Must(t, "import", "prices", book+"/prices.csv", "--force") // two holders have a fund AFA
	b.Must(t, "import", "holdings", book+"/holdings.csv")
	b.Must(t, "import", "accounts", book+"/accounts.csv")
	h.keys["full"] = b.Subscribe(t, "full")
	h.keys["other"] = b.Subscribe(t, "other")
	h.keys["push-only"] = b.Subscribe(t, "push-only", "--operation", "AddPushNotificationResponse")
	h.keys["limited"] = b.Subscribe(t, "limited", "--rate", "1")
	h.keys["defined"] = b.Subscribe(t, "defined", "--app-key", "app-1", "--channel", "WEB", "--teller-name", "Ayşe")
	h.keys["strict"] = b.Subscribe(t, "strict", "--require-caller-id")
	h.keys["suspended"] = b.Subscribe(t, "suspended")
	b.Must(t, "subscriptions", "suspend", "suspended")
	h.running = b.serve(t)
	return h
}

// noon returns a time zone in which it is between 12:00 and 13:00, so that
// midnight does not pass during a test.
func noon(now time.Time) (string, *time.Location) {
	east := 12 - now.UTC().Hour()
	name := fmt.Sprintf("Etc/GMT%+d", -east) // their signs are those of POSIX
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return name, zone
}

// scenario returns the house as a place where scenarios are played.
func (h *house) scenario() *scenario.Bank {
	return &scenario.Bank{URL: h.URL, Client: h.client, Keys: h.keys, Zone: h.zone, Now: clock.Now}
}

// today returns the day of the bank, plus a number of days.
func (h *house) today(later int) string {
	return clock.Now().In(h.zone).AddDate(0, 0, later).Format(time.DateOnly)
}

// The records that requests are made of.
const validPush, validSale = scenario.ValidPush, scenario.ValidSale
