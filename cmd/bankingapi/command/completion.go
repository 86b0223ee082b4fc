package command

import (
	"io"

	"github.com/spf13/cobra"
)

func completionCommand(p program) *cobra.Command {
	return p.plain(described("completion"), func(c *call) error {
		root := c.Root()
		return map[string]func(io.Writer) error{
			"bash":       func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
			"zsh":        root.GenZshCompletion,
			"fish":       func(w io.Writer) error { return root.GenFishCompletion(w, true) },
			"powershell": root.GenPowerShellCompletionWithDesc,
		}[c.args[0]](c.OutOrStdout())
	})
}
