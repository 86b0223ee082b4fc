package settings

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Sources are the sources of settings, after the defaults. Later sources take precedence.
type Sources struct {
	// File is the path of a YAML file. If it is empty, the variable BANKINGAPI_CONFIG names
	// it. If that is not set, it is DefaultFile, which need not exist.
	File, DefaultFile string
	// Environment is a list of NAME=value, as os.Environ returns it. Names without the prefix
	// BANKINGAPI_ are ignored, except CREDENTIALS_DIRECTORY of systemd: a file in this folder is
	// read in place of a named file with the same name.
	Environment []string
	// Flags are values by the path of their setting.
	Flags map[string]string
}

// Loaded has valid settings, and the origin of each setting.
type Loaded struct {
	Settings Settings
	origins  map[string]string // by path
}

// ByDefault is the origin of a setting that no source sets.
const ByDefault = "default"

// Origin returns where a setting comes from: ByDefault, or the file and line, the variable
// or the flag.
func (l Loaded) Origin(path string) string { return cmp.Or(l.origins[path], ByDefault) }

// Load reads the settings. A flag takes precedence over the environment, the environment over
// the file, and the file over the default. Unknown keys and variables are problems, except the
// variables that Kubernetes sets for a Service named bankingapi. The error
// is Problems, with all problems of all sources and of the resulting settings.
func Load(sources Sources, drivers Drivers) (Loaded, error) {
	l := &loader{Loaded: Loaded{Default(), map[string]string{}}, known: map[string]Setting{}}
	for _, s := range l.Settings.All() {
		section, _, _ := strings.Cut(s.Path, ".")
		l.known[section], l.known[s.Path] = Setting{}, s
	}
	environment := map[string]string{}
	for _, entry := range sources.Environment {
		name, text, _ := strings.Cut(entry, "=")
		switch {
		case strings.HasPrefix(name, envPrefix):
			environment[name] = text
		case name == credentialsVariable:
			l.credentials = text
		}
	}
	file := cmp.Or(sources.File, environment[fileVariable])
	if _, err := os.Stat(sources.DefaultFile); file == "" && !errors.Is(err, fs.ErrNotExist) {
		file = sources.DefaultFile
	}
	delete(environment, fileVariable)
	l.readFile(file)
	l.readEnvironment(environment)
	for _, path := range slices.Sorted(maps.Keys(sources.Flags)) {
		s := l.known[path]
		if s.Path == "" {
			l.problem(path, unknown("setting", path, l.known), "flag")
		} else {
			l.set(s, sources.Flags[path], "flag --"+path)
		}
	}
	for _, file := range []*string{
		&l.Settings.TLS.CertFile, &l.Settings.TLS.KeyFile, &l.Settings.TLS.ClientCA, &l.Settings.Trail.KeyFile, &l.Settings.HTTP.DocumentInfo,
	} {
		*file = l.readable(*file)
	}
	if l.Settings.Storage.Driver == Postgres && l.Origin(delayPath) == ByDefault {
		l.Settings.Shutdown.Delay = postgresDelay
	}
	if _, err := ReadDocumentInfo(l.Settings.HTTP.DocumentInfo); err != nil {
		l.problem(infoPath, err.Error(), l.Origin(infoPath))
	}
	broken, _ := errors.AsType[Problems](l.Settings.ValidateFor(drivers))
	for _, p := range broken {
		origin := l.Origin(p.Path)
		isTold := slices.ContainsFunc(l.problems, func(told Problem) bool { return told.Path == p.Path })
		if origin == ByDefault && isTold { // the file with its value could not be read
			continue
		}
		l.problem(p.Path, p.Rule, origin)
	}
	if len(l.problems) > 0 {
		return Loaded{}, l.problems
	}
	return l.Loaded, nil
}

const (
	credentialsVariable = "CREDENTIALS_DIRECTORY"

	delayPath = "shutdown.delay"
	infoPath  = "http.document_info"
	// postgresDelay is the default of shutdown.delay on Postgres, where other replicas go on and
	// a balancer must notice that this one ends. A book in a file has one service.
	postgresDelay = 5 * time.Second
)

// A loader reads one source after the other into its settings.
type loader struct {
	Loaded
	known    map[string]Setting // by path; a section is a Setting without a path
	file     string
	problems Problems
	// credentials is the folder of what systemd hands to the service with LoadCredential.
	credentials string
}

// readable returns the name under which the process can read a file. A service under systemd may
// have a user that cannot read files of root, and gets copies of them, named like the files. So
// the same settings file fits the service and the commands that root runs.
func (l *loader) readable(file string) string {
	if l.credentials == "" || file == "" {
		return file
	}
	copied := filepath.Join(l.credentials, filepath.Base(file))
	if _, err := os.Stat(copied); err != nil {
		return file
	}
	return copied
}

func (l *loader) problem(path, rule, origin string) {
	l.problems = append(l.problems, Problem{path, rule, origin})
}

