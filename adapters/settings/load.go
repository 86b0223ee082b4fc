package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Sources are the sources of settings in addition to the defaults. Later ones
// take precedence.
type Sources struct {
	// File is the path of a YAML file; empty is none.
	File string
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
	for _, s := range All() {
		values = append(values, Value{Setting: s, Text: show(s.field(&l.Settings)), Origin: l.origin(s.Path)})
	}
	return values
}

func (l Loaded) origin(path string) string {
	if origin, ok := l.origins[path]; ok {
		return origin
	}
	return "default"
}

// Load reads the settings: a flag wins over the environment, that over the
// file, that over the default. Unknown keys and variables are problems, not
// ignored. The error is Problems, with everything that is wrong in all sources
// and with the settings they add up to.
func Load(sources Sources, drivers Drivers) (Loaded, error) {
	loaded := Loaded{Settings: Default(), origins: map[string]string{}}
	file, problems := readFile(sources.File)
	environment, wrong := readEnvironment(sources.Environment)
	problems = append(problems, wrong...)
	flags, wrong := readFlags(sources.Flags)
	problems = append(problems, wrong...)
	for _, layer := range []layer{file, environment, flags} {
		problems = append(problems, loaded.apply(layer)...)
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

// A layer has the values of one source, by path.
type layer map[string]given

type given struct{ text, origin string }

func (l *Loaded) apply(from layer) (problems Problems) {
	for _, s := range All() {
		value, ok := from[s.Path]
		if !ok {
			continue
		}
		if err := assign(s.field(&l.Settings), value.text); err != nil {
			problems = append(problems, Problem{s.Path, err.Error(), value.origin})
			continue
		}
		l.origins[s.Path] = value.origin
	}
	return problems
}

func readFlags(flags map[string]string) (layer, Problems) {
	known := map[string]bool{}
	for _, s := range All() {
		known[s.Path] = true
	}
	values, problems := layer{}, Problems{}
	for path, text := range flags {
		if !known[path] {
			problems = append(problems, Problem{Path: path, Rule: "unknown setting", Origin: "flag"})
		}
		values[path] = given{text, "flag --" + path}
	}
	return values, problems
}

// readEnvironment also follows the _FILE twin of a secret's variable.
func readEnvironment(environment []string) (layer, Problems) {
	settings, twins, names := map[string]Setting{}, map[string]Setting{}, []string{}
	for _, s := range All() {
		settings[s.Variable()] = s
		names = append(names, s.Variable())
		if s.IsSecret() {
			twins[s.Variable()+"_FILE"] = s
			names = append(names, s.Variable()+"_FILE")
		}
	}

	values, fromFiles, problems := layer{}, layer{}, Problems{}
	for _, entry := range environment {
		name, text, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix) {
			continue
		}
		origin := "environment " + name
		if s, ok := settings[name]; ok {
			values[s.Path] = given{text, origin}
		} else if s, ok := twins[name]; ok {
			content, err := os.ReadFile(text)
			if err != nil {
				problems = append(problems, Problem{s.Path, "cannot be read from its file: " + reason(err), origin})
				continue
			}
			fromFiles[s.Path] = given{strings.TrimRight(string(content), "\r\n"), origin}
		} else {
			problems = append(problems, Problem{name, unknown("variable", name, names), "environment"})
		}
	}
	for path, value := range fromFiles {
		if plain, both := values[path]; both {
			problems = append(problems, Problem{path, "is given twice, also by " + plain.origin + ": keep one", value.origin})
		}
		values[path] = value
	}
	return values, problems
}

// readFile walks the YAML tree rather than decoding it, to know the line of
// every key and to let nothing pass that decoding would forgive.
func readFile(path string) (layer, Problems) {
	f := &settingsFile{path: path, values: layer{}}
	if path == "" {
		return f.values, nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, Problems{{Path: path, Rule: "cannot be read: " + reason(err)}}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document, next yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF): // empty, or comments only
		return f.values, nil
	case err != nil:
		return nil, Problems{{Path: path, Rule: "is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}}
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		f.problem(path, "must hold one YAML document", &next)
	}
	for _, s := range All() {
		section, _, _ := strings.Cut(s.Path, ".")
		if !slices.Contains(f.sections, section) {
			f.sections = append(f.sections, section)
		}
		f.settings = append(f.settings, s.Path)
	}
	if root := document.Content[0]; root.Kind == yaml.MappingNode {
		f.section("", root)
	} else if root.Tag != "!!null" {
		f.problem(path, "must hold sections with settings, as in http: {address: ...}", root)
	}
	return f.values, f.problems
}

type settingsFile struct {
	path     string
	sections []string
	settings []string
	values   layer
	problems Problems
}

// section reads the keys of a mapping; prefix is the path of the mapping.
func (f *settingsFile) section(prefix string, mapping *yaml.Node) {
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		path := prefix + key.Value
		isSetting, isSection := slices.Contains(f.settings, path), slices.Contains(f.sections, path)
		_, twice := f.values[path]
		switch {
		case isSection && value.Kind == yaml.MappingNode:
			f.section(path+".", value)
		case isSection && value.Tag == "!!null": // all its keys are commented out
		case isSection:
			f.problem(path, "is a section, and must hold settings", key)
		case !isSetting:
			f.problem(path, unknown("setting", path, slices.Concat(f.settings, f.sections)), key)
		case twice:
			f.problem(path, "is given twice, the first time in "+f.values[path].origin, key)
		case value.Kind == yaml.SequenceNode && isList(path):
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
func (f *settingsFile) list(path string, key, sequence *yaml.Node) {
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

func isList(path string) bool {
	for _, s := range All() {
		if s.Path == path {
			_, ok := s.field(new(Settings)).(*List)
			return ok
		}
	}
	return false
}

func (f *settingsFile) problem(path, rule string, at *yaml.Node) {
	f.problems = append(f.problems, Problem{path, rule, f.origin(at)})
}

func (f *settingsFile) origin(at *yaml.Node) string {
	return fmt.Sprintf("file %s:%d", f.path, at.Line)
}

func unknown(what, name string, known []string) string {
	if near, ok := nearest(name, known); ok {
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
