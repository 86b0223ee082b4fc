package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/bootstrap"
)

// The README names every setting and every command, as they are spelled.
func TestReadmeNamesEverySettingAndCommand(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	for _, s := range bootstrap.AllSettings() {
		require.Contains(t, string(content), "`"+s.Path+"`")
	}
	for _, c := range (program{}).root().Commands() {
		require.Contains(t, string(content), c.Name())
	}
}
