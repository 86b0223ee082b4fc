package prove_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// cellPartner is a partner that sells one unit at a time, and repeats each sale until it is
// answered.
type cellPartner struct {
	name, key string
	customer  int
	recorded  string // the Operation-Id of its sale for a later day

	done     atomic.Int64
	mutex    sync.Mutex
	answered map[string]string // the Operation-Id of each CallerId
}

func (p *cellPartner) body(callerID, day string) string {
	return fmt.Sprintf(`{"Header":{"CallerId":%q},"Parameters":[{"CustomerNo":%d,"TransactionType":2,"FundAmount":1,"SelectedTransactionDate":%q,`+
		`"DestinationAccount":{"BranchCode":1,"CustomerNo":%d,"AccountSuffix":1,"CurrencyCode":"TRY"},`+
		`"FundToProcess":{"IMKBCode":"AFA","HolderCorporationName":"Demo Portfoy","PriceID":1}}]}`, callerID, p.customer, day, p.customer)
}

// sell sends a sale through the gateway. state is 0 if it must be repeated.
func (p *cellPartner) sell(gateway, callerID, day string) (state, id string, replayed bool, err error) {
	r, err := http.NewRequest(http.MethodPost, gateway+"/BankingApiV01/BuyFundFromCustomer", strings.NewReader(p.body(callerID, day)))
	if err != nil {
		return "", "", false, err
	}
	r.Header.Set("Ocp-Apim-Subscription-Key", p.key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", "", false, nil // no answer: it is repeated
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil || answer.StatusCode == http.StatusServiceUnavailable || answer.StatusCode == http.StatusBadGateway:
		return "", "", false, nil // half an answer
	case answer.StatusCode != http.StatusOK:
		return "", "", false, fmt.Errorf("%s: %s %s", p.name, answer.Status, text)
	}
	return string(text), answer.Header.Get("Operation-Id"), answer.Header.Get("Idempotent-Replayed") == "true", nil
}

func (p *cellPartner) run(ctx context.Context, gateway string) error {
	for n := 0; ; n++ {
		callerID := fmt.Sprintf("%s-%d", p.name, n)
		for {
			state, id, _, err := p.sell(gateway, callerID, "")
			if err != nil {
				return err
			}
			if state == `{"Data":{"State":2}}` {
				p.mutex.Lock()
				p.answered[callerID] = id
				p.mutex.Unlock()
				p.done.Add(1)
				break
			}
			if state != "" {
				return errors.New(state)
			}
			select {
			case <-ctx.Done():
				return nil // its outcome is not known
			case <-time.After(10 * time.Millisecond):
			}
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the test has seen enough
		}
	}
}

