package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestLoadPrecedence(t *testing.T) {
	t.Parallel()
	file := write(t, "settings.yaml", `
http:
  address: 127.0.0.1:1   # overruled by the environment
  read_timeout: 30s      # overruled by a flag
  body_limit: 2MiB
  docs: false
import: {price_change_limit: 1}
log:
`)
	loaded, err := load(Sources{
		File:        file,
		Environment: []string{"BANKINGAPI_HTTP__ADDRESS=127.0.0.1:2", "BANKINGAPI_HTTP__READ_TIMEOUT=40s", "BANKINGAPI_OPS__ADDRESS=", "HOME=/", "bankingapi_x=1"},
		Flags:       map[string]string{"http.read_timeout": "1m30s", "storage.migrate": "true"},
	})
	require.NoError(t, err)

	want := Default()
	want.HTTP.Address = "127.0.0.1:2"
	want.HTTP.ReadTimeout = 90 * time.Second
	want.HTTP.BodyLimit = 2 << 20
	want.HTTP.Docs = false
	want.Import.PriceChangeLimit = 1
	want.Ops.Address = ""
	want.Storage.Migrate = true
	require.Empty(t, cmp.Diff(want, loaded.Settings))

	type effective struct{ Text, Origin string }
	got := map[string]effective{}
	for _, s := range loaded.Settings.All() {
		if origin := loaded.Origin(s.Path); origin != ByDefault {
			got[s.Path] = effective{s.Value(), origin}
		}
	}
	require.Empty(t, cmp.Diff(map[string]effective{
		"http.address":              {"127.0.0.1:2", "environment BANKINGAPI_HTTP__ADDRESS"},
		"http.read_timeout":         {"90s", "flag --http.read_timeout"},
		"http.body_limit":           {"2MiB", "file " + file + ":5"},
		"http.docs":                 {"false", "file " + file + ":6"},
		"import.price_change_limit": {"1", "file " + file + ":7"},
		"ops.address":               {"", "environment BANKINGAPI_OPS__ADDRESS"},
		"storage.migrate":           {"true", "flag --storage.migrate"},
	}, got))
}

// TestLoadEverySetting gives each setting its default in every way there is:
// what Default shows can be read again.
func TestLoadEverySetting(t *testing.T) {
	t.Parallel()
	var environment []string
	flags := map[string]string{}
	for _, s := range All() {
		environment = append(environment, s.Variable()+"="+s.Default)
		flags[s.Path] = s.Default
	}
	for _, sources := range []Sources{{}, {Environment: environment}, {Flags: flags}} {
		loaded, err := load(sources)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(Default(), loaded.Settings))
	}
}

func TestLoadReportsEverythingAtOnce(t *testing.T) {
	t.Parallel()
	file := write(t, "settings.yaml", `http:
  adress: 127.0.0.1:8443
  body_limit: 1 MB
tls: {mode: files}
sorage: {driver: sqlite}
`)
	_, err := load(Sources{
		File: file,
		Environment: []string{
			"BANKINGAPI_HTTP__DOCS=perhaps",
			"BANKINGAPI_LOG_LEVEL=debug",
		},
		Flags: map[string]string{"shutdown.timeout": "20", "storage.driver": "oracle"},
	})
	var problems Problems
	require.ErrorAs(t, err, &problems)
	require.Empty(t, cmp.Diff(Problems{
		{"http.adress", "unknown setting, did you mean http.address?", "file " + file + ":2"},
		{"http.body_limit", "must be a size in bytes, like 65536, 512KiB or 1MiB", "file " + file + ":3"},
		{"sorage", "unknown setting, did you mean storage?", "file " + file + ":5"},
		{"http.docs", "must be true or false", "environment BANKINGAPI_HTTP__DOCS"},
		{"BANKINGAPI_LOG_LEVEL", "unknown variable, did you mean BANKINGAPI_LOG__LEVEL?", "environment"},
		{"shutdown.timeout", "must be a duration with its unit, like 500ms, 15s or 1m30s", "flag --shutdown.timeout"},
		{"tls.cert_file", "must name a file, because tls.mode is files", "default"},
		{"tls.key_file", "must name a file, because tls.mode is files", "default"},
		{"storage.driver", "must be sqlite or postgres", "flag --storage.driver"},
	}, problems))
}

