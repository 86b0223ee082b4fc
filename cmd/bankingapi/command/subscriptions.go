package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bankingapi/adapters/settings"
	"bankingapi/bootstrap"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// terms are the flags for the fields of a subscription. A field without its flag is not
// changed.
var terms = []string{
	"operation", "host-operation", "rate", "app-key", "channel", "teller-name", "require-caller-id", "client-certificate", "expires",
}

// A revision applies terms to a subscription.
type revision func(*subscription.Subscription)

// readTerms reads the terms, and warns if no request can use the keys.
func readTerms(c *call) (revision, error) {
	if c.text("client-certificate") != "" && c.settings.TLS.ClientCA == "" {
		c.PrintErrf("Warning: tls.client_ca is not set here. A service without it asks for no certificate, and refuses these keys.\n")
	}
	for _, name := range c.list("operation") {
		if known := operation.AllNames(); !slices.Contains(known, name) {
			return nil, wrongUsef("--operation must be %s", settings.Choice(known))
		}
	}
	if c.number("rate") < 0 {
		return nil, wrongUsef("--rate must be 1 or more, or 0 for no limit")
	}
	var end time.Time
	expires := c.text("expires")
	if expires != "" && expires != "never" {
		_, until, err := c.settings.Bank.Day(expires)
		if err != nil {
			return nil, wrongUsef("--expires must be a day like 2027-11-20, or never")
		}
		end = until.UTC()
	}
	return func(s *subscription.Subscription) {
		given := c.Flags().Changed
		if granted := slices.Concat(c.list("operation"), c.list("host-operation")); len(granted) > 0 {
			s.Operations = granted
		}
		if given("rate") {
			s.RequestsPerSecond = int(c.number("rate"))
		}
		if given("require-caller-id") {
			s.RequireCallerID = c.is("require-caller-id")
		}
		for flag, field := range map[string]*string{
			"app-key": &s.AppKey, "channel": &s.Channel, "teller-name": &s.TellerName, "client-certificate": &s.ClientCertificate,
		} {
			if given(flag) {
				*field = c.text(flag)
			}
		}
		if expires != "" {
			s.PrimaryKey.Expires, s.SecondaryKey.Expires = end, end
		}
	}, nil
}

func createSubscription(c *call, revise revision) error {
	s := subscription.Subscription{Name: c.args[0]}
	revise(&s)
	primary, secondary, err := c.manager.Create(c.Context(), s)
	if err != nil {
		return aboutSubscription(s.Name, err)
	}
	if !c.Flags().Changed("rate") {
		c.PrintErrf("%s may send any number of requests per second, because --rate is not set. Limit it with 'bankingapi subscriptions change %s --rate NUMBER'.\n", s.Name, quoted(s.Name))
	}
	return c.print("%s\n%s\n", primary.Reveal(), secondary.Reveal())
}

// aboutSubscription calls about, and marks wrong use of the command line.
func aboutSubscription(name string, err error) error {
	if errors.Is(err, subscription.ErrExpired) {
		return wrongUsef("--expires must not be in the past: use 'subscriptions suspend' to refuse the keys now")
	}
	err = about(err, fmt.Sprintf("subscription %q", name))
	if fault.KindOf(err) == fault.Invalid { // a name or a term
		return wrongUse{err}
	}
	return err
}

func readChange(c *call) (revision, error) {
	if !slices.ContainsFunc(terms, c.Flags().Changed) {
		return nil, wrongUsef("nothing to change: give one of --%s", strings.Join(terms, ", --"))
	}
	return readTerms(c)
}

func changeSubscription(c *call, revise revision) error {
	err := c.manager.Change(c.Context(), c.args[0], func(now *subscription.Subscription) error {
		revised := *now
		revise(&revised)
		now.PrimaryKey.Expires, now.SecondaryKey.Expires = revised.PrimaryKey.Expires, revised.SecondaryKey.Expires
		return now.Revise(revised)
	})
	return c.done(aboutSubscription(c.args[0], err), "%s is changed.\n", c.args[0])
}

// setState returns an action that sets the state of a subscription.
func setState(state subscription.State) action {
	return does(func(c *call) error {
		return c.done(aboutSubscription(c.args[0], c.manager.SetState(c.Context(), c.args[0], state)), "%s is %s.\n", c.args[0], state)
	})
}

func regenerateKey(c *call) error {
	key, err := c.manager.Regenerate(c.Context(), c.args[0], subscription.Slot(c.args[1]))
	if errors.Is(err, subscription.ErrExpired) {
		return wrongUsef("subscription %q: %v, with 'subscriptions change %s --expires DAY'", c.args[0], fault.Explain(err), c.args[0])
	}
	if err != nil {
		return aboutSubscription(c.args[0], err)
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
		c.options = bootstrap.Options(p.options, bootstrap.WithBookAsItIs()) // a Tab changes nothing
		if c.load() == nil && c.openBook() == nil {
			known, _ := c.manager.List(cmd.Context())
			for _, s := range known {
				names = append(names, s.Name)
			}
		}
		_ = c.close()
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