// TestAPartnerMovesToAnotherCell does what the page "Past one machine" says, with its gateway and
// under load: two partners share a cell, and one of them moves to a new one. Every sale that was
// answered is in the cell of its partner, once, and each CallerId is answered there as before.
func TestAPartnerMovesToAnotherCell(t *testing.T) {
	t.Parallel()
	balancer := ""
	for _, name := range []string{"haproxy", "/usr/sbin/haproxy"} {
		if found, err := exec.LookPath(name); err == nil {
			balancer = found
		}
	}
	if balancer == "" {
		t.Skip("SKIPPED: no haproxy on this machine; run: apt-get install haproxy")
	}
	cell := func(name string) *service.Bank {
		t.Helper()
		b := service.NewBank(t, testdb.EnginePostgres)
		file := filepath.Join(t.TempDir(), "trail.key")
		b.Must(t, "trail", "keygen", "bank.example/"+name, "--file", file)
		return b.Set("trail.key_file", file).Set("tls.mode", "off").Set("http.address", service.FreeAddress(t))
	}
	first, second := cell("first"), cell("second")
	first.Migrate(t)
	first.Load(t, "prices", "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom", "1,AFA,Demo Portfoy,1.25,TRY,2024-01-01")
	first.Load(t, "holdings", "CustomerNo,IMKBCode,HolderCorporationName,Units", "1001,AFA,Demo Portfoy,1000000", "1002,AFA,Demo Portfoy,1000000")
	first.Load(t, "accounts", "BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance", "1,1001,1,TRY,0", "1,1002,1,TRY,0")
	stays := &cellPartner{name: "stays", customer: 1001, answered: map[string]string{}}
	moves := &cellPartner{name: "moves", customer: 1002, answered: map[string]string{}}
	partners := []*cellPartner{stays, moves}
	for _, p := range partners {
		p.key = first.Subscribe(t, p.name)
	}

	page, err := os.ReadFile("../../../cmd/bankingapi/PAST_ONE_MACHINE.md")
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)```haproxy\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, found)
	folder, address := t.TempDir(), service.FreeAddress(t)
	gateway := "http://" + address
	config := strings.NewReplacer("/etc/haproxy/cells.map", filepath.Join(folder, "cells.map"), "bind :8443", "bind "+address,
		"first.internal:8443", first.Setting("http.address"), "second.internal:8443", second.Setting("http.address")).Replace(string(found[1]))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "haproxy.cfg"), []byte(config), 0o600))
	route := func(cells string) (end func()) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(folder, "cells.map"), []byte(cells), 0o600))
		command := exec.Command(balancer, "-db", "-f", filepath.Join(folder, "haproxy.cfg"))
		require.NoError(t, service.Start(command))
		end = sync.OnceFunc(func() { _ = command.Process.Kill(); _ = command.Wait() })
		t.Cleanup(end)
		return end
	}
	endGateway := route("")
	served := first.Serve(t)

	var running sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	failed := make(chan error, len(partners))
	for _, p := range partners {
		running.Go(func() { failed <- p.run(ctx, gateway) })
	}
	more := func() {
		t.Helper()
		for _, p := range partners {
			goal := p.done.Load() + 50
			require.Eventually(t, func() bool { return p.done.Load() >= goal || len(failed) > 0 }, service.Patience, 10*time.Millisecond)
			require.Empty(t, failed)
		}
	}
	more()
	later := time.Now().AddDate(0, 0, 30).Format(time.DateOnly)
	for _, p := range partners {
		state, id, _, err := p.sell(gateway, "later", later)
		require.NoError(t, err)
		require.JSONEq(t, `{"Data":{"State":1}}`, state)
		p.recorded = id
	}

	// The steps of the page.
	served.Stop(t)
	checkpoint := filepath.Join(folder, "checkpoint")
	require.NoError(t, os.WriteFile(checkpoint, []byte(first.Must(t, "trail", "checkpoint")), 0o600))
	first.Must(t, "copy", "--to", second.DSN)
	first.Must(t, "copy", "--take-back", "--reason", "cell second begins")
	second.Must(t, "trail", "rekey")
	second.Must(t, "subscriptions", "suspend", stays.name)
	second.Must(t, "sales", "cancel", stays.recorded, "--reason", "it is settled in the first cell")
	first.Must(t, "subscriptions", "suspend", moves.name)
	first.Must(t, "sales", "cancel", moves.recorded, "--reason", "it is settled in the second cell")
	endGateway()
	hash := sha256.Sum256([]byte(moves.key))
	route(fmt.Sprintf("%x second\n", hash))
	first.Serve(t)
	second.Serve(t)
	more()

	stop()
	running.Wait()
	require.NoError(t, errors.Join(<-failed, <-failed))
	for p, b := range map[*cellPartner]*service.Bank{stays: first, moves: second} {
		kept := map[string]string{}
		for _, row := range b.Export(t, "operations") {
			if row["Subscription"] == p.name && row["State"] == "2" {
				require.NotContains(t, kept, row["CallerId"])
				kept[row["CallerId"]] = row["OperationId"]
			}
		}
		for callerID, id := range p.answered {
			require.Equal(t, id, kept[callerID], "%s of %s", callerID, p.name)
			state, again, replayed, err := p.sell(gateway, callerID, "")
			require.NoError(t, err)
			require.JSONEq(t, `{"Data":{"State":2}}`, state)
			require.Equal(t, id, again)
			require.True(t, replayed)
		}
		require.NotEmpty(t, p.answered)
		require.LessOrEqual(t, len(kept), len(p.answered)+1, "at most the last one has an answer that did not arrive")
		for _, row := range b.Export(t, "holdings") {
			if row["CustomerNo"] == fmt.Sprint(p.customer) {
				require.Equal(t, fmt.Sprint(1_000_000-len(kept)), row["Units"], "each sale took one unit, once")
			}
		}
		state, id, _, err := p.sell(gateway, "later", later)
		require.NoError(t, err)
		require.JSONEq(t, `{"Data":{"State":1}}`, state)
		require.Equal(t, p.recorded, id)
		b.Must(t, "verify")
	}
	first.Must(t, "verify", "--against", checkpoint)
	t.Logf("figure: %d and %d sales", len(stays.answered), len(moves.answered))
}