func TestLoadFile(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, content, want string }{
		{"empty", "", ""},
		{"comments only", "# nothing is set\n", ""},
		{"an explicit null", "---\n", ""},
		{"empty sections", "http:\nlog: {}\n", ""},
		{"dotted keys", "http.docs: false\nlog: {level: debug}\n", ""},
		{"not YAML", "http: [", "is not YAML: "},
		{"a tab", "http:\n\tdocs: true\n", "line 2: found character that cannot start any token; lines must be indented with blanks, not with tabs"},
		{"a list", "- http\n", "must hold sections with settings"},
		{"a word", "http", "must hold sections with settings"},
		{"two documents", "http: {docs: true}\n---\nhttp: {docs: false}\n", "must hold one YAML document"},
		{"a section with a value", "http: 8443\n", "http: is a section, and must hold settings"},
		{"a setting with a section", "http: {docs: {page: true}}\n", "http.docs: must be a single value"},
		{"a setting with a list", "http: {address: ['127.0.0.1:1', '127.0.0.1:2']}\n", "http.address: must be a single value"},
		{"a list with commas", "ops: {hosts: 'one, two'}\n", ""},
		{"a list as a sequence", "ops: {hosts: [one, two]}\n", ""},
		{"a list of lists", "ops: {hosts: [[one], two]}\n", "ops.hosts: must be a list of single values"},
		{"a list with a comma in an item", "ops: {hosts: ['one,two']}\n", "ops.hosts: must be a list of single values"},
		{"a setting without a value", "ops: {address: }\n", `ops.address: has no value: write "" for an empty one`},
		{"a setting given twice", "http:\n  docs: true\n  docs: false\n", "http.docs: is given twice, the first time in file "},
		{"a setting given in two forms", "http.docs: true\nhttp: {docs: false}\n", "http.docs: is given twice"},
		{"an unknown section", "server: {http: {docs: true}}\n", "server: unknown setting ("},
		{"an alias", "http: &a {docs: true}\nlog: *a\n", "log: is a section, and must hold settings"},
		{"an alias of itself", "http: &a\n  docs: *a\n", "http.docs: must be a single value"},
		{"a merge", "http: {<<: {docs: true}}\n", "http.<<: unknown setting"},
		{"letter case", "HTTP: {docs: true}\n", "HTTP: unknown setting"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := load(Sources{File: write(t, "settings.yaml", test.content)})
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
		})
	}
	t.Run("missing", func(t *testing.T) {
		t.Parallel()
		_, err := load(Sources{File: "no/such.yaml"})
		require.EqualError(t, err, "no/such.yaml: cannot be read: no such file or directory")
	})
}

func TestLoadSecretFromFile(t *testing.T) {
	t.Parallel()
	const url = "postgres://bank:open-sesame@db/bank"
	file := write(t, "dsn", url+"\n")
	fromFile := func(file string) Loaded {
		loaded, err := load(Sources{Environment: []string{"BANKINGAPI_STORAGE__DRIVER=postgres", "BANKINGAPI_STORAGE__DSN_FILE=" + file}})
		require.NoError(t, err)
		require.Equal(t, url, string(loaded.Settings.Storage.DSN))
		return loaded
	}
	fromFile(write(t, "windows", url+"\r\n"))
	fromFile(write(t, "bare", url))
	loaded := fromFile(file)
	for _, s := range loaded.Settings.All() {
		if s.Path == "storage.dsn" {
			require.Equal(t, "***", s.Value())
			require.Equal(t, "environment BANKINGAPI_STORAGE__DSN_FILE", loaded.Origin(s.Path))
		}
	}

	for _, test := range []struct {
		name        string
		environment []string
		want        string
	}{
		{"both", []string{"BANKINGAPI_STORAGE__DSN_FILE=" + file, "BANKINGAPI_STORAGE__DSN=x.db", "BANKINGAPI_STORAGE__DRIVER=postgres"},
			"storage.dsn: is given twice, also by environment BANKINGAPI_STORAGE__DSN: keep one (environment BANKINGAPI_STORAGE__DSN_FILE)"},
		{"missing", []string{"BANKINGAPI_STORAGE__DSN_FILE=" + url},
			"storage.dsn: cannot be read from its file: no such file or directory (environment BANKINGAPI_STORAGE__DSN_FILE)"},
		{"missing of Postgres", []string{"BANKINGAPI_STORAGE__DSN_FILE=" + url, "BANKINGAPI_STORAGE__DRIVER=postgres"},
			"storage.dsn: cannot be read from its file: no such file or directory (environment BANKINGAPI_STORAGE__DSN_FILE)"},
		{"empty", []string{"BANKINGAPI_STORAGE__DSN_FILE=" + write(t, "empty", "\n")},
			"storage.dsn: must name the SQLite file (environment BANKINGAPI_STORAGE__DSN_FILE)"},
		{"of no secret", []string{"BANKINGAPI_LOG__LEVEL_FILE=" + file},
			"BANKINGAPI_LOG__LEVEL_FILE: unknown variable, did you mean BANKINGAPI_LOG__LEVEL? (environment)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := load(Sources{Environment: test.environment})
			require.EqualError(t, err, test.want)
			require.NotContains(t, err.Error(), "open-sesame")
		})
	}
}

