package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"bankingapi/adapters/trail"
	"bankingapi/application/backoffice"
	"bankingapi/application/owner"
)

// againstFlag is --against of a command that compares the trail.
type againstFlag struct{ files, checkpoints []string }

func (o *againstFlag) bind(f *flags) {
	f.set.StringArrayVar(&o.files, "against", nil, "`file` with earlier checkpoints of the trail; may be repeated")
}

// check reads the checkpoints from the files.
func (o *againstFlag) check(c *call) error {
	for _, file := range o.files {
		content, err := c.readInput(file)
		if err != nil {
			return wrongUsef("--against: %v", err)
		}
		if err := trail.CheckCheckpoints(string(content)); err != nil {
			return wrongUsef("--against %s: %v", file, err)
		}
		o.checkpoints = append(o.checkpoints, string(content))
	}
	return nil
}

type verifyCommand struct {
	againstFlag
	report string
}

func (o *verifyCommand) flags(f *flags) {
	f.as()
	f.json()
	f.set.StringVar(&o.report, "report", "", "write a report for an auditor to this new `file`")
	o.bind(f)
	f.call.mayChange = false // it keeps its act in any book
}

func (o *verifyCommand) run(c *call) error {
	name := o.report
	against := o.checkpoints
	if name == "" {
		return verifyBook(c, against, nil)
	}
	file, err := newFile(name) // report an invalid name before the work
	if err != nil {
		return err
	}
	var report backoffice.Report
	if err = verifyBook(c, against, &report); report.Ended.IsZero() {
		return errors.Join(err, file.Close(), os.Remove(name))
	}
	return errors.Join(err, finish(file, report.Text()))
}

// verified is the result of verify for programs.
type verified struct {
	Correct                             bool
	Findings                            []backoffice.Finding
	Holdings, Accounts, Sales, Postings int64
	Batches, Unsealed                   int64
	Compared                            any
	TrailKey, TrailNotCompared          string
	Extends, Warnings                   []string
}

func verifyBook(c *call, against []string, report *backoffice.Report) error {
	isJSON := c.format == "json"
	findings := []backoffice.Finding{}
	work := startProgress(c.cmd.ErrOrStderr(), "verifying", 0)
	defer work.stop()
	proof, err := c.office.Verify(c.cmd.Context(), against, backoffice.Watch{
		Report:   report,
		Progress: work.rows.Store,
		Found: func(finding backoffice.Finding) {
			findings = append(findings, finding)
			if !isJSON {
				work.printf("")
				_ = c.print("%s\n", finding.Text)
			}
		},
	})
	if err != nil {
		return err
	}
	if isJSON {
		err = c.write("", verified{
			Correct: proof.Findings == 0, Findings: findings,
			Holdings: proof.Holdings, Accounts: proof.Accounts, Sales: proof.Sales, Postings: proof.Postings,
			Batches: proof.Batches, Unsealed: proof.Unsealed, Compared: proof.Trail.Compared,
			TrailKey: proof.Trail.PublicKey, TrailNotCompared: proof.Trail.Reason,
			Extends: append([]string{}, proof.Trail.Extends...), Warnings: append([]string{}, proof.Trail.Warnings...),
		})
		if err != nil {
			return err
		}
	}
	work.printf("%s", screen("verified", proof))
	if proof.Findings > 0 {
		return fmt.Errorf("the book has %s", backoffice.Plural(proof.Findings, "finding"))
	}
	return nil
}

// newFile makes a file that only its owner can read.
func newFile(name string) (*os.File, error) {
	file, err := owner.Create(name, os.O_EXCL|os.O_WRONLY, 0o600)
	return file, exists(name, err)
}

// finish writes the text of a new file, and closes it. If that fails, as on a full disk, it removes the
// file: another attempt, or trail keygen --keep, must not find a part of it.
func finish(file *os.File, text string) error {
	_, err := file.WriteString(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// exists explains an error if the file of this name already exists.
func exists(name string, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already: choose another name", name)
	}
	return err
}
