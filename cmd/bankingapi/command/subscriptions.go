package command

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bankingapi/application/subscriptions"
	"bankingapi/bootstrap"
	"bankingapi/domain/fault"
	"bankingapi/domain/subscription"
)

func (p program) subscriptionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "subscriptions COMMAND",
		Short: "Manage callers of the API and their keys",
		Long: `A subscription has two keys, so a caller can change keys without downtime: switch to the secondary
key, regenerate the primary key, switch back, regenerate the secondary key. Running services apply
every change within 5 seconds.`,
		Example: `  bankingapi subscriptions create mobile-app --operation AddPushNotificationResponse --rate 50
  bankingapi subscriptions regenerate mobile-app primary
  bankingapi subscriptions list`,
		Args:        cobra.ArbitraryArgs,
		Annotations: mentionSettings(),
		RunE:        chooseCommand,
	}
	cmd.AddCommand(
		addActor(p.createSubscriptionCommand()),
		addActor(p.changeSubscriptionCommand()),
		p.listSubscriptionsCommand(),
		addActor(p.regenerateKeyCommand()),
		addActor(p.subscriptionStateCommand("suspend", "suspended", "Refuse the keys of a subscription until it is activated")),
		addActor(p.subscriptionStateCommand("activate", "active", "Accept the keys of a suspended subscription again")),
		addActor(p.subscriptionStateCommand("cancel", "cancelled", "Refuse the keys of a subscription permanently")),
	)
	return cmd
}

func (p program) createSubscriptionCommand() *cobra.Command {
	var flags subscriptionFlags
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a subscription and print its two keys",
		Long: `Creates a subscription and prints its primary and secondary key, one per line. The keys are shown
only once: the database stores only their hashes.`,
		Example: `  bankingapi subscriptions create mobile-app
  bankingapi subscriptions create teller --operation BuyFundFromCustomer --rate 20 --channel BRANCH`,
		Args:        named("NAME"),
		Annotations: mentionSettings(),
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.Name = args[0]
			settings, err := p.checkSubscription(cmd, &flags)
			if err != nil {
				return err
			}
			return p.withManager(cmd, settings, func(m *subscriptions.Manager) error {
				primary, secondary, err := m.Create(cmd.Context(), flags.Subscription)
				if err != nil {
					return about(args[0], err)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n%s\n", primary.Reveal(), secondary.Reveal())
				return err
			})
		},
	}
	flags.addTo(cmd)
	return cmd
}

// withManager opens the book to read or change subscriptions.
func (p program) withManager(cmd *cobra.Command, settings bootstrap.Settings, do func(*subscriptions.Manager) error) error {
	return p.openBook(cmd, settings, func(app *bootstrap.App) error {
		m, err := app.Manager(cmd.Context())
		if err != nil {
			return err
		}
		return do(m)
	})
}

// about names the subscription that an error is about.
func about(name string, err error) error {
	return fmt.Errorf("subscription %q: %w", name, fault.Explain(err))
}

// subscriptionFlags are what a subscription can have.
type subscriptionFlags struct {
	subscription.Subscription
	operations, hostOperations []string
	expires                    string
}

func (s *subscriptionFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&s.operations, "operation", nil, "`operation` that it may call; repeatable (default: all)")
	flags.StringArrayVar(&s.hostOperations, "host-operation", nil, "`operation` of a host program that it may call; repeatable")
	flags.IntVar(&s.RequestsPerSecond, "rate", 0, "maximum `requests` per second on each replica (default: no limit)")
	flags.StringVar(&s.AppKey, "app-key", "", "AppKey of the caller; requests with another one get 403")
	flags.StringVar(&s.Channel, "channel", "", "Channel of the caller; requests with another one get 403")
	flags.StringVar(&s.TellerName, "teller-name", "", "TellerName of the caller; requests with another one get 403")
	flags.BoolVar(&s.RequireCallerID, "require-caller-id", false, "refuse requests without a CallerId: a repeat cannot sell twice then")
	flags.StringVar(&s.expires, "expires", "", "last `day` on which both keys work, in the bank's time zone; never for no end")
	complete(cmd, "operation", bootstrap.OperationNames()...)
}

// checkSubscription checks the flags, and returns the settings.
func (p program) checkSubscription(cmd *cobra.Command, s *subscriptionFlags) (bootstrap.Settings, error) {
	for _, name := range s.operations {
		if known := bootstrap.OperationNames(); !slices.Contains(known, name) {
			return bootstrap.Settings{}, wrongUsef("--operation must be %s", strings.Join(known, " or "))
		}
	}
	s.Grant(append(s.operations, s.hostOperations...)...)
	if s.RequestsPerSecond < 0 {
		return bootstrap.Settings{}, wrongUsef("--rate must be 1 or more, or 0 for no limit")
	}
	loaded, err := p.load(cmd)
	if err != nil || s.expires == "" || s.expires == "never" {
		return loaded.Settings, err
	}
	_, end, err := loaded.Settings.Bank.Day(s.expires)
	if err != nil {
		return loaded.Settings, wrongUsef("--expires must be a day like 2027-11-20, or never")
	}
	if !end.After(time.Now()) {
		return loaded.Settings, wrongUsef("--expires must not be in the past: use 'subscriptions suspend' to refuse the keys now")
	}
	s.PrimaryKey.Expires, s.SecondaryKey.Expires = end.UTC(), end.UTC()
	return loaded.Settings, nil
}

