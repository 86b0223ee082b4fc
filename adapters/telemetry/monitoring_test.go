package telemetry_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"bankingapi/adapters/telemetry"
	"bankingapi/application/fleet"
)

// monitoring is what operators load into Grafana and Prometheus.
var monitoring = filepath.Join("..", "opsapi", "monitoring")

// expressions are all PromQL of the dashboard and the alerts, by where it is.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	content, err := os.ReadFile(filepath.Join(monitoring, "dashboard.json"))
	require.NoError(t, err)
	var dashboard struct {
		Annotations struct{ List []struct{ Name, Expr string } }
		Templating  struct {
			List []struct{ Name, Definition string }
		}
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(content, &dashboard))
	ids := map[int]bool{}
	for _, p := range dashboard.Panels {
		require.False(t, ids[p.ID], "panel %d is there twice", p.ID)
		ids[p.ID] = true
		for _, target := range p.Targets {
			found["panel "+p.Title+", "+target.RefID] = target.Expr
		}
	}
	for _, a := range dashboard.Annotations.List {
		found["annotation "+a.Name] = a.Expr
	}
	for _, v := range dashboard.Templating.List {
		if query, is := strings.CutPrefix(v.Definition, "label_values("); is {
			found["variable "+v.Name] = query[:strings.LastIndex(query, ",")]
		}
	}

	content, err = os.ReadFile(filepath.Join(monitoring, "alerts.yaml"))
	require.NoError(t, err)
	var alerts struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr         string
				Labels, Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(content, &alerts))
	for _, group := range alerts.Groups {
		for _, rule := range group.Rules {
			found["alert "+rule.Alert] = rule.Expr
			require.Contains(t, []string{"critical", "warning"}, rule.Labels["severity"], rule.Alert)
			require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
			require.NotEmpty(t, rule.Annotations["description"], rule.Alert)
			page, heading, _ := strings.Cut(rule.Annotations["runbook"], "#")
			require.Equal(t, "OPERATIONS.md", page, rule.Alert)
			require.Contains(t, headings(t), heading, rule.Alert)
		}
	}
	require.Greater(t, len(found), 40)
	return found
}

// barLines are the lines of the table of README.md: each line of the bar, and its alerts.
func barLines(t *testing.T) (lines, alerts []string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "cmd", "bankingapi", "README.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(content), "| line | when | alerts |\n|---|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		require.Len(t, cells, 5, row)
		lines = append(lines, strings.Split(strings.TrimSpace(cells[1]), ", ")...)
		for alert := range strings.SplitSeq(strings.TrimSpace(cells[3]), ", ") {
			if alert != "" {
				alerts = append(alerts, "alert BankingAPI"+alert)
			}
		}
	}
	return lines, alerts
}

// The bar and the alerts tell one story: each alert is a line of the bar, or is said to be none.
func TestEachAlertHasItsLineOfTheBar(t *testing.T) {
	t.Parallel()
	lines, alerts := barLines(t)
	for _, kind := range []string{
		fleet.Silent, fleet.Errors, fleet.Defect, fleet.Unknown, fleet.Flood, fleet.UnknownKeys, fleet.Refusals, fleet.DueSales, fleet.Prices,
		fleet.Book, fleet.Missing, fleet.Certificate, fleet.Keys, "database", "schema", "durability", "clock", "trail", "shutdown",
	} {
		require.Contains(t, lines, kind)
	}
	known := expressions(t)
	for _, alert := range alerts {
		require.Contains(t, known, alert, "an alert that does not exist")
	}
	for name := range known {
		if strings.HasPrefix(name, "alert ") {
			require.Contains(t, alerts, name, "the table of README.md does not have it")
		}
	}
}

// headings are those of OPERATIONS.md, as a link names them.
func headings(t *testing.T) (all []string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "cmd", "bankingapi", "OPERATIONS.md"))
	require.NoError(t, err)
	for _, found := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(content), -1) {
		name := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(found[1]), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}

// alertMatcher reads a matcher of Alertmanager for the name of an alert.
var alertMatcher = regexp.MustCompile(`^alertname(=~|!=|=)"(.+)"$`)

// matchesAlert reports whether an alert has the name that the matchers want.
func matchesAlert(t *testing.T, matchers []string, alert string) bool {
	t.Helper()
	for _, m := range matchers {
		part := alertMatcher.FindStringSubmatch(m)
		require.NotNil(t, part, m)
		matches := map[string]bool{
			"=": alert == part[2], "!=": alert != part[2], "=~": regexp.MustCompile("^(?:" + part[2] + ")$").MatchString(alert),
		}[part[1]]
		if !matches {
			return false
		}
	}
	return true
}

