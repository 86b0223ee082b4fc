package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bankingapi/application/subscriptions"
	"bankingapi/bootstrap"
	"bankingapi/domain/fault"
	"bankingapi/domain/subscription"
)

func subscriptionsCommand(p program) *cobra.Command {
	return group(&cobra.Command{
		Use:   "subscriptions COMMAND",
		Short: "Manage callers of the API and their keys",
		Long: `A subscription has two keys, so a caller can change keys without downtime: switch to the secondary
key, regenerate the primary key, switch back, regenerate the secondary key. Running services apply
every change within 5 seconds.`,
		Example: `  bankingapi subscriptions create mobile-app --operation AddPushNotificationResponse --rate 50
  bankingapi subscriptions regenerate mobile-app primary
  bankingapi subscriptions list`,
	},
		createSubscriptionCommand(p),
		changeSubscriptionCommand(p),
		addFormat(p.onBook(&cobra.Command{
			Use:     "list",
			Short:   "List all subscriptions, without their keys",
			Example: "  bankingapi subscriptions list",
		}, nil, func(c *call) error {
			list, err := c.manager.List(c.Context())
			if err != nil {
				return err
			}
			return c.write(minutes, subscriptionList(list))
		})),
		regenerateKeyCommand(p),
		subscriptionStateCommand(p, "suspend", "suspended", "Refuse the keys of a subscription until it is activated"),
		subscriptionStateCommand(p, "activate", "active", "Accept the keys of a suspended subscription again"),
		subscriptionStateCommand(p, "cancel", "cancelled", "Refuse the keys of a subscription permanently"),
	)
}

// subscriptionFlags are what a subscription can have.
type subscriptionFlags struct {
	subscription.Subscription
	operations, hostOperations []string
	expires                    string
}

// flags are the flags, in the order of the help. Each has the default that the
// subscription has already.
func (s *subscriptionFlags) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.StringArrayVar(&s.operations, "operation", nil, "`operation` that it may call; repeatable (default: all)")
	flags.StringArrayVar(&s.hostOperations, "host-operation", nil, "`operation` of a host program that it may call; repeatable")
	flags.IntVar(&s.RequestsPerSecond, "rate", s.RequestsPerSecond, "maximum `requests` per second on each replica (default: no limit)")
	flags.StringVar(&s.AppKey, "app-key", s.AppKey, "AppKey of the caller; requests with another one get 403")
	flags.StringVar(&s.Channel, "channel", s.Channel, "Channel of the caller; requests with another one get 403")
	flags.StringVar(&s.TellerName, "teller-name", s.TellerName, "TellerName of the caller; requests with another one get 403")
	flags.BoolVar(&s.RequireCallerID, "require-caller-id", s.RequireCallerID, "refuse requests without a CallerId: a repeat cannot sell twice then")
	flags.StringVar(&s.expires, "expires", "", "last `day` on which both keys work, in the bank's time zone; never for no end")
	return flags
}

func (s *subscriptionFlags) addTo(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().AddFlagSet(s.flags())
	complete(cmd, "operation", bootstrap.OperationNames()...)
	return addOptionalReason(cmd)
}

// finish checks the flags, and sets the fields that are not those of one flag.
func (s *subscriptionFlags) finish(bank bootstrap.BankSettings) error {
	for _, name := range s.operations {
		if known := bootstrap.OperationNames(); !slices.Contains(known, name) {
			return wrongUsef("--operation must be %s", either(known))
		}
	}
	if granted := slices.Concat(s.operations, s.hostOperations); len(granted) > 0 {
		s.Grant(granted...)
	}
	if s.RequestsPerSecond < 0 {
		return wrongUsef("--rate must be 1 or more, or 0 for no limit")
	}
	if s.expires == "" {
		return nil
	}
	var end time.Time
	if s.expires != "never" {
		var err error
		if _, end, err = bank.Day(s.expires); err != nil {
			return wrongUsef("--expires must be a day like 2027-11-20, or never")
		}
		end = end.UTC()
	}
	s.PrimaryKey.Expires, s.SecondaryKey.Expires = end, end
	return nil
}

// about names the subscription that an error is about.
func about(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("subscription %q: %w", name, fault.Explain(err))
}

// refused is about for a subscription with new terms.
func refused(name string, err error) error {
	if errors.Is(err, subscriptions.ErrExpired) {
		return wrongUsef("--expires must not be in the past: use 'subscriptions suspend' to refuse the keys now")
	}
	return about(name, err)
}

func createSubscriptionCommand(p program) *cobra.Command {
	var wanted subscriptionFlags
	return wanted.addTo(p.onBook(&cobra.Command{
		Use:   "create NAME",
		Short: "Create a subscription and print its two keys",
		Long: `Creates a subscription and prints its primary and secondary key, one per line. The keys are shown
only once: the database stores only their hashes.`,
		Example: `  bankingapi subscriptions create mobile-app
  bankingapi subscriptions create teller --operation BuyFundFromCustomer --rate 20 --channel BRANCH`,
		Args: named("NAME"),
	}, func(c *call) error {
		wanted.Name = c.args[0]
		return wanted.finish(c.settings.Bank)
	}, func(c *call) error {
		primary, secondary, err := c.manager.Create(c.Context(), wanted.Subscription)
		if err != nil {
			return refused(wanted.Name, err)
		}
		return c.print("%s\n%s\n", primary.Reveal(), secondary.Reveal())
	}))
}

