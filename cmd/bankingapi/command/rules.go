package command

import (
	"bankingapi/adapters/settings"
	"bankingapi/domain/fund"
)

// newRules declares the rules of a new book. A book that has rules keeps them.
func (f *flags) newRules(rules *fund.RulesFields) { f.rulesOf(rules, " of a new book") }

// rulesOf declares the four rules of the bank.
func (f *flags) rulesOf(rules *fund.RulesFields, of string) {
	f.set.StringVar(&rules.TimeZone, "time-zone", "", "time `zone` of the bank"+of+", like Europe/Istanbul: an IANA name")
	f.set.StringVar(&rules.ClosedWeekdays, "closed-weekdays", "", "`days` of the week on which the bank is closed"+of+", like Saturday,Sunday, or none")
	f.set.StringVar(&rules.CutOff, "cut-off", "", "local time (`HH:MM`) from which sales for today are refused"+of+", or none")
	f.set.StringVar(&rules.SettleFrom, "settle-from", "", "local time (`HH:MM`) from which the sales of a day are settled"+of)
}

func showRules(c *call) error {
	rules, err := c.office.RuleBook.Rules(c.cmd.Context())
	if err != nil {
		return err
	}
	return c.write("rules", rules.Fields())
}

// changeRulesCommand changes the rules whose flags are given.
type changeRulesCommand struct{ fields fund.RulesFields }

func (o *changeRulesCommand) flags(f *flags) {
	f.neededReason()
	f.rulesOf(&o.fields, "")
}

func (o *changeRulesCommand) check(*call) error {
	if o.fields == (fund.RulesFields{}) {
		return wrongUsef("name a rule to change: --time-zone, --closed-weekdays, --cut-off or --settle-from")
	}
	_, faults := fund.NewRules(fund.DefaultRules(), o.fields)
	if len(faults) > 0 {
		problem := settings.RuleProblem(faults[0])
		return wrongUsef("--%s %s", problem.Path, problem.Rule)
	}
	return nil
}

func (o *changeRulesCommand) run(c *call) error {
	before, after, err := c.office.ChangeRules(c.cmd.Context(), o.fields)
	if err != nil {
		return err
	}
	changes := after.Differences(before)
	if len(changes) == 0 {
		c.cmd.PrintErrf("Nothing changed: these are the rules of the book.\n")
	}
	for _, change := range changes {
		c.cmd.PrintErrf("changed %s\n", change)
	}
	if after.Weekdays == before.Weekdays {
		return nil
	}
	warning, err := c.office.ClosedWarning(c.cmd.Context())
	if warning != "" {
		c.cmd.PrintErrf("%s\n", warning)
	}
	return err
}
