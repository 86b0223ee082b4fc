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
	diff := cmp.Diff(string(want), got)
	if diff != "" {
		t.Errorf("%s (-want +got), make generate accepts it:\n%s", file, diff)
	}
}

// Write writes the file, and its folder. A test that reads the file at the same time finds
// the old content or the new one, and never a part.
func Write(t testing.TB, file, content string) {
	t.Helper()
	if old, err := os.ReadFile(file); err == nil && string(old) == content {
		return
	}
	if err := write(file, content); err != nil {
		t.Fatal(err)
	}
}

// write writes another file, whose name go:embed passes over, and gives it the name.
func write(file, content string) error {
	folder := filepath.Dir(file)
	err := os.MkdirAll(folder, 0o755)
	if err != nil {
		return err
	}
	part, err := os.CreateTemp(folder, ".golden-*")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name()) // it is gone, unless a step fails
	_, err = part.WriteString(content)
	err = errors.Join(err, part.Chmod(0o644), part.Close())
	if err != nil {
		return err
	}
	return os.Rename(part.Name(), file)
}
