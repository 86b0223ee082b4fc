package embedding_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// surface is what hosts use. Every change of it shows in a review, in
// testdata/surface.
var surface = []string{
	"application/addpush", "application/buyfund", "application/commit", "application/subscriptions",
	"bootstrap", "bootstrap/engines",
	"domain/day", "domain/decimal", "domain/fault", "domain/fund", "domain/money", "domain/operation", "domain/push", "domain/subscription",
	"adapters/storage", "adapters/storage/postgres", "adapters/storage/sqlite",
	"test/contract",
}

func TestExportedSurface(t *testing.T) {
	t.Parallel()
	for _, name := range surface {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := exec.Command("go", "doc", "-all", "./"+name)
			command.Dir = "../.."
			got, err := command.Output()
			require.NoError(t, err)
			golden := filepath.Join("testdata", "surface", strings.ReplaceAll(name, "/", "-")+".txt")
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
				require.NoError(t, os.WriteFile(golden, got, 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got), "the exported surface changed; if that is meant: go test ./test/embedding -update")
		})
	}
}
