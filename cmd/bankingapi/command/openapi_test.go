package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi/openapi"
)

func TestOpenAPIPrintsBothVersions(t *testing.T) {
	t.Parallel()
	require.Equal(t, outcome{0, string(openapi.Document()), ""}, bankingapi(t, nil, "openapi"))

	info := filepath.Join(t.TempDir(), "info.yaml")
	require.NoError(t, os.WriteFile(info, []byte("contact: {email: api@bank.example}\ntermsOfService: https://bank.example/terms\n"), 0o600))
	got := bankingapi(t, nil,
		"openapi", "--version", "3.0", "--server", "https://bank.example/", "--http.document_info="+info)
	require.Zero(t, got.status, got.err)
	var document struct {
		OpenAPI string
		Info    struct {
			TermsOfService string
			Contact        struct{ Email string }
		}
		Servers []struct{ URL string }
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &document))
	require.Equal(t, "3.0.3", document.OpenAPI)
	require.Equal(t, "https://bank.example", document.Servers[0].URL)
	require.Equal(t, "https://bank.example/terms", document.Info.TermsOfService)
	require.Equal(t, "api@bank.example", document.Info.Contact.Email)
}
