package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"bankingapi/application/backoffice"
	"bankingapi/bootstrap"
)

type verifyOptions struct {
	against, checkpoints []string // names of files, and their contents
	report               string
}

func verifyCommand(p program) *cobra.Command {
	var o verifyOptions
	cmd := p.onBook(described("verify"), o.check, o.run)
	cmd.Flags().StringVar(&o.report, "report", "", "write a report for an auditor to this new `file`")
	return o.addTo(cmd)
}

func (o *verifyOptions) addTo(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringArrayVar(&o.against, "against", nil, "`file` with earlier checkpoints of the trail; may be repeated")
	return addActor(addFormat(cmd))
}

// check reads the files of --against.
func (o *verifyOptions) check(c *call) error {
	for _, file := range o.against {
		content, err := c.readInput(file)
		if err != nil {
			return wrongUsef("--against: %v", err)
		}
		if err := bootstrap.CheckTrailCheckpoints(string(content)); err != nil {
			return wrongUsef("--against %s: %v", file, err)
		}
		o.checkpoints = append(o.checkpoints, string(content))
	}
	return nil
}

func (o *verifyOptions) run(c *call) (err error) {
	var report backoffice.Report
	if o.report != "" {
		file, err := newFile(o.report) // a name that cannot be used is told before the work
		if err != nil {
			return err
		}
		defer func() {
			if report.Ended.IsZero() {
				err = errors.Join(err, file.Close(), os.Remove(o.report))
				return
			}
			_, failed := file.WriteString(report.Text())
			err = errors.Join(err, failed, file.Sync(), file.Close())
		}()
	}
	findings := []string{}
	work := startProgress(c.ErrOrStderr(), "verifying", 0)
	defer work.stop()
	proof, err := c.office.Verify(c.Context(), o.checkpoints, backoffice.Watch{
		Report:   &report,
		Progress: work.rows.Store,
		Found: func(finding backoffice.Finding) {
			if c.format() == "json" {
				findings = append(findings, finding.Text)
				return
			}
			work.clear()
			_ = c.print("%s\n", finding.Text)
		},
	})
	if err != nil {
		return err
	}
	if c.format() == "json" {
		if err := c.write("", proofDocument(proof, findings)); err != nil {
			return err
		}
	}
	work.printf("Checked %s.\n", proof.Checked())
	printTrail(work.printf, &proof)
	switch {
	case proof.Findings > 0:
		return fmt.Errorf("the book has %s", counted(proof.Findings, "error"))
	case proof.Holdings+proof.Accounts+proof.Sales+proof.Postings == 0:
		work.printf("The book is empty: there was nothing to check.\n")
	default:
		work.printf("The book is correct.\n")
	}
	return nil
}

// counted is "1 error" or "2 errors".
func counted(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}

func proofDocument(p backoffice.Proof, findings []string) document {
	return document{fields: []field{
		{"Correct", p.Findings == 0}, {"Findings", findings},
		{"Holdings", p.Holdings}, {"Accounts", p.Accounts}, {"Sales", p.Sales}, {"Postings", p.Postings},
		{"Batches", p.Batches}, {"Unsealed", p.Unsealed},
		{"TrailKey", p.Trail.PublicKey}, {"TrailNotCompared", p.Trail.Reason},
		{"Extends", append([]string{}, p.Trail.Extends...)}, {"Warnings", append([]string{}, p.Trail.Warnings...)},
	}}
}

// printTrail says what the trail was compared with.
func printTrail(printf func(format string, args ...any), proof *backoffice.Proof) {
	t := &proof.Trail
	if t.Reason != "" {
		printf("The trail was not compared: %s\n", t.Reason)
		return
	}
	printf("Checked %d batches of the trail, and %d that are not in a checkpoint yet.\nIts public key is %s.\n",
		proof.Batches, proof.Unsealed, t.PublicKey)
	for _, file := range t.Extends {
		printf("It extends %s.\n", file)
	}
	for _, warning := range t.Warnings {
		printf("Warning: %s\n", warning)
	}
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
