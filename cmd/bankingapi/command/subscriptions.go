package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bankingapi/application/subscriptions"
	"bankingapi/bootstrap"
	"bankingapi/domain/fault"
	"bankingapi/domain/subscription"
)

func (p program) subscriptionsCommand() *cobra.Command {
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
		p.createSubscriptionCommand(),
		p.changeSubscriptionCommand(),
		p.listSubscriptionsCommand(),
		p.regenerateKeyCommand(),
		p.subscriptionStateCommand("suspend", "suspended", "Refuse the keys of a subscription until it is activated"),
		p.subscriptionStateCommand("activate", "active", "Accept the keys of a suspended subscription again"),
		p.subscriptionStateCommand("cancel", "cancelled", "Refuse the keys of a subscription permanently"),
	)
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

// check checks the flags, and completes the subscription.
func (s *subscriptionFlags) check(bank bootstrap.BankSettings) error {
	for _, name := range s.operations {
		if known := bootstrap.OperationNames(); !slices.Contains(known, name) {
			return wrongUsef("--operation must be %s", strings.Join(known, " or "))
		}
	}
	s.Grant(append(s.operations, s.hostOperations...)...)
	if s.RequestsPerSecond < 0 {
		return wrongUsef("--rate must be 1 or more, or 0 for no limit")
	}
	if s.expires == "" || s.expires == "never" {
		return nil
	}
	_, end, err := bank.Day(s.expires)
	if err != nil {
		return wrongUsef("--expires must be a day like 2027-11-20, or never")
	}
	s.PrimaryKey.Expires, s.SecondaryKey.Expires = end.UTC(), end.UTC()
	return nil
}

// about names the subscription that an error is about.
func about(name string, err error) error {
	return fmt.Errorf("subscription %q: %w", name, fault.Explain(err))
}

// refused is about for a subscription with new terms.
func refused(name string, err error) error {
	if errors.Is(err, subscriptions.ErrExpired) {
		return wrongUsef("--expires must not be in the past: use 'subscriptions suspend' to refuse the keys now")
	}
	return about(name, err)
}

