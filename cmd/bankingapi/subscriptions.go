package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"bankingapi/bootstrap"
)

func (p program) subscriptionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "subscriptions COMMAND",
		Short: "Manage who may call the API, and their keys",
		Long: `A subscription has two keys, so that a caller changes keys without a pause: use the secondary,
regenerate the primary, use it, regenerate the secondary. A running service knows of every change
within 5 seconds.`,
		Example: `  bankingapi subscriptions create mobile-app --operation AddPushNotificationResponse --rate 50
  bankingapi subscriptions regenerate mobile-app primary
  bankingapi subscriptions list`,
		Args:        cobra.ArbitraryArgs,
		Annotations: mentionSettings(),
		RunE:        chooseCommand,
	}
	cmd.AddCommand(
		p.createSubscriptionCommand(),
		p.listSubscriptionsCommand(),
		p.regenerateKeyCommand(),
		p.subscriptionStateCommand("suspend", "suspended", "Refuse its keys until it is activated"),
		p.subscriptionStateCommand("activate", "active", "Accept its keys again"),
		p.subscriptionStateCommand("cancel", "cancelled", "Refuse its keys for ever"),
	)
	return cmd
}

func (p program) createSubscriptionCommand() *cobra.Command {
	var s bootstrap.Subscription
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a subscription and print its two keys",
		Long: `Makes a subscription and prints its primary and its secondary key, each on a line of its own.
They are shown this once: the database keeps only their hashes.`,
		Example: `  bankingapi subscriptions create mobile-app
  bankingapi subscriptions create teller --operation BuyFundFromCustomer --rate 20 --channel BRANCH`,
		Args:        named("NAME"),
		Annotations: mentionSettings(),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range s.Operations {
				if known := bootstrap.OperationNames(); !slices.Contains(known, name) {
					return wrongUsef("--operation must be %s", strings.Join(known, " or "))
				}
			}
			if s.RequestsPerSecond < 0 {
				return wrongUsef("--rate must be 1 or more, or 0 for no limit")
			}
			s.Name = args[0]
			return p.withApp(cmd, func(app *bootstrap.App) error {
				primary, secondary, err := app.CreateSubscription(cmd.Context(), s)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n%s\n", primary, secondary)
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&s.Operations, "operation", nil, "an `operation` it may call, repeatable (default: all)")
	flags.IntVar(&s.RequestsPerSecond, "rate", 0, "most `requests` per second, on each replica (default: no limit)")
	flags.StringVar(&s.AppKey, "app-key", "", "the AppKey defined for it; its requests may not contradict")
	flags.StringVar(&s.Channel, "channel", "", "the Channel defined for it; its requests may not contradict")
	flags.StringVar(&s.TellerName, "teller-name", "", "the TellerName defined for it; its requests may not contradict")
	complete(cmd, "operation", bootstrap.OperationNames()...)
	return cmd
}

func (p program) listSubscriptionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:         "list",
		Short:       "List all subscriptions, without their keys",
		Example:     "  bankingapi subscriptions list",
		Args:        named(),
		Annotations: mentionSettings(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withApp(cmd, func(app *bootstrap.App) error {
				list, err := app.Subscriptions(cmd.Context())
				if err != nil {
					return err
				}
				return printSubscriptions(cmd.OutOrStdout(), list)
			})
		},
	}
}

func printSubscriptions(out io.Writer, list []bootstrap.Subscription) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSTATE\tOPERATIONS\tRATE\tAPPKEY\tCHANNEL\tTELLERNAME")
	for _, s := range list {
		rate := "no limit"
		if s.RequestsPerSecond > 0 {
			rate = strconv.Itoa(s.RequestsPerSecond) + "/s"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", oneWord(s.Name), s.State, strings.Join(s.Operations, ","), rate,
			orDash(s.AppKey), orDash(s.Channel), orDash(s.TellerName))
	}
	return table.Flush()
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return oneWord(text)
}

func (p program) regenerateKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "regenerate NAME primary|secondary",
		Short: "Replace one of its keys and print the new one",
		Long: `Makes a new key in place of the old one, which stops working, and prints it: this once, the
database keeps only its hash.`,
		Example:     "  bankingapi subscriptions regenerate mobile-app primary",
		Args:        named("NAME", "primary or secondary"),
		Annotations: mentionSettings(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != "primary" && args[1] != "secondary" {
				return wrongUsef("unknown key %q: primary or secondary", args[1])
			}
			return p.withApp(cmd, func(app *bootstrap.App) error {
				key, err := app.RegenerateKey(cmd.Context(), args[0], args[1])
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), key)
				return err
			})
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return []string{"primary", "secondary"}, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

func (p program) subscriptionStateCommand(verb, state, short string) *cobra.Command {
	return &cobra.Command{
		Use:         verb + " NAME",
		Short:       short,
		Example:     "  bankingapi subscriptions " + verb + " mobile-app",
		Args:        named("NAME"),
		Annotations: mentionSettings(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withApp(cmd, func(app *bootstrap.App) error {
				if err := app.SetSubscriptionState(cmd.Context(), args[0], state); err != nil {
					return err
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "%s is %s.\n", args[0], state)
				return nil
			})
		},
	}
}
