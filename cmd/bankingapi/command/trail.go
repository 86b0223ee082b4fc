package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"bankingapi/adapters/trail"
	"bankingapi/application/backoffice"
	"bankingapi/bootstrap"
	"bankingapi/domain/operation"
)

// checkpoints are the contents of the files of --against.
type checkpoints []string

func readCheckpoints(c *call) (all checkpoints, err error) {
	for _, file := range c.list("against") {
		content, err := c.readInput(file)
		if err != nil {
			return nil, wrongUsef("--against: %v", err)
		}
		if err := trail.CheckCheckpoints(string(content)); err != nil {
			return nil, wrongUsef("--against %s: %v", file, err)
		}
		all = append(all, string(content))
	}
	return all, nil
}

func verify(c *call, against checkpoints) error {
	name := c.text("report")
	if name == "" {
		return verifyBook(c, against, nil)
	}
	file, err := newFile(name) // a name that cannot be used is told before the work
	if err != nil {
		return err
	}
	var report backoffice.Report
	if err = verifyBook(c, against, &report); report.Ended.IsZero() {
		return errors.Join(err, file.Close(), os.Remove(name))
	}
	_, failed := file.WriteString(report.Text())
	return errors.Join(err, failed, file.Sync(), file.Close())
}

func verifyBook(c *call, against checkpoints, report *backoffice.Report) error {
	isJSON, findings := c.text("format") == "json", []string{}
	work := startProgress(c.ErrOrStderr(), "verifying", 0)
	defer work.stop()
	proof, err := c.office.Verify(c.Context(), against, backoffice.Watch{
		Report:   report,
		Progress: work.rows.Store,
		Found: func(finding backoffice.Finding) {
			if findings = append(findings, finding.Text); !isJSON {
				work.printf("")
				_ = c.print("%s\n", finding.Text)
			}
		},
	})
	if err == nil && isJSON {
		err = c.write("", object{
			"Correct": proof.Findings == 0, "Findings": findings,
			"Holdings": proof.Holdings, "Accounts": proof.Accounts, "Sales": proof.Sales, "Postings": proof.Postings,
			"Batches": proof.Batches, "Unsealed": proof.Unsealed, "Compared": proof.Trail.Compared,
			"TrailKey": proof.Trail.PublicKey, "TrailNotCompared": proof.Trail.Reason,
			"Extends": append([]string{}, proof.Trail.Extends...), "Warnings": append([]string{}, proof.Trail.Warnings...),
		})
	}
	if err != nil {
		return err
	}
	work.printf("%s", screen("verified", proof))
	if proof.Findings > 0 {
		return fmt.Errorf("the book has %s", backoffice.Plural(proof.Findings, "error"))
	}
	return nil
}

// newFile makes a file that only its owner can read.
func newFile(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return file, exists(name, err)
}

// exists says plainly that a new file cannot have this name.
func exists(name string, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already: choose another name", name)
	}
	return err
}

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

// readProved returns the ID of the operation, if that is how it is named.
func readProved(c *call) (id operation.ID, err error) {
	text, subscription, callerID := c.text("operation"), c.text("subscription"), c.text("caller-id")
	byCaller := subscription != "" || callerID != ""
	switch {
	case byCaller == (text != ""):
		return id, wrongUsef("either --operation, or --subscription and --caller-id is needed")
	case byCaller && (subscription == "" || callerID == ""):
		return id, wrongUsef("--subscription and --caller-id belong together")
	case byCaller:
		return id, nil
	}
	return parseID(text)
}

func prove(c *call, id operation.ID) error {
	if c.text("operation") == "" {
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
