// Package golden compares what a test got with a file in testdata. The flag
// -update of the tests writes the files.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Update is true if the test must write the golden files.
var Update = flag.Bool("update", false, "write the golden files")

// Equal fails the test if got is not the content of the file in testdata.
func Equal(t testing.TB, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *Update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: make generate writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), make generate accepts it:\n%s", file, diff)
	}
}
