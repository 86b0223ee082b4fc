package prove_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// TestOddSettings checks that the service sets what it relies on. Defaults of
// the server that change how values are written or read have no effect on it.
func TestOddSettings(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{
		"datestyle = 'German'", "datestyle = 'SQL, DMY'", "intervalstyle = 'sql_standard'", "bytea_output = 'escape'", "timezone = 'Pacific/Kiritimati'",
		"standard_conforming_strings = off", "default_transaction_isolation = 'serializable'", "default_transaction_deferrable = on",
		"client_encoding = 'LATIN1'", "extra_float_digits = -15", "lc_messages = 'C'", "statement_timeout = '1ms'", "lock_timeout = '1ms'",
		"idle_in_transaction_session_timeout = '1ms'", "synchronous_commit = off", "plan_cache_mode = 'force_custom_plan'",
		"enable_indexscan = off", "jit_above_cost = 0", "row_security = off", "backslash_quote = 'off'", "quote_all_identifiers = on",
		"array_nulls = off", "escape_string_warning = off", "xmloption = 'document'", "transform_null_equals = on", "zero_damaged_pages = off",
	} {
		t.Run(strings.ReplaceAll(setting, "'", ""), func(t *testing.T) {
			t.Parallel()
			b := service.NewBank(t, testdb.EnginePostgres)
			d := prepare(t, b, 1)
			name := d.text(t, "SELECT current_database()")
			d.exec(t, "ALTER DATABASE "+name+" SET "+setting)
			other := b.Replica(t).Set("http.address", service.FreeAddress(t)).Set("ops.address", service.FreeAddress(t)).Set("tls.mode", "off").
				Set("log.level", "warn")
			r := &replica{bank: other}
			r.start(t)
			d.replicas = []*replica{r}
			for i := range 3 {
				require.Equal(t, result{verdict: completed}, d.sell(t, i))
				require.Equal(t, result{completed, true}, d.sell(t, i))
			}
			d.awaitWell(t)
			s := &sale{caller: 10, later: true, parts: []part{{0, 1}}}
			a, err := d.post(t.Context(), r.url(), buyFund, s.body("later", d.laterDay))
			require.NoError(t, err)
			require.Equal(t, 1, a.state, a.body)
			got, _ := d.store(t)
			require.Equal(t, result{verdict: completed}, got)
			require.Len(t, b.Export(t, "sales"), 4)
			b.Subscribe(t, "another", "--rate", "5")
			require.Equal(t, opening-3, d.mustLookAt(t, 0).units[0])
			d.bank.Verify(t)
		})
	}
}

// TestAPriceThatChangesUnderARunningReplica checks that a replica validates a
// cached price when it uses it. The test changes the price directly in the
// database, as restoring another book does.
func TestAPriceThatChangesUnderARunningReplica(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, engine string) {
		d := deploy(t, engine, 1, 1, nil)
		require.Equal(t, completed, d.sell(t, 0).verdict)
		require.Equal(t, completed, d.sell(t, 1).verdict)
		require.Equal(t, 2*perUnit, d.mustLookAt(t, 0).balance)

		d.exec(t, "UPDATE prices SET price = price * 8")
		require.Equal(t, completed, d.sell(t, 2).verdict)
		require.Equal(t, 2*perUnit+8*perUnit, d.mustLookAt(t, 0).balance, "the new price")
		require.Equal(t, completed, d.sell(t, 3).verdict)
		require.Equal(t, 2*perUnit+16*perUnit, d.mustLookAt(t, 0).balance)

		d.exec(t, "UPDATE prices SET currency_code = 'EUR'")
		s := &sale{caller: 4, parts: []part{{0, 1}}}
		a, err := d.post(t.Context(), d.replicas[0].url(), buyFund, s.body("euro", ""))
		require.NoError(t, err)
		require.Equal(t, []string{"currency-mismatch"}, a.codes, a.body)
		d.exec(t, "UPDATE prices SET currency_code = 'TRY', holder_corporation_name = 'Another Portfoy'")
		a, err = d.post(t.Context(), d.replicas[0].url(), buyFund, (&sale{caller: 5, parts: []part{{0, 1}}}).body("holder", ""))
		require.NoError(t, err)
		require.Equal(t, []string{"price-not-found"}, a.codes, a.body)
		require.Equal(t, 2*perUnit+16*perUnit, d.mustLookAt(t, 0).balance)
	})
}
