// Command run runs go test and prints its progress: each package when it ends,
// which packages are still running, and the output of failed tests. At the end it
// prints which tests were skipped and why, which were the slowest, and once more
// why tests failed. It takes the arguments of go test. Its exit status is 0 if all
// tests passed.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	fmt.Println("Building the tests. The first time this takes a few minutes.")
	command := exec.Command("go", append([]string{"test", "-json"}, os.Args[1:]...)...)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
	started := time.Now()
	r := newReport(os.Stdout)
	lines := make(chan event)
	go read(out, lines)
	quiet := time.NewTicker(15 * time.Second)
	for open := true; open; {
		select {
		case e, more := <-lines:
			if open = more; open {
				r.add(e)
				quiet.Reset(15 * time.Second)
			}
		case <-quiet.C:
			r.running()
		}
	}
	err = command.Wait()
	r.finish(time.Since(started).Round(time.Second), err == nil)
	if err != nil {
		os.Exit(1)
	}
}

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

func read(r io.Reader, to chan<- event) {
	defer close(to)
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var e event
		if json.Unmarshal(scanner.Bytes(), &e) != nil {
			e = event{Action: "build-output", Output: scanner.Text() + "\n"}
		}
		to <- e
	}
}

// report collects the events of go test.
type report struct {
	out     io.Writer
	started map[string]bool     // packages
	output  map[string][]string // by package and test
	skipped map[string][]string // tests by reason
	slow    []event             // tests that took a while
	parents map[string]bool     // tests that have parts
	failed  []string            // packages
	reasons []string            // of failed tests, with their names
	passed  int
}

func newReport(out io.Writer) *report {
	return &report{out: out, started: map[string]bool{}, output: map[string][]string{}, skipped: map[string][]string{}, parents: map[string]bool{}}
}

func (r *report) add(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "start":
		r.started[e.Package] = true
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		r.output[key] = append(r.output[key], e.Output)
	case "skip", "pass", "fail":
		if e.Test == "" {
			r.endPackage(e)
		} else {
			r.endTest(e, key)
		}
	}
}

func (r *report) endPackage(e event) {
	delete(r.started, e.Package)
	switch e.Action {
	case "pass":
		fmt.Fprintf(r.out, "ok    %-45s %6.1fs\n", e.Package, e.Elapsed)
	case "fail":
		fmt.Fprintf(r.out, "FAIL  %-45s %6.1fs\n", e.Package, e.Elapsed)
		for _, line := range r.output[e.Package+" "] {
			fmt.Fprint(r.out, "      "+line)
		}
		r.failed = append(r.failed, e.Package)
	}
}

func (r *report) endTest(e event, key string) {
	switch e.Action {
	case "pass":
		r.passed++
		// A test with parts ends after them, and its time is that of waiting for them.
		if i := strings.LastIndex(e.Test, "/"); i > 0 {
			r.parents[e.Package+" "+e.Test[:i]] = true
		}
		if e.Elapsed >= worthTelling && !r.parents[key] {
			r.slow = append(r.slow, e)
		}
	case "skip":
		reason := reasonOf(r.output[key])
		r.skipped[reason] = append(r.skipped[reason], e.Package+" "+e.Test)
	case "fail":
		fmt.Fprintf(r.out, "FAIL  %s %s\n%s", e.Package, e.Test, strings.Join(r.output[key], ""))
		if reason := failureOf(r.output[key]); reason != "" {
			r.reasons = append(r.reasons, fmt.Sprintf("  %s %s\n%s", e.Package, e.Test, reason))
		}
	}
	delete(r.output, key)
}

// worthTelling is the number of seconds from which a test is one of the slow
// ones.
const worthTelling = 5

var place = regexp.MustCompile(`^\s*\S+\.go:\d+: (?:SKIPPED: )?(.*)`)

// reasonOf returns the reason from the output of a skipped test.
func reasonOf(output []string) string {
	for _, line := range output {
		if match := place.FindStringSubmatch(line); match != nil {
			return strings.TrimSpace(match[1])
		}
	}
	return "no reason given"
}

// failureOf returns the first lines that say why a test failed, without the logs
// of the processes that it started. A test that failed because a part of it did
// has none.
func failureOf(output []string) string {
	lines := slices.DeleteFunc(slices.Clone(output), func(line string) bool {
		return strings.HasPrefix(line, "=== ") || strings.HasPrefix(strings.TrimSpace(line), "--- ")
	})
	if first := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "Error Trace:") }); first > 0 {
		lines = lines[first-1:] // the line before has the place
	}
	const enough, width = 12, 300
	var reason strings.Builder
	for _, line := range lines[:min(len(lines), enough)] {
		line = strings.TrimRight(line, "\n")
		reason.WriteString("  " + line[:min(len(line), width)] + "\n")
	}
	return reason.String()
}

// running prints which packages are still running.
func (r *report) running() {
	if len(r.started) == 0 {
		fmt.Fprintln(r.out, "      still building")
		return
	}
	fmt.Fprintln(r.out, "      still running:", strings.Join(slices.Sorted(maps.Keys(r.started)), " "))
}

func (r *report) finish(took time.Duration, ok bool) {
	if len(r.skipped) > 0 {
		fmt.Fprintln(r.out, "\nSkipped:")
	}
	for _, reason := range slices.Sorted(maps.Keys(r.skipped)) {
		tests := r.skipped[reason]
		fmt.Fprintf(r.out, "  %s\n", reason)
		for _, test := range tests[:min(len(tests), 3)] {
			fmt.Fprintf(r.out, "    %s\n", test)
		}
		if len(tests) > 3 {
			fmt.Fprintf(r.out, "    and %d more\n", len(tests)-3)
		}
	}
	if len(r.slow) > 0 {
		fmt.Fprintln(r.out, "\nSlowest:")
	}
	slices.SortStableFunc(r.slow, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	for _, e := range r.slow[:min(len(r.slow), 15)] {
		fmt.Fprintf(r.out, "  %6.1fs %s %s\n", e.Elapsed, e.Package, e.Test)
	}
	if len(r.reasons) > 0 {
		fmt.Fprintf(r.out, "\nFailed:\n%s", strings.Join(r.reasons, ""))
	}
	skipped := 0
	for _, tests := range r.skipped {
		skipped += len(tests)
	}
	switch {
	case ok:
		fmt.Fprintf(r.out, "\nAll tests passed in %s: %d passed, %d skipped.\n", took, r.passed, skipped)
	default:
		fmt.Fprintf(r.out, "\nFAILED after %s: %s\n", took, strings.Join(r.failed, " "))
	}
}