func (l *loader) set(s Setting, text, origin string) {
	l.origins[s.Path] = origin
	if err := assign(s.field, text); err != nil {
		l.problem(s.Path, err.Error(), origin)
	}
}

// readEnvironment also reads the _FILE variable of a secret: its value is the name of a file
// that has the secret.
func (l *loader) readEnvironment(environment map[string]string) {
	const fromFile = "_FILE"
	variables := map[string]Setting{}
	for _, s := range l.Settings.All() {
		variables[s.Variable()] = s
		if isA[Secret](s) {
			variables[s.Variable()+fromFile] = s
		}
	}
	for _, name := range slices.Sorted(maps.Keys(environment)) { // the _FILE variable comes second
		text := environment[name]
		s, known := variables[name]
		if !known && isOfCluster(name, text) {
			continue
		}
		if !known {
			l.problem(name, unknown("variable", name, variables), "environment")
			continue
		}
		origin := "environment " + name
		if name != s.Variable() {
			plain := "environment " + s.Variable()
			if l.origins[s.Path] == plain {
				l.problem(s.Path, "is given twice, also by "+plain+": keep one", origin)
			}
			l.setFromFile(s, text, origin)
			continue
		}
		l.set(s, text, origin)
	}
}

// setFromFile sets a secret to the content of a file.
func (l *loader) setFromFile(s Setting, file, origin string) {
	content, err := os.ReadFile(l.readable(file))
	if err != nil {
		l.problem(s.Path, fmt.Sprintf("cannot be read from its file: %v", errors.Unwrap(err)), origin) // the name of the file may be the secret itself
		return
	}
	l.set(s, strings.TrimRight(string(content), "\r\n"), origin)
}

// readFile walks the YAML tree instead of decoding it. So it knows the line of every key, and
// rejects errors that decoding would ignore.
func (l *loader) readFile(path string) {
	l.file = path
	if path == "" {
		return
	}
	content, err := os.ReadFile(path)
	if err != nil {
		l.problem(path, fmt.Sprintf("cannot be read: %v", errors.Unwrap(err)), "")
		return
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document, next yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF): // empty, or comments only
		return
	case err != nil:
		rule := "is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")
		if bytes.Contains(content, []byte("\n\t")) { // the error only speaks of a character
			rule += "; lines must be indented with blanks, not with tabs"
		}
		l.problem(path, rule, "")
		return
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		l.problem(path, "must hold one YAML document", l.at(&next))
	}
	root := document.Content[0]
	if root.Kind == yaml.MappingNode {
		l.section("", root)
	} else if root.Tag != "!!null" {
		l.problem(path, "must hold sections with settings, as in http: {address: ...}", l.at(root))
	}
}

// section reads the keys of a mapping; prefix is the path of the mapping.
func (l *loader) section(prefix string, mapping *yaml.Node) {
	for i := 0; i < len(mapping.Content); i += 2 {
		key := mapping.Content[i]
		value := mapping.Content[i+1]
		path := prefix + key.Value
		origin := l.at(key)
		setting, isKnown := l.known[path]
		isFile := false
		if secret, ok := l.known[strings.TrimSuffix(path, "_file")]; ok && !isKnown && isA[Secret](secret) {
			setting = secret
			isKnown = true
			isFile = true
		}
		isSection := isKnown && setting.Path == ""
		first, isTwice := l.origins[setting.Path]
		switch {
		case isSection && value.Tag == "!!null": // all its keys are commented out
		case isSection && value.Kind == yaml.MappingNode:
			l.section(path+".", value)
		case isSection:
			l.problem(path, "is a section, and must hold settings", origin)
		case !isKnown:
			l.problem(path, unknown("setting", path, l.known), origin)
		case isTwice:
			l.problem(path, "is given twice, the first time in "+first, origin)
		case value.Kind == yaml.SequenceNode && isA[List](setting):
			l.list(setting, value, origin)
		case value.Kind != yaml.ScalarNode:
			l.problem(path, "must be a single value", origin)
		case value.Tag == "!!null":
			l.problem(path, `has no value: write "" for an empty one, or leave the line out`, origin)
		case isFile:
			l.setFromFile(setting, value.Value, origin)
		default:
			l.set(setting, value.Value, origin)
		}
	}
}

// list reads a sequence as the value of a List.
func (l *loader) list(s Setting, sequence *yaml.Node, origin string) {
	var items []string
	for _, item := range sequence.Content {
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" || strings.Contains(item.Value, ",") {
			l.problem(s.Path, "must be a list of single values", origin)
			return
		}
		items = append(items, item.Value)
	}
	l.set(s, strings.Join(items, ","), origin)
}

func (l *loader) at(node *yaml.Node) string { return fmt.Sprintf("file %s:%d", l.file, node.Line) }

// unknown is the rule that a setting or variable breaks that the program does not have.
func unknown(what, name string, known map[string]Setting) string {
	if near, ok := nearest(name, slices.Sorted(maps.Keys(known))); ok {
		return "unknown " + what + ", did you mean " + near + "?"
	}
	return "unknown " + what
}
