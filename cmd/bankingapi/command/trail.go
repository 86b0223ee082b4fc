package command

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"bankingapi/adapters/trail"
	"bankingapi/application/backoffice"
	"bankingapi/bootstrap"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

type keygenCommand struct {
	file string
	keep bool
}

func (o *keygenCommand) flags(f *flags) {
	f.set.StringVar(&o.file, "file", "", "write the signing key to this new `file`")
	f.set.BoolVar(&o.keep, "keep", false, "leave an existing file as it is")
	f.need("file")
}

func (o *keygenCommand) run(c *call) error {
	name := o.file
	if err := c.requireOutput(); err != nil {
		return err
	}
	if _, err := os.Stat(name); o.keep && err == nil {
		c.cmd.PrintErrf("%s exists and stays as it is.\n", name)
		return nil
	}
	signing, verifying, err := trail.GenerateKeys(c.args[0])
	if err != nil {
		return wrongUse{err}
	}
	file, err := newFile(name)
	if err != nil {
		return err
	}
	err = finish(file, signing+"\n")
	if err != nil {
		return err
	}
	err = c.print("%s\n", verifying)
	if err != nil {
		return fmt.Errorf("%s has a new key, but its public key could not be printed: %w. Print it with 'trail key' and this trail.key_file", name, err)
	}
	return nil
}

func printKey(c *call) error { return c.print("%s\n", c.keeper.VerifyingKey()) }

func printCheckpoint(c *call) error {
	checkpoint, err := c.keeper.Checkpoint(c.cmd.Context())
	if err != nil {
		return err
	}
	return c.print("%s", checkpoint)
}

type adoptCommand struct{}

func (*adoptCommand) flags(f *flags) { f.neededReason() }

func (*adoptCommand) run(c *call) error {
	taken, failed := c.app.TakeIn(c.cmd.Context())
	for _, name := range taken { // also if they are not signed yet: no second run names them
		err := c.print("%s\n", name)
		if err != nil {
			return errors.Join(failed, err)
		}
	}
	if failed != nil {
		return failed
	}
	if len(taken) == 0 {
		c.cmd.PrintErrf("Every row is in the log already: nothing was changed.\n")
		return nil
	}
	c.cmd.PrintErrf("Took %s into the log. Run verify: what it still reports was changed, and not only left out.\n", backoffice.Plural(len(taken), "row"))
	return nil
}

func rekey(c *call) error {
	if err := bootstrap.CheckAlone(c.cmd.Context(), c.settings, c.program.options, bootstrap.WithBookAsItIs()); err != nil {
		return err
	}
	if err := c.openBook(); err != nil {
		return err
	}
	last, err := c.app.Rekey(c.cmd.Context(), strings.Join(c.args, ""))
	if err != nil {
		return err
	}
	if last != "" {
		c.cmd.PrintErrf("The log that ended had this checkpoint. Keep it with its public key:\n\n%s\n", last)
	}
	if err := printKey(c); err != nil {
		return err
	}
	return checkRekeyed(c)
}

// checkRekeyed returns an error if another command has changed the book with the key of the log that
// ended. It may have begun after the first check that nobody uses the book.
func checkRekeyed(c *call) error {
	if err := c.close(); err != nil {
		return err
	}
	alone := bootstrap.CheckAlone(c.cmd.Context(), c.settings, c.program.options, bootstrap.WithBookAsItIs())
	if err := c.openBook(); err != nil {
		return err
	}
	if err := c.keeper.Complete(c.cmd.Context()); err != nil {
		return fmt.Errorf("the log has begun anew, but another process has changed the book at the same moment: %w."+
			" Stop what changes the book, and run 'trail rekey' again", fault.Explain(err))
	}
	if alone != nil {
		c.cmd.PrintErrf("Warning: %v. If it changes the book with the key before, verify names its batch: then run 'trail rekey' again.\n", alone)
	}
	return nil
}

type proveCommand struct {
	operation, subscription, callerID string

	id operation.ID // if the argument or --operation names it
}

func (o *proveCommand) flags(f *flags) {
	f.set.StringVar(&o.operation, "operation", "", "`ID` of the operation, import or act")
	f.set.StringVar(&o.subscription, "subscription", "", "`name` of the subscription that used the CallerId")
	f.set.StringVar(&o.callerID, "caller-id", "", "the `CallerId` of the operation")
}

func (o *proveCommand) check(c *call) (err error) {
	if len(c.args) > 0 {
		if o.operation != "" {
			return wrongUsef("give the ID once: as the argument or with --operation")
		}
		o.operation = c.args[0]
	}
	byCaller := o.subscription != "" || o.callerID != ""
	switch {
	case byCaller == (o.operation != ""):
		return wrongUsef("either an ID, or --subscription and --caller-id is needed")
	case byCaller && (o.subscription == "" || o.callerID == ""):
		return wrongUsef("--subscription and --caller-id belong together")
	case byCaller:
		return nil
	}
	o.id, err = parseID(o.operation)
	return err
}

func (o *proveCommand) run(c *call) error {
	id := o.id
	if id == (operation.ID{}) {
		found, err := c.operationsOf(o.subscription, o.callerID)
		if errors.Is(err, backoffice.ErrNotFound) {
			return errors.New("this subscription has not used this CallerId")
		}
		if err != nil {
			return err
		}
		id = found[0].ID
	}
	proof, err := c.keeper.Prove(c.cmd.Context(), id)
	if err != nil {
		return err
	}
	found, err := c.office.Operation(c.cmd.Context(), id)
	if err != nil && !errors.Is(err, backoffice.ErrNotFound) { // an act is no operation
		return err
	}
	erased := 0
	for i := range found.Notifications {
		if found.Notifications[i].Erasure != nil {
			erased++
		}
	}
	if erased > 0 {
		c.cmd.PrintErrf("The texts of %s of this operation were erased. The proof has their identities.\n", backoffice.Plural(erased, "message"))
	}
	c.look(audit.CommandShow, "operation", id.String()) // the leaf of a sale has customers and accounts
	return c.print("%s", proof)
}

type checkCommand struct{ key string }

func (o *checkCommand) flags(f *flags) {
	f.set.StringVar(&o.key, "key", "", "the public `key` (see trail key)")
	f.need("key")
}

func (o *checkCommand) run(c *call) error {
	if _, err := note.NewVerifier(strings.TrimSpace(o.key)); err != nil {
		return wrongUsef("--key is not a verifying key of the trail: it looks like name+hash+key")
	}
	file, err := c.readInput(c.args[0])
	if err != nil {
		return err
	}
	facts, err := trail.CheckFile(file, o.key)
	if err != nil {
		return fmt.Errorf("the proof does not hold: %w", err)
	}
	return c.print("%s\n", strings.Join(facts, "\n"))
}