// The settings file names the file of a secret, so that the settings themselves are no secret.
func TestSettingsFileNamesTheFileOfASecret(t *testing.T) {
	t.Parallel()
	const url = "postgres://bank:open-sesame@db/bank"
	secret := write(t, "dsn", url+"\n")
	settings := write(t, "settings.yaml", "storage:\n  driver: postgres\n  dsn_file: "+secret+"\n")
	loaded, err := load(Sources{File: settings})
	require.NoError(t, err)
	require.Equal(t, url, string(loaded.Settings.Storage.DSN))
	require.Equal(t, "file "+settings+":3", loaded.Origin("storage.dsn"))

	loaded, err = load(Sources{File: settings, Environment: []string{"BANKINGAPI_STORAGE__DSN=postgres://other/bank"}})
	require.NoError(t, err)
	require.Equal(t, "postgres://other/bank", string(loaded.Settings.Storage.DSN), "the environment goes before the file")

	for text, want := range map[string]string{
		"storage:\n  dsn: a.db\n  dsn_file: " + secret + "\n": "storage.dsn_file: is given twice, the first time in file FILE:2 (file FILE:3)",
		"storage:\n  dsn_file: /no/open-sesame\n":             "storage.dsn: cannot be read from its file: no such file or directory (file FILE:2)",
		"log:\n  level_file: " + secret + "\n":                "log.level_file: unknown setting, did you mean log.level? (file FILE:2)",
	} {
		file := write(t, "wrong.yaml", text)
		_, err := load(Sources{File: file})
		require.EqualError(t, err, strings.ReplaceAll(want, "FILE", file))
	}
}

