package command

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bankingapi/bootstrap"
)

// settingValue keeps the text of a flag. bootstrap.Load parses it, so that it can
// report the problems of all settings at once.
type settingValue struct{ text, form string }

func (v *settingValue) Set(text string) error { v.text = text; return nil }
func (v *settingValue) String() string        { return v.text }
func (v *settingValue) Type() string          { return v.form }

func addSettingFlags(root *cobra.Command) {
	for _, s := range bootstrap.AllSettings() {
		value := &settingValue{s.Default(), s.Form}
		if s.IsSwitch() {
			value.form = "bool"
		}
		flag := root.PersistentFlags().VarPF(value, s.Path, "", s.Usage)
		if s.IsSwitch() {
			flag.NoOptDefVal = "true"
		}
		if choices := s.Choices(); choices != nil {
			complete(root, s.Path, choices...)
		}
	}
}

// complete registers the values of a flag for shell completion.
func complete(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag was renamed
	}
}

func isSetting(flag *pflag.Flag) bool {
	_, ok := flag.Value.(*settingValue)
	return ok
}

// withSettings is the RunE of a command that begins with its settings.
func (p program) withSettings(run func(*cobra.Command, []string, bootstrap.Loaded) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		loaded, err := p.load(cmd)
		if err != nil {
			return err
		}
		return run(cmd, args, loaded)
	}
}

// load reads the settings of a command line. Its error is bootstrap.Problems.
func (p program) load(cmd *cobra.Command) (bootstrap.Loaded, error) {
	flags := map[string]string{}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if isSetting(flag) {
			flags[flag.Name] = flag.Value.String()
		}
	})
	return bootstrap.Load(bootstrap.Sources{
		File:        cmd.Flag("config").Value.String(),
		Environment: p.environment,
		Flags:       flags,
	}, p.options)
}
