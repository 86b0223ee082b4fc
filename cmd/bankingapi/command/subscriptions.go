package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bankingapi/adapters/settings"
	"bankingapi/application/backoffice"
	"bankingapi/application/subscriptions"
	"bankingapi/bootstrap"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// termFlags are the flags for the terms of a subscription. A term without its flag is not
// changed.
type termFlags struct {
	operations, hostOperations               []string
	rate                                     optional[int64]
	appKey, channel, tellerName, certificate optional[string]
	requireCallerID                          optional[bool]
	expiration                               string

	expires time.Time // of expiration
	names   []string  // of the flags
}

func (o *termFlags) flags(f *flags) {
	f.reason()
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.StringArrayVar(&o.operations, "operation", nil, "`operation` that it may call; repeatable (default: all)")
	own.StringArrayVar(&o.hostOperations, "host-operation", nil, "`operation` of a host program that it may call; repeatable")
	own.Var(number(&o.rate), "rate", "maximum `requests` per second on each replica (default: no limit)")
	own.Var(text(&o.appKey), "app-key", "AppKey of the caller; requests with another one get 403")
	own.Var(text(&o.channel), "channel", "Channel of the caller; requests with another one get 403")
	own.Var(text(&o.tellerName), "teller-name", "TellerName of the caller; requests with another one get 403")
	own.VarPF(onOff(&o.requireCallerID), "require-caller-id", "", "refuse requests without a CallerId: a repeat cannot sell twice then").NoOptDefVal = "true"
	own.Var(text(&o.certificate), "client-certificate", "`SHA256` of the client certificate that the keys need, in hex; see tls.client_ca")
	own.StringVar(&o.expiration, "expires", "", "last `day` on which both keys work, in the bank's time zone; never for no end")
	own.SortFlags = false
	own.VisitAll(func(flag *pflag.Flag) { o.names = append(o.names, flag.Name) })
	f.set.AddFlagSet(own)
	f.complete("operation", operation.AllNames()...)
}

// check reads the terms, and warns if no request can use the keys.
func (o *termFlags) check(c *call) error {
	if o.certificate.value != "" && c.settings.TLS.ClientCA == "" {
		c.cmd.PrintErrf("Warning: tls.client_ca is not set here. A service without it asks for no certificate, and refuses these keys.\n")
	}
	for _, name := range o.operations {
		known := operation.AllNames()
		if !slices.Contains(known, name) {
			return wrongUsef("--operation must be %s", settings.Choice(known))
		}
	}
	if o.rate.value < 0 {
		return wrongUsef("--rate must be 1 or more, or 0 for no limit")
	}
	return nil
}

func (o *termFlags) dates(c *call) error {
	if o.expiration == "" || o.expiration == "never" {
		return nil
	}
	last, err := day.Parse(o.expiration)
	if err != nil {
		return wrongUsef("--expires must be a day like 2027-11-20, or never")
	}
	o.expires = last.Plus(1).Start(c.zone()).UTC()
	return nil
}

// revise applies the terms that are given to a subscription.
func (o *termFlags) revise(s *subscription.Subscription) {
	granted := slices.Concat(o.operations, o.hostOperations)
	if len(granted) > 0 {
		s.Operations = granted
	}
	if o.rate.isGiven {
		s.RequestsPerSecond = int(o.rate.value)
	}
	o.requireCallerID.setTo(&s.RequireCallerID)
	o.appKey.setTo(&s.AppKey)
	o.channel.setTo(&s.Channel)
	o.tellerName.setTo(&s.TellerName)
	o.certificate.setTo(&s.ClientCertificate)
	if o.expiration != "" {
		s.PrimaryKey.Expires = o.expires
		s.SecondaryKey.Expires = o.expires
	}
}

type createCommand struct{ termFlags }

func (o *createCommand) run(c *call) error {
	if err := c.requireOutput(); err != nil {
		return err
	}
	s := subscription.Subscription{Name: c.args[0]}
	o.revise(&s)
	primary, secondary, err := c.manager.Create(c.cmd.Context(), s)
	if err != nil {
		return aboutSubscription(s.Name, err)
	}
	if !o.rate.isGiven {
		c.cmd.PrintErrf("%s may send any number of requests per second, because --rate is not set. Limit it with 'bankingapi subscriptions change %s --rate NUMBER'.\n", s.Name, quoted(s.Name))
	}
	return c.printKeys(primary.Reveal(), secondary.Reveal())
}

// printKeys prints the keys of the subscription that the command has made. Nobody can ask for them
// again.
func (c *call) printKeys(keys ...string) error {
	err := c.print("%s\n", strings.Join(keys, "\n"))
	if err != nil {
		return fmt.Errorf("subscription %q has a new key, but it could not be printed: %w. Make another one with 'subscriptions regenerate'", c.args[0], err)
	}
	return nil
}

// aboutSubscription calls about, and marks wrong use of the command line.
func aboutSubscription(name string, err error) error {
	if errors.Is(err, subscription.ErrExpired) {
		return wrongUsef("--expires must not be in the past: use 'subscriptions suspend' to refuse the keys now")
	}
	if errors.Is(err, subscriptions.ErrNotFound) {
		err = fmt.Errorf("%w: 'bankingapi subscriptions list' names all", err)
	}
	err = about(err, fmt.Sprintf("subscription %q", name))
	if fault.KindOf(err) == fault.Invalid { // a name or a term
		return wrongUse{err}
	}
	return err
}

