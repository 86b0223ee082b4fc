package docspage_test

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/test/kit/demo"
	"bankingapi/test/kit/npm"
)

// TestGeneratedClients generates clients from the documents with common
// generators and sells units with them. The clients decode every kind of answer,
// and the book has the amount that the client sent, to the last decimal.
func TestGeneratedClients(t *testing.T) {
	t.Parallel()
	npm.Require(t)
	for name, prepare := range map[string]func(t *testing.T) (folder string, command []string){
		"oapi-codegen": func(t *testing.T) (string, []string) {
			folder := t.TempDir()
			document(t, folder, openapi.Version30)
			copyFile(t, "testdata/generated.go.txt", filepath.Join(folder, "main.go"))
			require.NoError(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte("module generated\n\ngo 1.26\n"), 0o600))
			const generator = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
			if out, err := tool(t, folder, "go", "install", generator); err != nil {
				t.Skipf("SKIPPED: cannot get oapi-codegen from the Go proxy: %v\n%s", err, out)
			}
			run(t, folder, filepath.Join(folder, "bin", "oapi-codegen"), "-generate", "types,client", "-package", "main", "-o", "bank.gen.go", "openapi.json")
			run(t, folder, "go", "get", "github.com/oapi-codegen/runtime@v1.6.0")
			run(t, folder, "go", "mod", "tidy")
			run(t, folder, "go", "build", "-o", "generated", ".")
			return folder, []string{filepath.Join(folder, "generated")}
		},
		"openapi-typescript": func(t *testing.T) (string, []string) {
			requireTool(t, "node")
			folder := npm.Install(t, "openapi-typescript@7.13.0", "typescript@5.9.3", "@types/node@20.19.0")
			if folder == "" {
				t.Skip("SKIPPED: cannot get openapi-typescript from npm; run: make clients, with a network")
			}
			document(t, folder, openapi.Version31)
			copyFile(t, "testdata/generated.mts", filepath.Join(folder, "main.mts"))
			run(t, folder, "node", "node_modules/openapi-typescript/bin/cli.js", "openapi.json", "--output", "bank.d.ts")
			run(t, folder, "node", "node_modules/typescript/bin/tsc", "--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext", "--types", "node", "main.mts")
			return folder, []string{"node", "main.mjs"}
		},
		"hey-api": func(t *testing.T) (string, []string) {
			requireTool(t, "node")
			folder := npm.Install(t, "@hey-api/openapi-ts@0.64.15", "@hey-api/client-fetch@0.8.4", "esbuild@0.28.2", "typescript@5.9.3", "@types/node@20.19.0")
			if folder == "" {
				t.Skip("SKIPPED: cannot get @hey-api/openapi-ts from npm; run: make clients, with a network")
			}
			document(t, folder, openapi.Version31)
			copyFile(t, "testdata/heyapi.ts.txt", filepath.Join(folder, "main.ts"))
			run(t, folder, "node", "node_modules/@hey-api/openapi-ts/bin/index.cjs", "--input", "openapi.json", "--output", "bank", "--client", "@hey-api/client-fetch")
			return folder, bundled(t, folder)
		},
		"swagger-typescript-api": func(t *testing.T) (string, []string) {
			requireTool(t, "node")
			folder := npm.Install(t, "swagger-typescript-api@13.2.16", "esbuild@0.28.2", "typescript@5.9.3", "@types/node@20.19.0")
			if folder == "" {
				t.Skip("SKIPPED: cannot get swagger-typescript-api from npm; run: make clients, with a network")
			}
			document(t, folder, openapi.Version30)
			copyFile(t, "testdata/swagger.ts.txt", filepath.Join(folder, "main.ts"))
			run(t, folder, "node", "node_modules/swagger-typescript-api/dist/cli.js", "generate", "--path", "openapi.json", "--output", ".", "--name", "bank.ts", "--silent")
			return folder, bundled(t, folder)
		},
		"orval": func(t *testing.T) (string, []string) {
			requireTool(t, "node")
			folder := npm.Install(t, "orval@7.17.0", "esbuild@0.28.2", "typescript@5.9.3", "@types/node@20.19.0")
			if folder == "" {
				t.Skip("SKIPPED: cannot get orval from npm; run: make clients, with a network")
			}
			document(t, folder, openapi.Version31)
			copyFile(t, "testdata/orval.ts.txt", filepath.Join(folder, "main.ts"))
			run(t, folder, "node", "node_modules/orval/dist/bin/orval.js", "--input", "./openapi.json", "--output", "./bank.ts", "--client", "fetch")
			return folder, bundled(t, folder)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, command := prepare(t)
			api, store := demo.New(t, nil)
			server := httptest.NewServer(api)
			defer server.Close()
			program := exec.CommandContext(t.Context(), command[0], command[1:]...)
			program.Dir = folder
			program.Env = append(os.Environ(), "BANK_URL="+server.URL, "BANK_KEY="+demo.Key)
			out, err := program.CombinedOutput()
			require.NoError(t, err, string(out))
			require.Equal(t, "push true\nsale true\n"+
				"refused true price-not-found /Parameters/0/FundToProcess/PriceID\n"+
				"invalid true out-of-range /docs/errors/out-of-range\n", string(out))
			require.Len(t, store.Notifications(), 1)
			require.Len(t, store.Sales(), 1)
			require.Equal(t, "1234567.89", store.Sales()[0].Terms.Units.String())
			require.Equal(t, "1543209.86", store.Sales()[0].Proceeds.String())
		})
	}
}

// bundled checks main.ts with the client that it imports, and returns the command that runs both.
func bundled(t *testing.T, folder string) (command []string) {
	t.Helper()
	run(t, folder, "node", "node_modules/typescript/bin/tsc", "--strict", "--noEmit", "--skipLibCheck", "--target", "es2022", "--module", "preserve", "--moduleResolution", "bundler", "--types", "node", "main.ts")
	run(t, folder, "node", "node_modules/esbuild/bin/esbuild", "main.ts", "--bundle", "--platform=node", "--format=esm", "--outfile=main.mjs")
	return []string{"node", "main.mjs"}
}

func document(t *testing.T, folder, version string) {
	t.Helper()
	text, err := openapi.Options{}.Document(version)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "openapi.json"), text, 0o600))
}
