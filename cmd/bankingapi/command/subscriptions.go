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
	return group(described("subscriptions"),
		createSubscriptionCommand(p),
		changeSubscriptionCommand(p),
		addFormat(p.onBook(described("subscriptions list"), nil, func(c *call) error {
			list, err := c.manager.List(c.Context())
			if err != nil {
				return err
			}
			return c.write(minutes, subscriptionList(list))
		})),
		regenerateKeyCommand(p),
		subscriptionStateCommand(p, "suspend", "suspended"),
		subscriptionStateCommand(p, "activate", "active"),
		subscriptionStateCommand(p, "cancel", "cancelled"),
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
	flags.StringVar(&s.ClientCertificate, "client-certificate", s.ClientCertificate, "`SHA256` of the client certificate that the keys need, in hex; see tls.client_ca")
	flags.StringVar(&s.expires, "expires", "", "last `day` on which both keys work, in the bank's time zone; never for no end")
	return flags
}

func (s *subscriptionFlags) addTo(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().AddFlagSet(s.flags())
	complete(cmd, "operation", bootstrap.OperationNames()...)
	return addOptionalReason(cmd)
}

// warn warns of keys that no request can use.
func (s *subscriptionFlags) warn(c *call) {
	if s.ClientCertificate != "" && c.settings.TLS.ClientCA == "" {
		c.tell("Warning: tls.client_ca is not set here. A service without it asks for no certificate, and refuses these keys.\n")
	}
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
	return wanted.addTo(p.onBook(described("subscriptions create"), func(c *call) error {
		wanted.Name = c.args[0]
		wanted.warn(c)
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
	return wanted.addTo(p.onBook(namesSubscription(p, described("subscriptions change")), func(c *call) error {
		var names []string
		given := false
		new(subscriptionFlags).flags().VisitAll(func(flag *pflag.Flag) {
			names = append(names, flag.Name)
			given = given || c.Flags().Changed(flag.Name)
		})
		if !given {
			return wrongUsef("nothing to change: give one of --%s", strings.Join(names, ", --"))
		}
		wanted.warn(c)
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
		"Primary(created,used,expires)", "Secondary(created,used,expires)", "Client-Certificate",
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
			s.TellerName, s.Created, callerID, s.WithoutCallerID, s.PrimaryKey, s.SecondaryKey, s.ClientCertificate)
	}
	return document{tables: []table{t}}
}

func regenerateKeyCommand(p program) *cobra.Command {
	return addOptionalReason(p.onBook(namesSubscription(p, described("subscriptions regenerate")), nil, func(c *call) error {
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

func subscriptionStateCommand(p program, verb string, state subscription.State) *cobra.Command {
	return addOptionalReason(p.onBook(namesSubscription(p, described("subscriptions "+verb)), nil, func(c *call) error {
		err := c.manager.SetState(c.Context(), c.args[0], state)
		if err == nil {
			c.tell("%s is %s.\n", c.args[0], state)
		}
		return about(c.args[0], err)
	}))
}

// namesSubscription completes the first argument, which is the name of a subscription,
// if the book can be read.
func namesSubscription(p program, cmd *cobra.Command) *cobra.Command {
	others := cmd.ValidArgsFunction
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) (names []string, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return others(cmd, args, begun)
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
	return cmd
}
