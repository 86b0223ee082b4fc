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
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Sources are the sources of settings in addition to the defaults. Later ones
// take precedence.
type Sources struct {
	// File is the path of a YAML file. If it is empty, the variable
	// BANKINGAPI_CONFIG names it. If that is not set, it is DefaultFile, which
	// need not exist.
	File, DefaultFile string
	// Environment is a list of NAME=value as os.Environ gives it. Only the
	// names that begin with BANKINGAPI_ count.
	Environment []string
	// Flags are values by the path of their setting.
	Flags map[string]string
}

// Loaded is settings that validate, and where each came from.
type Loaded struct {
	Settings Settings
	origins  map[string]string
}

// Value is one setting as it is in effect.
type Value struct {
	Setting
	// Text is the value as it would be written, *** for a secret.
	Text string
	// Origin is default, or names the file and line, the variable or the flag.
	Origin string
}

// Values lists every setting, in the order of the Settings struct.
func (l Loaded) Values() []Value {
	var values []Value
	for _, s := range l.Settings.rows() {
		values = append(values, Value{Setting: s, Text: show(s.field), Origin: l.origin(s.Path)})
	}
	return values
}

func (l Loaded) origin(path string) string { return cmp.Or(l.origins[path], "default") }

// Load reads the settings: a flag wins over the environment, that over the
// file, that over the default. Unknown keys and variables are problems, not
// ignored. The error is Problems, with everything that is wrong in all sources
// and with the settings they add up to.
func Load(sources Sources, drivers Drivers) (Loaded, error) {
	loaded := Loaded{Settings: Default(), origins: map[string]string{}}
	layers := []*layer{readFile(sources.file()), readEnvironment(sources.Environment), readFlags(sources.Flags)}
	var problems Problems
	for _, l := range layers {
		problems = append(problems, l.problems...)
	}
	for _, l := range layers {
		for _, s := range loaded.Settings.rows() {
			value, ok := l.values[s.Path]
			if !ok {
				continue
			}
			if err := assign(s.field, value.text); err != nil {
				problems = append(problems, Problem{s.Path, err.Error(), value.origin})
				continue
			}
			loaded.origins[s.Path] = value.origin
		}
	}

	var broken Problems
	if errors.As(loaded.Settings.ValidateFor(drivers), &broken) {
		for _, p := range broken {
			p.Origin = loaded.origin(p.Path)
			problems = append(problems, p)
		}
	}
	if len(problems) > 0 {
		return Loaded{}, problems
	}
	return loaded, nil
}

// file returns the file to read, or "".
func (s Sources) file() string {
	if s.File != "" {
		return s.File
	}
	for _, entry := range s.Environment {
		if file, ok := strings.CutPrefix(entry, fileVariable+"="); ok && file != "" {
			return file
		}
	}
	if _, err := os.Stat(s.DefaultFile); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return s.DefaultFile
}

// A layer has the values of one source, by path, and what is wrong with it.
type layer struct {
	values   map[string]given
	problems Problems
}

type given struct{ text, origin string }

func newLayer() *layer { return &layer{values: map[string]given{}} }

func (l *layer) problem(path, rule, origin string) {
	l.problems = append(l.problems, Problem{path, rule, origin})
}

func readFlags(flags map[string]string) *layer {
	l, all := newLayer(), All()
	for path, text := range flags {
		if !slices.ContainsFunc(all, func(s Setting) bool { return s.Path == path }) {
			l.problem(path, "unknown setting", "flag")
		}
		l.values[path] = given{text, "flag --" + path}
	}
	return l
}

