// Package golden compares what a test got with a file in testdata. The flag
// -update of the tests writes the files.
package golden

import (
	"errors"
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
		Write(t, file, got)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: make generate writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), make generate accepts it:\n%s", file, diff)
	}
}

// Write writes the file, and its folder. It leaves a file with this content
// alone: a test that reads it at the same time would find a part of it.
func Write(t testing.TB, file, content string) {
	t.Helper()
	if old, err := os.ReadFile(file); err == nil && string(old) == content {
		return
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}