func (p program) changeSubscriptionCommand() *cobra.Command {
	var wanted subscriptionFlags
	cmd := &cobra.Command{
		Use:   "change NAME",
		Short: "Change a subscription; its keys and CallerIds stay",
		Long: `Changes what the flags name, and leaves everything else as it is. The keys stay the same, and
CallerIds that were used stay used. --operation and --host-operation replace all operations; --rate 0 removes the limit.`,
		Example: `  bankingapi subscriptions change mobile-app --rate 100
  bankingapi subscriptions change mobile-app --require-caller-id --expires 2027-12-31`,
		Args:        named("NAME"),
		Annotations: mentionSettings(),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		changed := cmd.Flags().Changed
		names := []string{"operation", "host-operation", "rate", "app-key", "channel", "teller-name", "require-caller-id", "expires"}
		if !slices.ContainsFunc(names, changed) {
			return wrongUsef("nothing to change: give one of --%s", strings.Join(names, ", --"))
		}
		settings, err := p.checkSubscription(cmd, &wanted)
		if err != nil {
			return err
		}
		return p.withManager(cmd, settings, func(m *subscriptions.Manager) error {
			err := m.Change(cmd.Context(), args[0], func(now *subscription.Subscription) error {
				s := *now
				set := func(name string, apply func()) {
					if changed(name) {
						apply()
					}
				}
				set("operation", func() { s.Operations, s.HostOperations = wanted.Operations, wanted.HostOperations })
				set("host-operation", func() { s.Operations, s.HostOperations = wanted.Operations, wanted.HostOperations })
				set("rate", func() { s.RequestsPerSecond = wanted.RequestsPerSecond })
				set("app-key", func() { s.AppKey = wanted.AppKey })
				set("channel", func() { s.Channel = wanted.Channel })
				set("teller-name", func() { s.TellerName = wanted.TellerName })
				set("require-caller-id", func() { s.RequireCallerID = wanted.RequireCallerID })
				set("expires", func() {
					now.PrimaryKey.Expires, now.SecondaryKey.Expires = wanted.PrimaryKey.Expires, wanted.SecondaryKey.Expires
				})
				return now.Revise(s)
			})
			if err != nil {
				return about(args[0], err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s is changed.\n", args[0])
			return nil
		})
	}
	wanted.addTo(cmd)
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
			loaded, err := p.load(cmd)
			if err != nil {
				return err
			}
			return p.withManager(cmd, loaded.Settings, func(m *subscriptions.Manager) error {
				list, err := m.List(cmd.Context())
				if err != nil {
					return err
				}
				return printSubscriptions(cmd.OutOrStdout(), list)
			})
		},
	}
}

func printSubscriptions(out io.Writer, list []*subscription.Subscription) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSTATE\tOPERATIONS\tRATE\tAPPKEY\tCHANNEL\tTELLERNAME\tCREATED\tCALLERID\tWITHOUT-CALLERID\tPRIMARY(CREATED,USED,EXPIRES)\tSECONDARY(CREATED,USED,EXPIRES)")
	for _, s := range list {
		rate := "no limit"
		if s.RequestsPerSecond > 0 {
			rate = strconv.Itoa(s.RequestsPerSecond) + "/s"
		}
		callerID := "optional"
		if s.RequireCallerID {
			callerID = "required"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", oneWord(s.Name), s.State, strings.Join(s.Granted(), ","), rate,
			orDash(s.AppKey), orDash(s.Channel), orDash(s.TellerName), minute(s.Created), callerID, minute(s.WithoutCallerID),
			keyTimes(s.PrimaryKey), keyTimes(s.SecondaryKey))
	}
	return table.Flush()
}

// minute formats a time to the minute; the zero time is a dash.
func minute(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.UTC().Format("2006-01-02T15:04Z")
}

func keyTimes(k subscription.KeyLife) string {
	return minute(k.Created) + "," + minute(k.Used) + "," + minute(k.Expires)
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
		Short: "Replace a key of a subscription and print the new one",
		Long: `Replaces a key by a new one and prints it. The old key stops working. The new key is shown only
once: the database stores only its hash.`,
		Example:     "  bankingapi subscriptions regenerate mobile-app primary",
		Args:        named("NAME", "primary or secondary"),
		Annotations: mentionSettings(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != "primary" && args[1] != "secondary" {
				return wrongUsef("unknown key %q: want primary or secondary", args[1])
			}
			return p.withApp(cmd, func(app *bootstrap.App) error {
				key, err := app.RegenerateKey(cmd.Context(), args[0], args[1])
				if errors.Is(err, subscriptions.ErrExpired) {
					return wrongUsef("%v, with 'subscriptions change %s --expires DAY'", err, args[0])
				}
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
