package command

import (
	"errors"

	"github.com/spf13/cobra"

	"bankingapi/application/backoffice"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
)

func notificationsCommand(p program) *cobra.Command {
	return group(described("notifications"), eraseCommand(p))
}

type eraseOptions struct {
	user, before string
	day          day.Day // of before
}

func eraseCommand(p program) *cobra.Command {
	var o eraseOptions
	cmd := addReason(p.onBook(described("notifications erase"), o.check, o.run))
	cmd.Flags().StringVar(&o.user, "user", "", "erase the messages of this `UserId`")
	cmd.Flags().StringVar(&o.before, "before", "", "erase messages received before this `day` (YYYY-MM-DD)")
	return cmd
}

func (o *eraseOptions) check(*call) (err error) {
	if (o.user == "") == (o.before == "") {
		return wrongUsef("either --user or --before is needed")
	}
	if o.before != "" {
		if o.day, err = day.Parse(o.before); err != nil {
			return wrongUsef("--before must be a day like 2025-01-01")
		}
	}
	return nil
}

func (o *eraseOptions) run(c *call) (err error) {
	bar := startProgress(c.ErrOrStderr(), "erasing", 0)
	var erased int64
	if o.user != "" {
		erased, err = c.office.EraseUser(c.Context(), o.user, bar.rows.Store)
	} else {
		erased, err = c.office.EraseBefore(c.Context(), o.day, bar.rows.Store)
	}
	bar.stop()
	if errors.Is(err, backoffice.ErrNotPast) {
		return wrongUsef("--before: %v", err)
	}
	c.tell("Erased: %s.\n", counted(erased, "message"))
	return fault.Explain(err)
}