// Under systemd the service reads the copies that LoadCredential makes of files that only root
// may read. Without them the same settings name the files themselves.
func TestCredentialsOfSystemdGoBeforeTheFiles(t *testing.T) {
	t.Parallel()
	credentials := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(credentials, "dsn"), []byte("postgres://copy/bank\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(credentials, "trail.key"), []byte("key"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(credentials, "info.yaml"), []byte("termsOfService: https://bank.example/terms\n"), 0o600))
	original := write(t, "dsn", "postgres://original/bank\n")
	info := write(t, "info.yaml", "{}\n")
	settings := write(t, "settings.yaml", "storage: {driver: postgres, dsn_file: "+original+"}\ntrail: {key_file: /etc/bankingapi/trail.key}\n"+
		"tls: {mode: files, cert_file: /etc/bankingapi/tls.crt, key_file: /etc/bankingapi/tls.key}\nhttp: {document_info: "+info+"}\n")
	service, err := load(Sources{File: settings, Environment: []string{"CREDENTIALS_DIRECTORY=" + credentials}})
	require.NoError(t, err)
	require.Equal(t, "postgres://copy/bank", string(service.Settings.Storage.DSN))
	require.Equal(t, filepath.Join(credentials, "trail.key"), service.Settings.Trail.KeyFile)
	require.Equal(t, "/etc/bankingapi/tls.key", service.Settings.TLS.KeyFile, "there is no copy of it")
	require.Equal(t, filepath.Join(credentials, "info.yaml"), service.Settings.HTTP.DocumentInfo)

	root, err := load(Sources{File: settings})
	require.NoError(t, err)
	require.Equal(t, "postgres://original/bank", string(root.Settings.Storage.DSN))
	require.Equal(t, "/etc/bankingapi/trail.key", root.Settings.Trail.KeyFile)
}

// The file of an operator who gives no --config: the variable names it, or it is
// in its default place.
func TestLoadFindsItsFile(t *testing.T) {
	t.Parallel()
	given, named, usual := write(t, "a.yaml", "log: {level: debug}\n"), write(t, "b.yaml", "log: {level: warn}\n"), write(t, "c.yaml", "log: {level: error}\n")
	environment := []string{"BANKINGAPI_CONFIG=" + named}
	for _, test := range []struct {
		sources Sources
		want    string
	}{
		{Sources{File: given, Environment: environment, DefaultFile: usual}, "debug"},
		{Sources{Environment: environment, DefaultFile: usual}, "warn"},
		{Sources{DefaultFile: usual}, "error"},
		{Sources{DefaultFile: filepath.Join(t.TempDir(), "absent.yaml")}, "info"},
		{Sources{}, "info"},
	} {
		loaded, err := load(test.sources)
		require.NoError(t, err)
		require.Equal(t, test.want, loaded.Settings.Log.Level)
	}
	_, err := load(Sources{Environment: []string{"BANKINGAPI_CONFIG=no/such.yaml"}, DefaultFile: usual})
	require.EqualError(t, err, "no/such.yaml: cannot be read: no such file or directory")
}

func FuzzLoadFile(f *testing.F) {
	f.Add("http:\n  address: 127.0.0.1:8443\n")
	f.Add("http: &a {docs: *a}\n")
	f.Fuzz(func(t *testing.T, content string) {
		loaded, err := load(Sources{File: write(t, "settings.yaml", content)})
		if err == nil {
			require.NoError(t, loaded.Settings.Validate())
		}
	})
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestLoadList(t *testing.T) {
	t.Parallel()
	want := []string{"one.example", "two"}
	for _, sources := range []Sources{
		{File: write(t, "words.yaml", "ops: {hosts: ' one.example ,two,'}\n")},
		{File: write(t, "sequence.yaml", "ops:\n  hosts:\n    - one.example\n    - two\n")},
		{Environment: []string{"BANKINGAPI_OPS__HOSTS=one.example,two"}},
		{Flags: map[string]string{"ops.hosts": "one.example, two"}},
	} {
		loaded, err := load(sources)
		require.NoError(t, err)
		require.Equal(t, want, loaded.Settings.Ops.Hosts.Items())
	}
	require.Empty(t, Default().Ops.Hosts.Items())
}

func load(s Sources) (Loaded, error) { return Load(s, known) }

// On Postgres a balancer gets the time to notice that a replica ends, unless the operator says
// otherwise.
func TestDelayOnPostgres(t *testing.T) {
	t.Parallel()
	postgres := []string{"BANKINGAPI_STORAGE__DRIVER=postgres", "BANKINGAPI_STORAGE__DSN=postgres://db/bank"}
	for _, test := range []struct {
		environment []string
		want        time.Duration
	}{
		{nil, 0},
		{postgres, 5 * time.Second},
		{append([]string{"BANKINGAPI_SHUTDOWN__DELAY=0s"}, postgres...), 0},
		{append([]string{"BANKINGAPI_SHUTDOWN__DELAY=9s"}, postgres...), 9 * time.Second},
	} {
		loaded, err := load(Sources{Environment: test.environment})
		require.NoError(t, err)
		require.Equal(t, test.want, loaded.Settings.Shutdown.Delay)
	}
}

func TestDocumentInfo(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"":                                  "",
		"contact: {name: Integration desk}": "",
		"contact: {name: Desk, email: api@bank.example, url: https://bank.example/help}\ntermsOfService: https://bank.example/terms": "",
		"contact: {email: Desk <api@bank.example>}": "contact.email is an email address",
		"contact: {url: bank.example}":              "contact.url is an http or https URL",
		"termsOfService: javascript:alert(1)":       "termsOfService is an http or https URL",
		"terms_url: https://bank.example":           "must name a YAML file with contact (name, email, url) and termsOfService: line 1: field terms_url not found",
		"contact: [":                                "must name a YAML file with contact",
	} {
		file := write(t, "info.yaml", content)
		_, err := load(Sources{Environment: []string{"BANKINGAPI_HTTP__DOCUMENT_INFO=" + file}})
		if want == "" {
			require.NoError(t, err, content)
			continue
		}
		require.ErrorContains(t, err, "http.document_info: ", content)
		require.ErrorContains(t, err, want, content)
		require.ErrorContains(t, err, "(environment BANKINGAPI_HTTP__DOCUMENT_INFO)", content)
	}
	_, err := load(Sources{Flags: map[string]string{"http.document_info": "open-sesame"}})
	require.EqualError(t, err, "http.document_info: cannot be read: no such file or directory (flag --http.document_info)")
}
