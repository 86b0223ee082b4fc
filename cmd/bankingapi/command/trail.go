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
	"bankingapi/domain/operation"
)

func keygen(c *call) error {
	name := c.text("file")
	if _, err := os.Stat(name); c.is("keep") && err == nil {
		c.PrintErrf("%s exists and stays as it is.\n", name)
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
	_, err = fmt.Fprintln(file, signing)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return c.print("%s\n", verifying)
}

func printKey(c *call) error { return c.print("%s\n", c.keeper.VerifyingKey()) }

func printCheckpoint(c *call) error {
	checkpoint, err := c.keeper.Checkpoint(c.Context())
	if err != nil {
		return err
	}
	return c.print("%s", checkpoint)
}

func rekey(c *call) error {
	if err := bootstrap.CheckAlone(c.Context(), c.settings, c.options, bootstrap.WithBookAsItIs()); err != nil {
		return err
	}
	if err := c.openBook(); err != nil {
		return err
	}
	last, err := c.app.Rekey(c.Context(), strings.Join(c.args, ""))
	if err != nil {
		return err
	}
	if last != "" {
		c.PrintErrf("The log that ended had this checkpoint. Keep it with its public key:\n\n%s\n", last)
	}
	return printKey(c)
}

// readProved returns the ID of the operation if the argument or --operation names it.
func readProved(c *call) (id operation.ID, err error) {
	text, subscription, callerID := c.text("operation"), c.text("subscription"), c.text("caller-id")
	if len(c.args) > 0 {
		if text != "" {
			return id, wrongUsef("give the ID once: as the argument or with --operation")
		}
		text = c.args[0]
	}
	byCaller := subscription != "" || callerID != ""
	switch {
	case byCaller == (text != ""):
		return id, wrongUsef("either an ID, or --subscription and --caller-id is needed")
	case byCaller && (subscription == "" || callerID == ""):
		return id, wrongUsef("--subscription and --caller-id belong together")
	case byCaller:
		return id, nil
	}
	return parseID(text)
}

func prove(c *call, id operation.ID) error {
	if id == (operation.ID{}) {
		found, err := c.office.OperationsOf(c.Context(), c.text("subscription"), c.text("caller-id"))
		if errors.Is(err, backoffice.ErrNotFound) {
			return errors.New("this subscription has not used this CallerId")
		}
		if err != nil {
			return err
		}
		id = found[0].ID
	}
	proof, err := c.keeper.Prove(c.Context(), id)
	if err != nil {
		return err
	}
	found, err := c.office.Operation(c.Context(), id)
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
		c.PrintErrf("The texts of %s of this operation were erased. The proof has their identities.\n", backoffice.Plural(erased, "message"))
	}
	return c.print("%s", proof)
}

func checkProof(c *call) error {
	if _, err := note.NewVerifier(strings.TrimSpace(c.text("key"))); err != nil {
		return wrongUsef("--key is not a verifying key of the trail: it looks like name+hash+key")
	}
	file, err := c.readInput(c.args[0])
	if err != nil {
		return err
	}
	facts, err := trail.CheckFile(file, c.text("key"))
	if err != nil {
		return fmt.Errorf("the proof does not hold: %w", err)
	}
	return c.print("%s\n", strings.Join(facts, "\n"))
}
