// Command skipped lists the tests that no run has executed, in one table with the reason of
// each and the command that makes them run. A test says both when it is skipped, as
// "SKIPPED: reason; run: command". The arguments of skipped are files that `go test -json`
// wrote. A test that one run skipped and another run executed is not in the table.
//
// With REQUIRE_ALL=1 it fails if the table is not empty, so that nothing is skipped in CI. MAY_SKIP is
// a regular expression of reasons that are allowed, such as a program that cannot be installed.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

func main() {
	var results results
	for _, name := range os.Args[1:] {
		err := results.readFile(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, "skipped:", err)
			os.Exit(1)
		}
	}
	reasons := results.reasons()
	if len(reasons) == 0 {
		return
	}
	allowed, err := regexp.Compile(cmp.Or(os.Getenv("MAY_SKIP"), "^$"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "skipped: MAY_SKIP:", err)
		os.Exit(1)
	}
	failed := false
	fmt.Println("Not executed:")
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "tests\treason\tto execute them")
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		why, command, _ := strings.Cut(reason, "; run: ")
		_, _ = fmt.Fprintf(table, "%5d\t%s\t%s\n", reasons[reason], why, cmp.Or(command, "-"))
		failed = failed || !allowed.MatchString(reason)
	}
	if err := table.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "skipped:", err)
		os.Exit(1)
	}
	if failed && os.Getenv("REQUIRE_ALL") == "1" {
		fmt.Fprintln(os.Stderr, "skipped: REQUIRE_ALL=1 allows no skipped test but those that match MAY_SKIP")
		os.Exit(1)
	}
}

// test names a test of a package.
type test struct{ pkg, name string }

// results has what became of each test in all runs.
type results struct {
	executed map[test]bool
	skipped  map[test]string // with the reason that the test printed
}

// event is a line that go test -json writes.
type event struct {
	Action, Package, Test, Output string
}

func (r *results) readFile(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return r.read(file)
}

// read adds the events of one run. Lines that are not JSON are output of the build.
func (r *results) read(lines io.Reader) error {
	if r.executed == nil {
		r.executed = make(map[test]bool)
		r.skipped = make(map[test]string)
	}
	said := make(map[test]string)
	scanner := bufio.NewScanner(lines)
	scanner.Buffer(nil, 1<<24)
	for scanner.Scan() {
		var e event
		if json.Unmarshal(scanner.Bytes(), &e) != nil || e.Test == "" {
			continue
		}
		key := test{e.Package, e.Test}
		switch e.Action {
		case "output":
			if _, reason, found := strings.Cut(e.Output, "SKIPPED: "); found {
				said[key] = strings.TrimSpace(reason)
			}
		case "skip":
			r.skipped[key] = said[key]
		case "pass", "fail":
			r.executed[key] = true
		}
	}
	return scanner.Err()
}

// digits differ between tests that are skipped for the same reason.
var digits = regexp.MustCompile(`[0-9]{4,}`)

// reasons counts the tests that no run executed, by their reason.
func (r *results) reasons() map[string]int {
	counts := make(map[string]int)
	for key, reason := range r.skipped {
		if r.executed[key] {
			continue
		}
		if reason == "" {
			reason = key.pkg + " " + key.name + " gives no reason"
		}
		counts[digits.ReplaceAllString(reason, "N")]++
	}
	return counts
}