func (p program) createSubscriptionCommand() *cobra.Command {
	var wanted subscriptionFlags
	cmd := p.command(&cobra.Command{
		Use:   "create NAME",
		Short: "Create a subscription and print its two keys",
		Long: `Creates a subscription and prints its primary and secondary key, one per line. The keys are shown
only once: the database stores only their hashes.`,
		Example: `  bankingapi subscriptions create mobile-app
  bankingapi subscriptions create teller --operation BuyFundFromCustomer --rate 20 --channel BRANCH`,
		Args: named("NAME"),
	}, func(c *call) error {
		wanted.Name = c.args[0]
		if err := wanted.check(c.loaded.Settings.Bank); err != nil {
			return err
		}
		manager, err := c.manager()
		if err != nil {
			return err
		}
		primary, secondary, err := manager.Create(c.Context(), wanted.Subscription)
		if err != nil {
			return refused(wanted.Name, err)
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s\n%s\n", primary.Reveal(), secondary.Reveal())
		return err
	})
	wanted.addTo(cmd)
	return addOptionalReason(cmd)
}

func (p program) changeSubscriptionCommand() *cobra.Command {
	var wanted subscriptionFlags
	// What each flag changes.
	grant := func(s *subscription.Subscription) {
		s.Operations, s.HostOperations = wanted.Operations, wanted.HostOperations
	}
	changes := []struct {
		flag  string
		apply func(*subscription.Subscription)
	}{
		{"operation", grant},
		{"host-operation", grant},
		{"rate", func(s *subscription.Subscription) { s.RequestsPerSecond = wanted.RequestsPerSecond }},
		{"app-key", func(s *subscription.Subscription) { s.AppKey = wanted.AppKey }},
		{"channel", func(s *subscription.Subscription) { s.Channel = wanted.Channel }},
		{"teller-name", func(s *subscription.Subscription) { s.TellerName = wanted.TellerName }},
		{"require-caller-id", func(s *subscription.Subscription) { s.RequireCallerID = wanted.RequireCallerID }},
		{"expires", func(s *subscription.Subscription) {
			s.PrimaryKey.Expires, s.SecondaryKey.Expires = wanted.PrimaryKey.Expires, wanted.SecondaryKey.Expires
		}},
	}
	cmd := p.command(&cobra.Command{
		Use:   "change NAME",
		Short: "Change a subscription; its keys and CallerIds stay",
		Long: `Changes what the flags name, and leaves everything else as it is. The keys stay the same, and
CallerIds that were used stay used. --operation and --host-operation replace all operations; --rate 0 removes the limit.`,
		Example: `  bankingapi subscriptions change mobile-app --rate 100
  bankingapi subscriptions change mobile-app --require-caller-id --expires 2027-12-31`,
		Args:              named("NAME"),
		ValidArgsFunction: p.completeNames(nil),
	}, func(c *call) error {
		var flags []string
		changed := false
		for _, each := range changes {
			flags = append(flags, each.flag)
			changed = changed || c.Flags().Changed(each.flag)
		}
		if !changed {
			return wrongUsef("nothing to change: give one of --%s", strings.Join(flags, ", --"))
		}
		if err := wanted.check(c.loaded.Settings.Bank); err != nil {
			return err
		}
		manager, err := c.manager()
		if err != nil {
			return err
		}
		err = manager.Change(c.Context(), c.args[0], func(now *subscription.Subscription) error {
			revised := *now
			for _, each := range changes {
				if c.Flags().Changed(each.flag) {
					each.apply(&revised)
				}
			}
			now.PrimaryKey.Expires, now.SecondaryKey.Expires = revised.PrimaryKey.Expires, revised.SecondaryKey.Expires
			return now.Revise(revised)
		})
		if err != nil {
			return refused(c.args[0], err)
		}
		c.tell("%s is changed.\n", c.args[0])
		return nil
	})
	wanted.addTo(cmd)
	return addOptionalReason(cmd)
}

func (p program) listSubscriptionsCommand() *cobra.Command {
	return addFormat(p.command(&cobra.Command{
		Use:     "list",
		Short:   "List all subscriptions, without their keys",
		Example: "  bankingapi subscriptions list",
	}, func(c *call) error {
		manager, err := c.manager()
		if err != nil {
			return err
		}
		list, err := manager.List(c.Context())
		if err != nil {
			return err
		}
		return c.write(minutes, subscriptionList(list))
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
			s.TellerName, s.Created, callerID, s.WithoutCallerID, keyTimes(s.PrimaryKey), keyTimes(s.SecondaryKey))
	}
	return document{tables: []table{t}}
}

func keyTimes(k subscription.KeyLife) cell {
	return cell{
		[]time.Time{k.Created, k.Used, k.Expires},
		map[string]any{"Created": jsonOf(k.Created), "Used": jsonOf(k.Used), "Expires": jsonOf(k.Expires)},
	}
}

func (p program) regenerateKeyCommand() *cobra.Command {
	slots := []string{string(subscription.Primary), string(subscription.Secondary)}
	return addOptionalReason(p.command(&cobra.Command{
		Use:   "regenerate NAME primary|secondary",
		Short: "Replace a key of a subscription and print the new one",
		Long: `Replaces a key by a new one and prints it. The old key stops working. The new key is shown only
once: the database stores only its hash.`,
		Example:           "  bankingapi subscriptions regenerate mobile-app primary",
		Args:              named("NAME", "primary or secondary"),
		ValidArgsFunction: p.completeNames(slots),
	}, func(c *call) error {
		if !slices.Contains(slots, c.args[1]) {
			return wrongUsef("unknown key %q: want primary or secondary", c.args[1])
		}
		manager, err := c.manager()
		if err != nil {
			return err
		}
		key, err := manager.Regenerate(c.Context(), c.args[0], subscription.Slot(c.args[1]))
		if errors.Is(err, subscriptions.ErrExpired) {
			return wrongUsef("%v, with 'subscriptions change %s --expires DAY'", about(c.args[0], err), c.args[0])
		}
		if err != nil {
			return about(c.args[0], err)
		}
		_, err = fmt.Fprintln(c.OutOrStdout(), key.Reveal())
		return err
	}))
}

func (p program) subscriptionStateCommand(verb string, state subscription.State, short string) *cobra.Command {
	return addOptionalReason(p.command(&cobra.Command{
		Use:               verb + " NAME",
		Short:             short,
		Example:           "  bankingapi subscriptions " + verb + " mobile-app",
		Args:              named("NAME"),
		ValidArgsFunction: p.completeNames(nil),
	}, func(c *call) error {
		manager, err := c.manager()
		if err != nil {
			return err
		}
		if err := manager.SetState(c.Context(), c.args[0], state); err != nil {
			return about(c.args[0], err)
		}
		c.tell("%s is %s.\n", c.args[0], state)
		return nil
	}))
}

// completeNames completes the name of a subscription, if the book can be read, and
// then one of the words.
func (p program) completeNames(words []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return words, cobra.ShellCompDirectiveNoFileComp
		}
		loaded, err := p.load(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		loaded.Settings.Log.Level = "error"
		c := &call{Command: cmd, program: p, loaded: loaded}
		defer func() { _ = c.close() }()
		if manager, err := c.manager(); err == nil {
			list, _ := manager.List(cmd.Context())
			for _, s := range list {
				names = append(names, s.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
