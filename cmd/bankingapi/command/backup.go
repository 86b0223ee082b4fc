package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"bankingapi/application/backoffice"
	"bankingapi/bootstrap"
	"bankingapi/domain/audit"
)

func backupCommand(p program) *cobra.Command {
	return p.command(described("backup"), backup)
}

func backup(c *call) error {
	if err := c.openAny(); err != nil {
		return err
	}
	if keeper, err := c.app.Trail(); err == nil {
		c.settings.Trail.KeyFile = keeper.KeyFile()
	}
	file := c.args[0]
	if err := c.app.Backup(c.Context(), file); err != nil {
		return exists(file, err)
	}
	if err := c.close(); err != nil {
		return err
	}
	c.settings.Storage.DSN = bootstrap.Secret(file)
	schema, err := bootstrap.SchemaStatus(c.Context(), c.settings, c.options, bootstrap.WithBookAsItIs())
	if err == nil && schema.Version > 0 && schema.Version < schema.Wanted {
		c.tell("Copied to %s. The copy has the older schema version %d and was not checked. restore migrates and checks it; verify of the older program checks it as it is.\n",
			file, schema.Version)
		return nil
	}
	if err := c.openBook(); err != nil {
		return err
	}
	proof, err := c.office.Verify(audit.By(c.Context(), audit.Who{}), nil, backoffice.Watch{}) // the copy stays as it is
	if err != nil {
		return fmt.Errorf("the copy was written, but could not be checked: %w", err)
	}
	if proof.Findings > 0 {
		return fmt.Errorf("the copy was written, but the book has %s: run verify", counted(proof.Findings, "error"))
	}
	c.tell("Copied to %s: %s. The copy is correct.\n", file, proof.Checked())
	return nil
}

type restoreOptions struct {
	verifyOptions
	replace bool
}

func restoreCommand(p program) *cobra.Command {
	var o restoreOptions
	cmd := p.command(described("restore"), o.run)
	cmd.Flags().BoolVar(&o.replace, "replace", false, "keep the book that is there under another name")
	return o.addTo(cmd)
}

func (o *restoreOptions) run(c *call) error {
	if c.settings.Storage.Driver != bootstrap.SQLite {
		return errors.New("restore is for books of SQLite: on Postgres use pg_restore, then run verify")
	}
	if err := o.check(c); err != nil {
		return err
	}
	backup := c.args[0]
	if info, err := os.Stat(backup + "-wal"); err == nil && info.Size() > 0 {
		return fmt.Errorf("%s is a book in use, with changes in %s-wal: make a copy with backup first", backup, backup)
	}
	from, err := os.Open(backup)
	if err != nil {
		return err
	}
	defer from.Close()
	head := make([]byte, len(sqliteHead))
	if _, err := io.ReadFull(from, head); err != nil || string(head) != sqliteHead {
		return fmt.Errorf("%s is not a SQLite database: nothing was changed", backup)
	}
	book, _, _ := strings.Cut(strings.TrimPrefix(string(c.settings.Storage.DSN), "file:"), "?")
	if err := os.MkdirAll(filepath.Dir(book), 0o700); err != nil {
		return err
	}
	copied := book + ".restoring"
	err = copyTo(copied, io.MultiReader(bytes.NewReader(head), from))
	if err == nil {
		err = checkBook(c, copied, backup)
	}
	if err == nil {
		err = o.makeRoom(c, book)
	}
	if err != nil {
		return errors.Join(err, os.Remove(copied))
	}
	if err := os.Rename(copied, book); err != nil {
		return err
	}
	c.tell("Restored %s to %s.\n", backup, book)
	if err := c.openBook(); err != nil {
		return err
	}
	return o.verifyOptions.run(c)
}

// sqliteHead begins every SQLite database.
const sqliteHead = "SQLite format 3\x00"

// checkBook returns an error if the copy of the backup is no book that this program can use.
func checkBook(c *call, copied, backup string) error {
	settings := c.settings
	settings.Storage.DSN = bootstrap.Secret(copied)
	schema, err := bootstrap.SchemaStatus(c.Context(), settings, c.options, bootstrap.WithBookAsItIs())
	switch {
	case err != nil:
		return fmt.Errorf("%s cannot be read as a book, nothing was changed: %w", backup, err)
	case schema.Version == 0:
		return fmt.Errorf("%s is a database without a book: nothing was changed", backup)
	case schema.Version > schema.Wanted:
		return fmt.Errorf("%s has schema version %d, but this program only knows version %d: nothing was changed, use a newer program", backup, schema.Version, schema.Wanted)
	}
	return nil
}

// makeRoom keeps the files of a book that is there under another name.
func (o *restoreOptions) makeRoom(c *call, book string) error {
	if info, err := os.Stat(book); o.replace && err == nil && info.Size() > 0 {
		if err := bootstrap.CheckAlone(c.Context(), c.settings, c.options, bootstrap.WithBookAsItIs()); err != nil {
			return fmt.Errorf("nothing was changed: %w. If no service runs, move %s away yourself", err, book)
		}
	}
	aside := book + ".replaced-1"
	for n := 2; ; n++ { // what was kept before stays
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			break
		}
		aside = book + ".replaced-" + strconv.Itoa(n)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		_, err := os.Lstat(book + suffix)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err == nil && !o.replace:
			return fmt.Errorf("%s exists already: stop the service, and use --replace to keep the book under another name", book+suffix)
		case err == nil:
			err = os.Rename(book+suffix, aside+suffix)
		}
		if err != nil {
			return err
		}
		c.tell("Kept %s as %s.\n", book+suffix, aside+suffix)
	}
	return nil
}

// copyTo writes a new file that only its owner can read.
func copyTo(name string, from io.Reader) error {
	to, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Sync(), to.Close())
}
