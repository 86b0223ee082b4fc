package command

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi/openapi"
)

func TestOpenAPIPrintsBothVersions(t *testing.T) {
	t.Parallel()
	require.Equal(t, outcome{0, string(openapi.Document()), ""}, bankingapi(t, nil, "openapi"))

	got := bankingapi(t, []string{"BANKINGAPI_HTTP__CONTACT_EMAIL=api@bank.example"},
		"openapi", "--version", "3.0", "--server", "https://bank.example/", "--http.terms_url=https://bank.example/terms")
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
