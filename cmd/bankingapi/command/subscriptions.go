package command

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bankingapi/application/subscriptions"
	"bankingapi/bootstrap"
	"bankingapi/domain/fault"
	"bankingapi/domain/subscription"
)

// createOptions are what a subscription can have.
type createOptions struct {
	subscription.Subscription
	operations, hostOperations []string
	expires                    string
}

func (o *createOptions) flags() flags {
	return flags{
		"operation": &o.operations, "host-operation": &o.hostOperations, "rate": &o.RequestsPerSecond, "app-key": &o.AppKey,
		"channel": &o.Channel, "teller-name": &o.TellerName, "require-caller-id": &o.RequireCallerID,
		"client-certificate": &o.ClientCertificate, "expires": &o.expires,
	}
}

// check warns of keys that no request can use.
func (o *createOptions) check(c *call) error {
	if o.ClientCertificate != "" && c.settings.TLS.ClientCA == "" {
		c.tell("Warning: tls.client_ca is not set here. A service without it asks for no certificate, and refuses these keys.\n")
	}
	return o.finish(c.settings.Bank)
}

// finish checks the flags, and sets the fields that are not those of one flag.
func (o *createOptions) finish(bank bootstrap.BankSettings) error {
	for _, name := range o.operations {
		if known := bootstrap.OperationNames(); !slices.Contains(known, name) {
			return wrongUsef("--operation must be %s", either(known))
		}
	}
	if granted := slices.Concat(o.operations, o.hostOperations); len(granted) > 0 {
		o.Operations = granted
	}
	if o.RequestsPerSecond < 0 {
		return wrongUsef("--rate must be 1 or more, or 0 for no limit")
	}
	if o.expires == "" {
		return nil
	}
	var end time.Time
	if o.expires != "never" {
		_, until, err := bank.Day(o.expires)
		if err != nil {
			return wrongUsef("--expires must be a day like 2027-11-20, or never")
		}
		end = until.UTC()
	}
	o.PrimaryKey.Expires, o.SecondaryKey.Expires = end, end
	return nil
}

func (o *createOptions) run(c *call) error {
	o.Name = c.args[0]
	primary, secondary, err := c.manager.Create(c.Context(), o.Subscription)
	if err != nil {
		return about(o.Name, err)
	}
	return c.print("%s\n%s\n", primary.Reveal(), secondary.Reveal())
}

// about names the subscription that an error is about.
func about(name string, err error) error {
	if errors.Is(err, subscriptions.ErrExpired) {
		return wrongUsef("--expires must not be in the past: use 'subscriptions suspend' to refuse the keys now")
	}
	return fmt.Errorf("subscription %q: %w", name, fault.Explain(err))
}

type changeOptions struct{ createOptions }

func (o *changeOptions) check(c *call) error {
	given, terms := false, o.flags()
	c.Flags().Visit(func(flag *pflag.Flag) { given = given || terms[flag.Name] != nil })
	if !given {
		return wrongUsef("nothing to change: give one of --operation, --host-operation, --rate, --app-key, --channel, --teller-name, " +
			"--require-caller-id, --client-certificate, --expires")
	}
	return o.createOptions.check(c)
}

func (o *changeOptions) run(c *call) error {
	err := c.manager.Change(c.Context(), c.args[0], func(now *subscription.Subscription) error {
		revised := createOptions{Subscription: *now}
		terms := new(cobra.Command)
		addFlags(terms, revised.flags())
		c.Flags().Visit(func(given *pflag.Flag) {
			if term := terms.Flag(given.Name); term != nil {
				_ = term.Value.Set(given.Value.String()) // it was accepted before
			}
		})
		revised.operations, revised.hostOperations = o.operations, o.hostOperations
		if err := revised.finish(c.settings.Bank); err != nil {
			return err
		}
		now.PrimaryKey.Expires, now.SecondaryKey.Expires = revised.PrimaryKey.Expires, revised.SecondaryKey.Expires
		return now.Revise(revised.Subscription)
	})
	return changed(c, err, "changed")
}

// subscriptionState is an action that gives a subscription this state.
type subscriptionState subscription.State

func (s subscriptionState) run(c *call) error {
	return changed(c, c.manager.SetState(c.Context(), c.args[0], subscription.State(s)), string(s))
}

// changed says what became of a subscription.
func changed(c *call, err error, state string) error {
	if err != nil {
		return about(c.args[0], err)
	}
	c.tell("%s is %s.\n", c.args[0], state)
	return nil
}

func regenerateKey(c *call) error {
	key, err := c.manager.Regenerate(c.Context(), c.args[0], subscription.Slot(c.args[1]))
	if errors.Is(err, subscriptions.ErrExpired) {
		return wrongUsef("subscription %q: %v, with 'subscriptions change %s --expires DAY'", c.args[0], fault.Explain(err), c.args[0])
	}
	if err != nil {
		return about(c.args[0], err)
	}
	return c.print("%s\n", key.Reveal())
}

func listSubscriptions(c *call) error {
	list, err := c.manager.List(c.Context())
	if err != nil {
		return err
	}
	return c.write("subscriptions", subscriptionList(list))
}

func subscriptionList(list []*subscription.Subscription) []object {
	all := make([]object, len(list))
	key := func(k subscription.KeyLife) object {
		return object{"Created": instant(k.Created), "Used": instant(k.Used), "Expires": instant(k.Expires)}
	}
	for i, s := range list {
		all[i] = object{
			"Name": s.Name, "State": s.State, "Operations": s.Operations, "Rate": s.RequestsPerSecond, "AppKey": s.AppKey,
			"Channel": s.Channel, "TellerName": s.TellerName, "Created": instant(s.Created), "CallerId": "optional",
			"WithoutCallerId": instant(s.WithoutCallerID), "Primary": key(s.PrimaryKey), "Secondary": key(s.SecondaryKey),
			"ClientCertificate": s.ClientCertificate,
		}
		if s.RequireCallerID {
			all[i]["CallerId"] = "required"
		}
	}
	return all
}

// completeName completes the first argument, which is the name of a subscription, if the
// book can be read.
func (p program) completeName(others cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) (names []string, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return others(cmd, args, begun)
		}
		c := &call{Command: cmd, program: p}
		_ = c.carryOut(row{uses: book, does: function(func(c *call) error {
			list, err := c.manager.List(cmd.Context())
			for _, s := range list {
				names = append(names, s.Name)
			}
			return err
		})})
		_ = c.close()
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