func changeSubscriptionCommand(p program) *cobra.Command {
	var wanted subscriptionFlags
	return wanted.addTo(p.onBook(&cobra.Command{
		Use:   "change NAME",
		Short: "Change a subscription; its keys and CallerIds stay",
		Long: `Changes what the flags name, and leaves everything else as it is. The keys stay the same, and
CallerIds that were used stay used. --operation and --host-operation replace all operations; --rate 0 removes the limit.`,
		Example: `  bankingapi subscriptions change mobile-app --rate 100
  bankingapi subscriptions change mobile-app --require-caller-id --expires 2027-12-31`,
		Args:              named("NAME"),
		ValidArgsFunction: completeNames(p, nil),
	}, func(c *call) error {
		var names []string
		given := false
		new(subscriptionFlags).flags().VisitAll(func(flag *pflag.Flag) {
			names = append(names, flag.Name)
			given = given || c.Flags().Changed(flag.Name)
		})
		if !given {
			return wrongUsef("nothing to change: give one of --%s", strings.Join(names, ", --"))
		}
		return wanted.finish(c.settings.Bank)
	}, func(c *call) error {
		err := c.manager.Change(c.Context(), c.args[0], func(now *subscription.Subscription) error {
			revised := subscriptionFlags{Subscription: *now}
			terms := revised.flags()
			c.Flags().Visit(func(given *pflag.Flag) {
				if term := terms.Lookup(given.Name); term != nil {
					_ = term.Value.Set(given.Value.String()) // it was accepted before
				}
			})
			revised.operations, revised.hostOperations = wanted.operations, wanted.hostOperations
			if err := revised.finish(c.settings.Bank); err != nil {
				return err
			}
			now.PrimaryKey.Expires, now.SecondaryKey.Expires = revised.PrimaryKey.Expires, revised.SecondaryKey.Expires
			return now.Revise(revised.Subscription)
		})
		if err == nil {
			c.tell("%s is changed.\n", c.args[0])
		}
		return refused(c.args[0], err)
	}))
}

func subscriptionList(list []*subscription.Subscription) document {
	t := table{columns: []string{
		"Name", "State", "Operations", "Rate", "AppKey", "Channel", "TellerName", "Created", "CallerId", "Without-CallerId",
		"Primary(created,used,expires)", "Secondary(created,used,expires)",
	}}
	for _, s := range list {
		rate, callerID := "no limit", "optional"
		if s.RequestsPerSecond > 0 {
			rate = fmt.Sprint(s.RequestsPerSecond, "/s")
		}
		if s.RequireCallerID {
			callerID = "required"
		}
		t.add(s.Name, raw(s.State), cell{strings.Join(s.Granted(), ","), s.Granted()}, cell{rate, s.RequestsPerSecond}, s.AppKey, s.Channel,
			s.TellerName, s.Created, callerID, s.WithoutCallerID, s.PrimaryKey, s.SecondaryKey)
	}
	return document{tables: []table{t}}
}

func regenerateKeyCommand(p program) *cobra.Command {
	slots := []string{string(subscription.Primary), string(subscription.Secondary)}
	return addOptionalReason(p.onBook(&cobra.Command{
		Use:   "regenerate NAME primary|secondary",
		Short: "Replace a key of a subscription and print the new one",
		Long: `Replaces a key by a new one and prints it. The old key stops working. The new key is shown only
once: the database stores only its hash.`,
		Example:           "  bankingapi subscriptions regenerate mobile-app primary",
		Args:              named("NAME", "primary or secondary"),
		ValidArgsFunction: completeNames(p, slots),
	}, func(c *call) error {
		if !slices.Contains(slots, c.args[1]) {
			return wrongUsef("unknown key %q: want primary or secondary", c.args[1])
		}
		return nil
	}, func(c *call) error {
		key, err := c.manager.Regenerate(c.Context(), c.args[0], subscription.Slot(c.args[1]))
		if errors.Is(err, subscriptions.ErrExpired) {
			return wrongUsef("%v, with 'subscriptions change %s --expires DAY'", about(c.args[0], err), c.args[0])
		}
		if err != nil {
			return about(c.args[0], err)
		}
		return c.print("%s\n", key.Reveal())
	}))
}

func subscriptionStateCommand(p program, verb string, state subscription.State, short string) *cobra.Command {
	return addOptionalReason(p.onBook(&cobra.Command{
		Use:               verb + " NAME",
		Short:             short,
		Example:           "  bankingapi subscriptions " + verb + " mobile-app",
		Args:              named("NAME"),
		ValidArgsFunction: completeNames(p, nil),
	}, nil, func(c *call) error {
		err := c.manager.SetState(c.Context(), c.args[0], state)
		if err == nil {
			c.tell("%s is %s.\n", c.args[0], state)
		}
		return about(c.args[0], err)
	}))
}

// completeNames completes the name of a subscription, if the book can be read, and
// then one of the words.
func completeNames(p program, words []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return words, cobra.ShellCompDirectiveNoFileComp
		}
		c := &call{Command: cmd, program: p}
		defer func() { _ = c.close() }()
		if c.load() == nil {
			c.settings.Log.Level = "error"
			if c.openBook() == nil {
				list, _ := c.manager.List(cmd.Context())
				for _, s := range list {
					names = append(names, s.Name)
				}
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
