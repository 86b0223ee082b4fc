package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/bootstrap"
)

// TestTheVersionIsSaidOnce: bootstrap.Version decides the version. The pages that name it, because
// people read them without the program, name the same one.
func TestTheVersionIsSaidOnce(t *testing.T) {
	t.Parallel()
	read := func(file string) string {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		return string(content)
	}
	for file, pattern := range map[string]string{
		"README.md":                    `(?m)^Version ([0-9.]+)\b`,
		"CHANGELOG.md":                 `(?m)^## ([0-9.]+)`,
		"cmd/bankingapi/ONE_SERVER.md": `install \./bankingapi_([0-9.]+)_linux`,
	} {
		found := regexp.MustCompile(pattern).FindStringSubmatch(read(file))
		require.NotNil(t, found, file)
		require.Equal(t, bootstrap.Version, strings.TrimSuffix(found[1], "."), file)
	}
}
