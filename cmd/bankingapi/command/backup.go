package command

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bankingapi/application/backoffice"
	"bankingapi/application/store"
	"bankingapi/bootstrap"
	"bankingapi/domain/audit"
)

func backup(c *call) error {
	if err := c.openAny(); err != nil {
		return err
	}
	c.settings.Trail.KeyFile = cmp.Or(c.keeper.KeyFile(), c.settings.Trail.KeyFile)
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
		c.PrintErrf("Copied to %s. The copy has the older schema version %d and was not checked. restore migrates and checks it; verify of the older program checks it as it is.\n",
			file, schema.Version)
		return nil
	}
	if err := c.openBook(); err != nil {
		return err
	}
	proof, err := c.office.Verify(audit.By(c.Context(), audit.Who{}), nil, backoffice.Watch{}) // without an act in the audit, so that the copy is not changed
	if err != nil {
		return fmt.Errorf("the copy was written, but could not be checked: %w", err)
	}
	if proof.Findings > 0 {
		return fmt.Errorf("the copy was written, but the book has %s: run verify", backoffice.Plural(proof.Findings, "error"))
	}
	c.PrintErrf("Copied to %s: %s. The copy is correct.\n", file, proof.CheckedRows())
	return nil
}

func restore(c *call, against []string) error {
	if c.settings.Storage.Driver != bootstrap.SQLite {
		return errors.New("restore is for books of SQLite: on Postgres use pg_restore, then run verify")
	}
	backup := c.args[0]
	if info, err := os.Stat(backup + "-wal"); err == nil && info.Size() > 0 {
		return fmt.Errorf("%s is a book in use, with changes in %s-wal: make a copy with backup first", backup, backup)
	}
	file, err := os.Open(backup)
	if err != nil {
		return err
	}
	defer file.Close()
	from := bufio.NewReaderSize(file, 1<<16)
	if head, _ := from.Peek(len(sqliteHead)); string(head) != sqliteHead {
		return fmt.Errorf("%s is not a SQLite database: nothing was changed", backup)
	}
	book, _, _ := strings.Cut(strings.TrimPrefix(string(c.settings.Storage.DSN), "file:"), "?")
	if err := os.MkdirAll(filepath.Dir(book), 0o700); err != nil {
		return err
	}
	copied := book + ".restoring"
	err = copyTo(copied, from)
	if err == nil {
		err = checkBook(c, copied, backup)
	}
	if err == nil {
		err = makeRoom(c, book)
	}
	if err != nil {
		return errors.Join(err, os.Remove(copied))
	}
	if err := os.Rename(copied, book); err != nil {
		return err
	}
	c.PrintErrf("Restored %s to %s.\n", backup, book)
	if err := c.openBook(); err != nil {
		return err
	}
	if err := keepNewerCheckpoints(c); err != nil {
		return err
	}
	return verifyBook(c, against, nil)
}

// keepNewerCheckpoints renames the file of checkpoints that the restored log does not have, so
// that the log continues from the backup.
func keepNewerCheckpoints(c *call) error {
	file, err := c.keeper.Ahead(c.Context())
	if err != nil || file == "" {
		return err
	}
	aside := unused(file)
	if err := os.Rename(file, aside); err != nil {
		return err
	}
	c.PrintErrf("Kept %s as %s: the trail has more than the backup. What was answered after the backup is not in the book.\n", file, aside)
	return nil
}

// unused returns a new file name in the same folder.
func unused(file string) string {
	aside := file + ".replaced-1"
	for n := 2; isFile(aside); n++ { // files that were kept earlier stay
		aside = fmt.Sprintf("%s.replaced-%d", file, n)
	}
	return aside
}

// sqliteHead is the beginning of every SQLite database.
const sqliteHead = "SQLite format 3\x00"

// checkBook returns an error if this program cannot use the copy of the backup as a book.
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
	case schema.Version == schema.Wanted:
		c.settings.Log.Level = "error" // verify reports why no trail is kept, and nothing is migrated
	}
	return nil
}

// makeRoom renames the files of an existing book to keep them.
func makeRoom(c *call, book string) error {
	if info, err := os.Stat(book); c.is("replace") && err == nil && info.Size() > 0 {
		if err := bootstrap.CheckAlone(c.Context(), c.settings, c.options, bootstrap.WithBookAsItIs()); err != nil {
			return fmt.Errorf("nothing was changed: %w. If no service runs, move %s away yourself", err, book)
		}
	}
	aside := unused(book)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if !isFile(book + suffix) {
			continue
		}
		if !c.is("replace") {
			return fmt.Errorf("%s exists already: stop the service, and use --replace to keep the book under another name", book+suffix)
		}
		if err := os.Rename(book+suffix, aside+suffix); err != nil {
			return err
		}
		c.PrintErrf("Kept %s as %s.\n", book+suffix, aside+suffix)
	}
	return nil
}

// isFile reports whether a file with this name exists, or may exist but cannot be inspected.
func isFile(name string) bool {
	_, err := os.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
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

func copyBook(c *call) error {
	to, target := c.text("to"), c.settings
	target.Storage.DSN = bootstrap.Secret(to)
	scheme, _, isURL := strings.Cut(to, "://")
	switch {
	case isURL && (scheme == "postgres" || scheme == "postgresql"):
		target.Storage.Driver = bootstrap.Postgres
	case isURL || strings.Contains(to, "dbname=") || strings.Contains(to, "host="):
		return wrongUsef("--to must be a URL like postgres://user@host/database, or a SQLite file")
	default:
		target.Storage.Driver = bootstrap.SQLite
	}
	if target.Storage == c.settings.Storage {
		return wrongUsef("--to names the book itself")
	}
	if err := c.openAny(); err != nil {
		return err
	}
	keyFile := c.keeper.KeyFile()
	if err := c.close(); err != nil {
		return err
	}
	work := startProgress(c.ErrOrStderr(), "copying", 0)
	defer work.stop()
	rows, err := bootstrap.Copy(c.Context(), c.settings, target, store.CopyWatch{
		Phase: work.enter,
		Row:   func(n int64) { work.rows.Add(n) },
	}, c.options)
	if errors.Is(err, bootstrap.ErrTarget) {
		return wrongUsef("--to: %v. Nothing was copied", bootstrap.ErrTarget)
	}
	if err != nil {
		return err
	}
	if absolute, err := filepath.Abs(keyFile); err == nil && keyFile != "" {
		keyFile = absolute
	}
	work.printf("%s", screen("copied", object{"Rows": backoffice.Plural(rows, "row"), "Driver": target.Storage.Driver, "IsURL": isURL, "To": to, "KeyFile": keyFile}))
	return nil
}
