package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// patience is how long an export waits for the reader of its output before it writes to a file.
const patience = 5 * time.Second

// spool passes bytes on to a reader. If the reader takes nothing for a while, like a pager, it keeps
// the rest in a temporary file. So an export that waits does not keep the state of the book: a
// SQLite book would write everything into its log meanwhile, and Postgres could not clean up.
type spool struct {
	out      io.Writer
	patience time.Duration

	passed chan error // the result of the write that out has not finished; nil if there is none
	file   *os.File   // nil while the reader follows
}

func newSpool(out io.Writer) *spool { return &spool{out: out, patience: patience} }

// Write returns when the reader or the file has the bytes.
func (s *spool) Write(p []byte) (int, error) {
	if s.file != nil {
		return s.file.Write(p)
	}
	s.passed = make(chan error, 1)
	kept := append([]byte(nil), p...) // the caller uses p again
	go func(passed chan error) {
		_, err := s.out.Write(kept)
		passed <- err
	}(s.passed)
	waited := time.NewTimer(s.patience)
	defer waited.Stop()
	select {
	case err := <-s.passed:
		s.passed = nil
		if err != nil {
			return 0, err
		}
		return len(p), nil
	case <-waited.C:
	}
	file, err := os.CreateTemp("", "bankingapi-export-*")
	if err != nil {
		return 0, fmt.Errorf("the reader of the output takes nothing, and no temporary file can be made: %w", err)
	}
	s.file = file
	return len(p), nil
}

// Close passes on what is in the file, at the reader's pace, and removes the file. If ctx ends, the
// rest is lost.
func (s *spool) Close(ctx context.Context) error {
	if s.file == nil {
		return nil
	}
	defer os.Remove(s.file.Name())
	defer s.file.Close()
	copied := make(chan error, 1)
	go func() { copied <- s.passOn() }()
	select {
	case err := <-copied:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *spool) passOn() error {
	err := <-s.passed
	if err != nil {
		return err
	}
	_, err = s.file.Seek(0, io.SeekStart)
	if err != nil {
		return err
	}
	_, err = io.Copy(s.out, s.file)
	return err
}

// errClosedOutput: the shell has closed standard output (>&-), so everything printed would be lost.
var errClosedOutput = errors.New("standard output is closed, so what the command prints would be lost: send it to a file, to a pipe or to /dev/null")

// closedOutput is standard output that the shell has closed. Without it, a command would succeed
// and nobody would see what it printed.
type closedOutput struct{}

func (closedOutput) Write([]byte) (int, error) { return 0, errClosedOutput }

// requireOutput returns an error if nobody would see what the command prints. Commands call it
// that print what cannot be asked for again, or much.
func (c *call) requireOutput() error {
	printed, isOurs := c.cmd.OutOrStdout().(*output)
	if isOurs && printed.Writer == (closedOutput{}) {
		return errClosedOutput
	}
	return nil
}