// One outage makes many alerts fire. With alertmanager.yaml one of them calls somebody.
func TestOneOutageIsOnePage(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join(monitoring, "alertmanager.yaml"))
	require.NoError(t, err)
	var manager struct {
		Rules []struct {
			Source []string `yaml:"source_matchers"`
			Target []string `yaml:"target_matchers"`
			Equal  []string
		} `yaml:"inhibit_rules"`
	}
	require.NoError(t, yaml.Unmarshal(content, &manager))
	require.NotEmpty(t, manager.Rules)
	known := expressions(t)
	for _, rule := range manager.Rules {
		require.Equal(t, []string{"job"}, rule.Equal)
		for _, name := range regexp.MustCompile(`BankingAPI\(([^)]*)\)`).FindAllStringSubmatch(strings.Join(rule.Target, " "), -1) {
			for part := range strings.SplitSeq(name[1], "|") {
				if !strings.HasPrefix(part, "Late") {
					require.Contains(t, known, "alert BankingAPI"+part)
				}
			}
		}
	}
	for outage, firing := range map[string][]string{
		"BankingAPIDown":              {"BankingAPIDown", "BankingAPIInstanceDown", "BankingAPIErrors", "BankingAPISettlementLate", "BankingAPISettlementStopped", "BankingAPINotVerified"},
		"BankingAPINotReady":          {"BankingAPIErrors", "BankingAPINotReady", "BankingAPISettlementLate", "BankingAPISettlementFailing", "BankingAPIOutcomeUnknown", "BankingAPIWarning"},
		"BankingAPIErrors":            {"BankingAPISlow", "BankingAPIErrors", "BankingAPIShedding", "BankingAPIQueueFilling", "BankingAPISettlementLate"},
		"BankingAPISettlementStopped": {"BankingAPISettlementLate", "BankingAPISettlementStopped"},
	} {
		var called []string
		for _, alert := range firing {
			isInhibited := false
			for _, rule := range manager.Rules {
				hasSource := slices.ContainsFunc(firing, func(other string) bool { return matchesAlert(t, rule.Source, other) })
				isInhibited = isInhibited || hasSource && matchesAlert(t, rule.Target, alert)
			}
			if !isInhibited {
				called = append(called, alert)
			}
		}
		require.Equal(t, []string{outage}, called)
	}
}

var (
	selector = regexp.MustCompile(`\b((?:bankingapi|go|process)_[a-z_]+|up)\b(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
	grouping = regexp.MustCompile(`\b(?:by|on|group_left)\s*\(([^)]*)\)`)
	suffix   = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// TestDashboardAndAlertsNameWhatThereIs: every metric in them, and every label
// of each, is one that a running service exposes.
func TestDashboardAndAlertsNameWhatThereIs(t *testing.T) {
	t.Parallel()
	registry := telemetry.NewRegistry()
	populated(t, registry)
	families, err := registry.Gather()
	require.NoError(t, err)
	labels := map[string]map[string]bool{"up": {}}
	all := map[string]bool{"job": true, "instance": true}
	for _, family := range families {
		of := map[string]bool{}
		if family.GetType().String() == "HISTOGRAM" {
			of["le"], all["le"] = true, true
		}
		for _, metric := range family.Metric {
			for _, label := range metric.Label {
				of[label.GetName()], all[label.GetName()] = true, true
			}
		}
		labels[family.GetName()] = of
	}

	used := map[string]bool{}
	for where, expr := range expressions(t) {
		for _, match := range selector.FindAllStringSubmatch(expr, -1) {
			name := match[1]
			of, known := labels[name]
			if !known {
				name = suffix.ReplaceAllString(name, "")
				of, known = labels[name]
				require.True(t, known && of["le"], "%s: there is no metric %s", where, match[1])
			}
			used[name] = true
			for _, label := range matcher.FindAllStringSubmatch(match[2], -1) {
				require.True(t, of[label[1]] || label[1] == "job" || label[1] == "instance", "%s: %s has no label %s", where, name, label[1])
			}
		}
		for _, match := range grouping.FindAllStringSubmatch(expr, -1) {
			for label := range strings.SplitSeq(match[1], ",") {
				if label = strings.TrimSpace(label); label != "" {
					require.True(t, all[label], "%s: there is no label %s", where, label)
				}
			}
		}
	}
	for name := range labels {
		if strings.HasPrefix(name, "bankingapi_") {
			require.True(t, used[name], "%s is on no panel and in no alert", name)
		}
	}
}

// TestPrometheusUnderstandsThem has promtool read every expression and play
// through when alerts fire.
func TestPrometheusUnderstandsThem(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("SKIPPED: no promtool on this machine; run: apt-get install prometheus")
	}
	run := func(arguments ...string) {
		t.Helper()
		out, err := exec.Command(promtool, arguments...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	run("check", "rules", filepath.Join(monitoring, "alerts.yaml"))
	run("test", "rules", filepath.Join(monitoring, "alerts_test.yaml"))

	type rule struct {
		Record, Expr string
	}
	type group struct {
		Name  string
		Rules []rule
	}
	g := group{Name: "dashboard"}
	for _, expr := range expressions(t) {
		g.Rules = append(g.Rules, rule{"x", strings.ReplaceAll(expr, "$__rate_interval", "1m")})
	}
	content, err := yaml.Marshal(map[string][]group{"groups": {g}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	run("check", "rules", "--lint=none", file)
}
