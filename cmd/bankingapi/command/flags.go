package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bankingapi/adapters/settings"
	"bankingapi/domain/day"
)

// flags declares the flags of a command. Each flag is bound to a field of the command's options,
// so that code reads the field and never asks for a flag by its name.
type flags struct {
	set  *pflag.FlagSet
	call *call
}

// as declares --as, the person of the act. A command without it changes nothing.
func (f *flags) as() {
	f.call.mayChange = true
	f.set.StringVar(&f.call.as, "as", "", "your `NAME`, for the audit (default: the system user)")
}

// reason declares --as and --reason, which may be left out.
func (f *flags) reason() {
	f.as()
	f.set.StringVar(&f.call.reason, "reason", "", "why, in your `words`, for the audit")
}

// neededReason declares --as and --reason, which must be given.
func (f *flags) neededReason() {
	f.as()
	f.set.StringVar(&f.call.reason, "reason", "", "why, in your `words`: required")
	f.need("reason")
}

// json declares --format of a command that prints a value.
func (f *flags) json() {
	f.oneOf(&f.call.format, "format", "text, or json for programs", "text", "json")
}

// dryRun declares --dry-run. With it the book is opened as it is.
func (f *flags) dryRun(usage string) { f.set.BoolVar(&f.call.dryRun, "dry-run", false, usage) }

// oneOf declares a flag that has one of a few values, the first by default.
func (f *flags) oneOf(field *string, name, usage string, values ...string) {
	*field = values[0]
	f.set.Var(&choice{field, values}, name, usage)
	f.complete(name, values...)
}

// complete sets the values of a flag for shell completion.
func (f *flags) complete(name string, values ...string) {
	_ = f.call.cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// need makes a flag required.
func (f *flags) need(names ...string) { f.call.needed = append(f.call.needed, names...) }

// flagError says what is wrong with a value, after the name of its flag.
type flagError string

func (e flagError) Error() string { return string(e) }

// dayValue is the value of a flag with a day. Without the flag it is no day.
type dayValue struct {
	field   *day.Day
	example string
}

func (v *dayValue) String() string { return v.field.String() }
func (v *dayValue) Type() string   { return "string" }

func (v *dayValue) Set(text string) (err error) {
	*v.field, err = day.Parse(text)
	if err != nil {
		return flagError("must be a day like " + v.example)
	}
	return nil
}

// once is the value of a flag that may be given once. A script with an empty variable would
// otherwise act on everything: an empty text counts only where it has a meaning.
type once struct {
	pflag.Value
	isGiven, mayBeEmpty bool
}

func (v *once) Set(text string) error {
	switch {
	case v.isGiven:
		return flagError("is given twice")
	case text == "" && !v.mayBeEmpty:
		return flagError("has no value")
	}
	v.isGiven = true
	return v.Value.Set(text)
}

// onlyOnce makes every flag one that may be given once, unless it has several values.
func (c *call) onlyOnce() {
	c.cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if _, isRepeatable := flag.Value.(pflag.SliceValue); isRepeatable {
			return
		}
		_, isTerm := flag.Value.(optionalValue[string])
		flag.Value = &once{Value: flag.Value, mayBeEmpty: isTerm || isSetting(flag) || slices.Contains(c.needed, flag.Name)}
	})
}

// forCompletion prepares a command and those below it for completing a line. It undoes onlyOnce,
// because cobra parses the flags of a line twice. A shell shows the usage of a flag in one line,
// without the signs that help reads.
func forCompletion(cmd *cobra.Command) {
	prepare := func(flag *pflag.Flag) {
		single, isOnce := flag.Value.(*once)
		if isOnce {
			flag.Value = single.Value
		}
		flag.Usage = strings.NewReplacer("`", "", "\n", " ").Replace(flag.Usage)
	}
	cmd.Flags().VisitAll(prepare)
	cmd.PersistentFlags().VisitAll(prepare)
	for _, sub := range cmd.Commands() {
		forCompletion(sub)
	}
}

var errNoReason = wrongUsef("--reason is missing: say why, for the audit")

// checkNeeded returns an error if a required flag is missing.
func (c *call) checkNeeded() error {
	for _, name := range c.needed {
		flag := c.cmd.Flag(name)
		switch {
		case flag.Changed && flag.Value.String() != "":
		case name == "reason":
			return errNoReason
		default:
			return wrongUsef("--%s is missing", name)
		}
	}
	return nil
}

// choice is the value of a flag that has one of a few values.
type choice struct {
	field  *string
	values []string
}

func (v *choice) String() string { return *v.field }
func (v *choice) Type() string   { return strings.Join(v.values, "|") }

func (v *choice) Set(text string) error {
	if !slices.Contains(v.values, text) {
		return flagError("must be " + settings.Choice(v.values))
	}
	*v.field = text
	return nil
}

// optional is the value of a flag that may be left out, and then changes nothing.
type optional[T any] struct {
	value   T
	isGiven bool
}

// setTo sets a field to the value, if it is given.
func (o optional[T]) setTo(field *T) {
	if o.isGiven {
		*field = o.value
	}
}

// optionalValue lets pflag set an optional.
type optionalValue[T any] struct {
	of    *optional[T]
	form  string
	parse func(string) (T, error)
}

func (v optionalValue[T]) Type() string { return v.form }

func (v optionalValue[T]) String() string {
	if v.of == nil || !v.of.isGiven {
		return ""
	}
	return fmt.Sprint(v.of.value)
}

func (v optionalValue[T]) Set(text string) error {
	value, err := v.parse(text)
	if err != nil {
		return err
	}
	v.of.value = value
	v.of.isGiven = true
	return nil
}

func text(of *optional[string]) pflag.Value {
	return optionalValue[string]{of, "string", func(text string) (string, error) { return text, nil }}
}

// number is the value of a flag with a whole number. 010 is ten: the flags of pflag would read it as
// eight.
func number(of *optional[int64]) pflag.Value {
	return optionalValue[int64]{of, "int64", func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }}
}

func onOff(of *optional[bool]) pflag.Value {
	return optionalValue[bool]{of, "bool", strconv.ParseBool}
}

// settingValue is the text of a setting. bootstrap.Load parses it, so that it can report the
// problems of all settings at once.
type settingValue struct{ text, form string }

func (v *settingValue) String() string        { return v.text }
func (v *settingValue) Type() string          { return v.form }
func (v *settingValue) Set(text string) error { v.text = text; return nil }

// addSettings declares a flag for each setting.
func (f *flags) addSettings() {
	f.set.SortFlags = false // help sorts all flags except the settings
	for _, s := range settings.All() {
		value := &settingValue{s.Default, s.Form}
		flag := f.set.VarPF(value, s.Path, "", s.Usage)
		if s.IsSwitch() {
			value.form = "bool"
			flag.NoOptDefVal = "true"
		}
		choices := s.Choices()
		if choices != nil {
			f.complete(s.Path, choices...)
		}
	}
}

// isSetting reports whether a flag is a setting: only settings have a section in the name.
func isSetting(flag *pflag.Flag) bool { return strings.Contains(flag.Name, ".") }
