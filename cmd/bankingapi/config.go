package main

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func (p program) configCommand() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the settings in effect, and where each comes from",
		Long: `Prints every setting with its value in effect and where it came from; secrets as ***.
Nothing is opened or started. Settings that cannot be used are all named, with exit status 2.`,
		Example: `  bankingapi config
  bankingapi config --config bankingapi.yaml --check`,
		Args:        named(),
		Annotations: listSettings(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			loaded, err := p.load(cmd)
			if err != nil {
				return err
			}
			if check {
				fmt.Fprintln(cmd.ErrOrStderr(), "The settings are valid.")
				return nil
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "SETTING\tVALUE\tORIGIN")
			for _, v := range loaded.Values() {
				fmt.Fprintf(table, "%s\t%s\t%s\n", v.Path, oneWord(v.Text), v.Origin)
			}
			return table.Flush()
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "only say whether the settings are valid")
	return cmd
}

// oneWord quotes a text that would not read as one word of a table.
func oneWord(text string) string {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == '"' || !strconv.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