type changeCommand struct{ termFlags }

func (o *changeCommand) check(c *call) error {
	if !slices.ContainsFunc(o.names, c.cmd.Flags().Changed) {
		return wrongUsef("nothing to change: give one of --%s", strings.Join(o.names, ", --"))
	}
	return o.termFlags.check(c)
}

func (o *changeCommand) run(c *call) error {
	var changes []string
	err := c.manager.Change(c.cmd.Context(), c.args[0], func(now *subscription.Subscription) error {
		before := *now
		revised := *now
		o.revise(&revised)
		now.PrimaryKey.Expires = revised.PrimaryKey.Expires
		now.SecondaryKey.Expires = revised.SecondaryKey.Expires
		err := now.Revise(revised)
		changes = subscriptions.Differences(&before, now, c.manager.Zone())
		return err
	})
	outcome := "is changed"
	if len(changes) == 0 {
		outcome = "is as it was: it has these values already"
	}
	return c.done(aboutSubscription(c.args[0], err), "%s %s.\n", c.args[0], outcome)
}

// setState returns a command that sets the state of a subscription. It says how many sales wait
// of a subscription that is refused from then on: they settle on their day.
func setState(state subscription.State) command {
	return acting(func(c *call) error {
		err := c.manager.SetState(c.cmd.Context(), c.args[0], state)
		if err != nil {
			return aboutSubscription(c.args[0], err)
		}
		c.cmd.PrintErrf("%s is %s.\n", c.args[0], state)
		if state == subscription.Active {
			return nil
		}
		waiting, err := c.office.WaitingSalesOf(c.cmd.Context(), c.args[0])
		if err != nil {
			c.cmd.PrintErrf("Warning: its sales that wait could not be counted: %v\n", fault.Explain(err))
			return nil
		}
		c.cmd.PrintErrf("%s", screen("waiting sales", waitingSales{quoted(c.args[0]), waiting}))
		return nil
	})
}

// waitingSales are the sales of a subscription that wait for their day.
type waitingSales struct {
	Name string
	backoffice.WaitingSales
}

// shownSubscription is what subscriptions show prints.
type shownSubscription struct {
	listed
	WaitingSales      int64
	FirstDay, LastDay string // of the sales that wait
}

// subscription finds a subscription by its name.
func (c *call) subscription(name string) (*subscription.Subscription, error) {
	list, err := c.manager.List(c.cmd.Context())
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if s.Name == name {
			return s, nil
		}
	}
	return nil, aboutSubscription(name, subscriptions.ErrNotFound)
}

func showSubscription(c *call) error {
	found, err := c.subscription(c.args[0])
	if err != nil {
		return err
	}
	waiting, err := c.office.WaitingSalesOf(c.cmd.Context(), c.args[0])
	if err != nil {
		return err
	}
	return c.write("subscription", shownSubscription{
		listed: listedSubscription(found), WaitingSales: waiting.Sales, FirstDay: waiting.First.String(), LastDay: waiting.Last.String(),
	})
}

func regenerateKey(c *call) error {
	if err := c.requireOutput(); err != nil {
		return err
	}
	key, err := c.manager.Regenerate(c.cmd.Context(), c.args[0], subscription.Slot(c.args[1]))
	if errors.Is(err, subscription.ErrExpired) {
		return wrongUsef("subscription %q: %v, with 'subscriptions change %s --expires DAY'", c.args[0], fault.Explain(err), c.args[0])
	}
	if err != nil {
		return aboutSubscription(c.args[0], err)
	}
	return c.printKeys(key.Reveal())
}

func listSubscriptions(c *call) error {
	list, err := c.manager.List(c.cmd.Context())
	if err != nil {
		return err
	}
	all := make([]listed, len(list))
	for i, s := range list {
		all[i] = listedSubscription(s)
	}
	return c.write("subscriptions", all)
}

// listed is a subscription, without its keys.
type listed struct {
	Name, State                 string
	Operations                  []string
	RequestsPerSecond           int // 0 is no limit
	AppKey, Channel, TellerName string
	Created                     *moment
	RequireCallerID             bool    `json:"RequireCallerId"`
	WithoutCallerID             *moment `json:"WithoutCallerId"` // the last sale without a CallerId
	PrimaryKey, SecondaryKey    keyLife
	ClientCertificate           string
}

type keyLife struct{ Created, Used, Expires *moment }

func listedSubscription(s *subscription.Subscription) listed {
	return listed{
		Name: s.Name, State: string(s.State), Operations: s.Operations, RequestsPerSecond: s.RequestsPerSecond, AppKey: s.AppKey,
		Channel: s.Channel, TellerName: s.TellerName, Created: instant(s.Created), RequireCallerID: s.RequireCallerID,
		WithoutCallerID: instant(s.WithoutCallerID), PrimaryKey: lifeOf(s.PrimaryKey), SecondaryKey: lifeOf(s.SecondaryKey),
		ClientCertificate: s.ClientCertificate,
	}
}

func lifeOf(k subscription.KeyLife) keyLife {
	return keyLife{instant(k.Created), instant(k.Used), instant(k.Expires)}
}

// completeName completes the first argument, which is the name of a subscription, if the
// book can be read.
func (p program) completeName(others cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) (names []string, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return others(cmd, args, begun)
		}
		c := &call{cmd: cmd, program: p}
		c.program.options = bootstrap.Options(p.options, bootstrap.WithBookAsItIs()) // a Tab changes nothing
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
