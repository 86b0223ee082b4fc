package docs_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
)

// TestTheVersionIsSaidOnce: bootstrap.Version decides the version. The pages that name it, because
// people read them without the program, name the same one.
func TestTheVersionIsSaidOnce(t *testing.T) {
	t.Parallel()
	said, err := exec.Command(service.Build(t, module(t)+"/cmd/bankingapi"), "--version").Output()
	require.NoError(t, err)
	version, _, _ := strings.Cut(string(said), "\n")
	for file, pattern := range map[string]string{
		"README.md":                    `(?m)^Version ([0-9.]+)\b`,
		"CHANGELOG.md":                 `(?m)^## ([0-9.]+)`,
		"cmd/bankingapi/ONE_SERVER.md": `install \./bankingapi_([0-9.]+)_linux`,
	} {
		found := regexp.MustCompile(pattern).FindStringSubmatch(read(t, file))
		require.NotNil(t, found, file)
		require.Equal(t, version, "bankingapi "+strings.TrimSuffix(found[1], "."), file)
	}
}
