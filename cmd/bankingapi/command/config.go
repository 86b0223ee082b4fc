package command

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bankingapi/bootstrap"
)

func (p program) configCommand() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the settings in effect and where they come from",
		Long: `Prints every setting, its value in effect and where the value comes from. Secrets are shown as ***.
It starts nothing. If settings are invalid, it lists all of them and exits with status 2. With --check
it also asks a Postgres server for settings that may lose data, and warns of them.`,
		Example: `  bankingapi config
  bankingapi config --config bankingapi.yaml --check`,
		Args:        named(),
		Annotations: listSettings(),
		RunE: p.withSettings(func(cmd *cobra.Command, _ []string, loaded bootstrap.Loaded) error {
			if check {
				fmt.Fprintln(cmd.ErrOrStderr(), "The settings are valid.")
				p.warnOfRisks(cmd, loaded.Settings)
				return nil
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "SETTING\tVALUE\tORIGIN")
			for _, v := range loaded.Values() {
				fmt.Fprintf(table, "%s\t%s\t%s\n", v.Path, oneWord(v.Text), v.Origin)
			}
			return table.Flush()
		}),
	}
	cmd.Flags().BoolVar(&check, "check", false, "only check the settings, and warn of risks of the database")
	return cmd
}

// askTimeout bounds how long a database is asked for its risks.
const askTimeout = 5 * time.Second

// warnOfRisks writes what may lose data. A database that cannot be asked makes
// no setting invalid.
func (p program) warnOfRisks(cmd *cobra.Command, settings bootstrap.Settings) {
	ctx, cancel := context.WithTimeout(cmd.Context(), askTimeout)
	defer cancel()
	risks, err := bootstrap.Risks(ctx, settings, p.options)
	if err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "Warning: the database cannot be asked for its settings:", err)
	}
	for _, r := range risks {
		fmt.Fprintln(cmd.ErrOrStderr(), "Warning:", r)
	}
}

// oneWord quotes a text that contains spaces or does not print.
func oneWord(text string) string {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == '"' || !strconv.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
