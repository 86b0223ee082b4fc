package command

import (
	"github.com/spf13/cobra"
)

func completionCommand(p program) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return p.plain(&cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a shell completion script",
		Long: `Prints a script that completes commands, flags and values in your shell. Load it now to try it, or
load it in the startup file of your shell.`,
		Example: `  source <(bankingapi completion bash)
  bankingapi completion bash > /etc/bash_completion.d/bankingapi
  bankingapi completion zsh > "${fpath[1]}/_bankingapi"
  bankingapi completion fish > ~/.config/fish/completions/bankingapi.fish
  bankingapi completion powershell | Out-String | Invoke-Expression`,
		Args:      named("the shell"),
		ValidArgs: shells,
	}, func(c *call) error {
		out := c.OutOrStdout()
		switch root := c.Root(); c.args[0] {
		case "bash":
			return root.GenBashCompletionV2(out, true)
		case "zsh":
			return root.GenZshCompletion(out)
		case "fish":
			return root.GenFishCompletion(out, true)
		case "powershell":
			return root.GenPowerShellCompletionWithDesc(out)
		}
		return wrongUsef("no completion for the shell %q: want %s", c.args[0], either(shells))
	})
}