// readEnvironment also follows the _FILE twin of a secret's variable.
func readEnvironment(environment []string) *layer {
	const fromFile = "_FILE"
	settings := map[string]Setting{} // by variable
	for _, s := range All() {
		settings[s.Variable()] = s
		if s.IsSecret() {
			settings[s.Variable()+fromFile] = s
		}
	}
	l := newLayer()
	for _, entry := range slices.Sorted(slices.Values(environment)) { // the twin comes second
		name, text, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix) || name == fileVariable {
			continue
		}
		s, ok := settings[name]
		if !ok {
			l.problem(name, unknown("variable", name, settings), "environment")
			continue
		}
		origin := "environment " + name
		if name != s.Variable() {
			content, err := os.ReadFile(text)
			if err != nil {
				l.problem(s.Path, "cannot be read from its file: "+reason(err), origin)
				continue
			}
			if plain, both := l.values[s.Path]; both {
				l.problem(s.Path, "is given twice, also by "+plain.origin+": keep one", origin)
			}
			text = strings.TrimRight(string(content), "\r\n")
		}
		l.values[s.Path] = given{text, origin}
	}
	return l
}

// readFile walks the YAML tree rather than decoding it, to know the line of
// every key and to let nothing pass that decoding would forgive.
func readFile(path string) *layer {
	f := settingsFile{newLayer(), path, map[string]Setting{}}
	if path == "" {
		return f.layer
	}
	content, err := os.ReadFile(path)
	if err != nil {
		f.layer.problem(path, "cannot be read: "+reason(err), "")
		return f.layer
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document, next yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF): // empty, or comments only
		return f.layer
	case err != nil:
		f.layer.problem(path, "is not YAML: "+strings.TrimPrefix(err.Error(), "yaml: "), "")
		return f.layer
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		f.problem(path, "must hold one YAML document", &next)
	}
	for _, s := range All() {
		section, _, _ := strings.Cut(s.Path, ".")
		f.known[section], f.known[s.Path] = Setting{}, s
	}
	if root := document.Content[0]; root.Kind == yaml.MappingNode {
		f.section("", root)
	} else if root.Tag != "!!null" {
		f.problem(path, "must hold sections with settings, as in http: {address: ...}", root)
	}
	return f.layer
}

type settingsFile struct {
	*layer
	path  string
	known map[string]Setting // by path; a section is a Setting without a path
}

// section reads the keys of a mapping; prefix is the path of the mapping.
func (f settingsFile) section(prefix string, mapping *yaml.Node) {
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		path := prefix + key.Value
		setting, isKnown := f.known[path]
		isSection := isKnown && setting.Path == ""
		first, twice := f.values[path]
		switch {
		case isSection && value.Kind == yaml.MappingNode:
			f.section(path+".", value)
		case isSection && value.Tag == "!!null": // all its keys are commented out
		case isSection:
			f.problem(path, "is a section, and must hold settings", key)
		case !isKnown:
			f.problem(path, unknown("setting", path, f.known), key)
		case twice:
			f.problem(path, "is given twice, the first time in "+first.origin, key)
		case value.Kind == yaml.SequenceNode && isA[List](setting):
			f.list(path, key, value)
		case value.Kind != yaml.ScalarNode:
			f.problem(path, "must be a single value", key)
		case value.Tag == "!!null":
			f.problem(path, `has no value: write "" for an empty one, or leave the line out`, key)
		default:
			f.values[path] = given{value.Value, f.origin(key)}
		}
	}
}

// list reads a sequence as the value of a setting that is a List.
func (f settingsFile) list(path string, key, sequence *yaml.Node) {
	items := make([]string, len(sequence.Content))
	for i, item := range sequence.Content {
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" || strings.Contains(item.Value, ",") {
			f.problem(path, "must be a list of single values", key)
			return
		}
		items[i] = item.Value
	}
	f.values[path] = given{strings.Join(items, ","), f.origin(key)}
}

func (f settingsFile) problem(path, rule string, at *yaml.Node) {
	f.layer.problem(path, rule, f.origin(at))
}

func (f settingsFile) origin(at *yaml.Node) string {
	return fmt.Sprintf("file %s:%d", f.path, at.Line)
}

func unknown(what, name string, known map[string]Setting) string {
	if near, ok := nearest(name, slices.Sorted(maps.Keys(known))); ok {
		return "unknown " + what + ", did you mean " + near + "?"
	}
	return "unknown " + what
}

// reason is why a file cannot be read, without its name: the name may be a
// secret that was put in the wrong place.
func reason(err error) string {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err.Error()
	}
	return err.Error()
}
