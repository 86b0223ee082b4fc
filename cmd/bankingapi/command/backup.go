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
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/owner"
	"bankingapi/application/store"
	"bankingapi/bootstrap"
	"bankingapi/domain/audit"
	"bankingapi/domain/operation"
)

func backup(c *call) error {
	if err := c.openAny(); err != nil {
		return err
	}
	c.settings.Trail.KeyFile = cmp.Or(c.keeper.KeyFile(), c.settings.Trail.KeyFile)
	file := c.args[0]
	if err := c.app.Backup(c.cmd.Context(), file); err != nil {
		return exists(file, err)
	}
	c.lookAtAll(file)
	if err := c.close(); err != nil {
		return err
	}
	c.settings.Storage.DSN = bootstrap.Secret(file)
	schema, err := bootstrap.SchemaStatus(c.cmd.Context(), c.settings, c.program.options, bootstrap.WithBookAsItIs())
	if err == nil && schema.Version > 0 && schema.Version < schema.Wanted {
		c.cmd.PrintErrf("Copied to %s. The copy has the older schema version %d and was not checked. restore migrates and checks it; verify of the older program checks it as it is.\n",
			file, schema.Version)
		return nil
	}
	if err := c.openBook(); err != nil {
		return err
	}
	proof, err := c.office.Verify(audit.By(c.cmd.Context(), audit.Who{}), nil, backoffice.Watch{}) // without an act in the audit, so that the copy is not changed
	if err != nil {
		return fmt.Errorf("the copy was written, but could not be checked: %w", err)
	}
	if proof.Findings > 0 {
		return fmt.Errorf("the copy was written, but the book has %s: run verify", backoffice.Plural(proof.Findings, "finding"))
	}
	c.cmd.PrintErrf("Copied to %s: %s. The copy is correct.\n", file, proof.CheckedRows())
	return nil
}

// lookAtAll records in the audit that a file has the data of all customers now. A book with an older
// schema stays as it is.
func (c *call) lookAtAll(file string) {
	office, err := c.app.Backoffice(c.cmd.Context())
	if err != nil {
		return
	}
	c.office = office
	c.look(audit.CommandExport, "backup", file)
}

type restoreCommand struct {
	againstFlag
	replace bool
}

func (o *restoreCommand) flags(f *flags) {
	f.as()
	f.json()
	f.set.BoolVar(&o.replace, "replace", false, "keep the book that is there under another name")
	o.bind(f)
}

func (o *restoreCommand) run(c *call) error {
	if c.settings.Storage.Driver != bootstrap.SQLite {
		return errors.New("restore is for books of SQLite: on Postgres use pg_restore, then run verify")
	}
	backup := c.args[0]
	book, err := withoutLinks(c.settings.Storage.File())
	if err != nil {
		return err
	}
	copied, err := copyBackup(backup, book)
	if err != nil {
		return err
	}
	erasures, err := o.prepare(c, copied, backup, book)
	if err != nil {
		return errors.Join(err, os.Remove(copied))
	}
	if err := os.Rename(copied, book); err != nil {
		return err
	}
	c.cmd.PrintErrf("Restored %s to %s.\n", backup, book)
	if err := c.openBook(); err != nil {
		return err
	}
	if err := c.app.ForgetReplicas(c.cmd.Context()); err != nil {
		return err
	}
	if err := keepNewerCheckpoints(c); err != nil {
		return err
	}
	if err := nameErasures(c, erasures); err != nil {
		return err
	}
	return o.verify(c)
}

// prepare checks the copy of a backup, and then makes room for it. It returns the acts of
// makeRoom.
func (o *restoreCommand) prepare(c *call, copied, backup, book string) (erasures []audit.Act, err error) {
	if err := checkBook(c, copied, backup); err != nil {
		return nil, err
	}
	return o.makeRoom(c, book)
}

// withoutLinks returns the file to which a name leads. A link to another disk stays a link.
func withoutLinks(name string) (string, error) {
	file, err := filepath.EvalSymlinks(name)
	if errors.Is(err, fs.ErrNotExist) {
		return name, nil
	}
	return file, err
}

// copyBackup copies a backup beside the book that it will replace, and returns the name of the
// copy. After an error there is no copy.
func copyBackup(backup, book string) (copied string, err error) {
	if hasContent(backup + "-wal") {
		return "", fmt.Errorf("%s is a book in use, with changes in %s-wal: make a copy with backup first", backup, backup)
	}
	info, err := os.Stat(backup)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() { // to open a named pipe could take forever
		return "", fmt.Errorf("%s is not a file: nothing was changed", backup)
	}
	file, err := os.Open(backup)
	if err != nil {
		return "", err
	}
	defer file.Close()
	from := bufio.NewReaderSize(file, 1<<16)
	head, _ := from.Peek(len(sqliteHead))
	if string(head) != sqliteHead {
		return "", fmt.Errorf("%s is not a SQLite database: nothing was changed", backup)
	}
	if err := owner.MakeFolder(filepath.Dir(book)); err != nil {
		return "", err
	}
	copied = book + ".restoring"
	err = copyTo(copied, from, book)
	if err != nil {
		return "", errors.Join(err, os.Remove(copied))
	}
	return copied, nil
}

// verify checks the restored book, and compares its log with the checkpoints of --against that are
// not newer than the backup.
func (o *restoreCommand) verify(c *call) error {
	older, err := withoutNewer(c, o.checkpoints)
	if err != nil {
		return err
	}
	err = verifyBook(c, older, nil)
	if err != nil {
		return err
	}
	if len(o.checkpoints) > 0 && len(older) == 0 {
		return errors.New("every checkpoint of --against is newer than the backup, so the log was compared with none: run verify --against with an older one")
	}
	return nil
}

// withoutNewer removes the checkpoints that are newer than the backup, and says so.
func withoutNewer(c *call, against []string) (older []string, err error) {
	for i, content := range against {
		kept, newer, err := c.keeper.WithoutNewer(c.cmd.Context(), content)
		if err != nil {
			return nil, err
		}
		if newer > 0 {
			c.cmd.PrintErrf("File %d of --against has %s newer than the backup. They are not compared: they prove that the log was longer, and that what was answered after the backup is lost.\n",
				i+1, backoffice.Plural(int64(newer), "checkpoint"))
		}
		if kept != "" {
			older = append(older, kept)
		}
	}
	return older, nil
}

// readErasures returns the acts in the present book that erased messages. A book that cannot be
// read is no reason not to restore another one.
func readErasures(c *call) (acts []audit.Act) {
	present := &call{cmd: c.cmd, program: c.program, settings: c.settings} // opens the book as it is
	present.settings.Log.Level = "error"
	defer func() { _ = present.close() }()
	if present.openBook() != nil {
		return nil
	}
	acts, _ = backoffice.Collect(present.office.Reader.Acts(c.cmd.Context(), backoffice.Query{Action: audit.NotificationsErase})) // those before the error
	return acts
}

// nameErasures names the erasures that the replaced book had and the restored one does not have.
// The service repeats those of retention.notifications itself.
func nameErasures(c *call, erasures []audit.Act) error {
	known := make(map[operation.ID]bool)
	for act, err := range c.office.Reader.Acts(c.cmd.Context(), backoffice.Query{Action: audit.NotificationsErase}) {
		if err != nil {
			return err
		}
		known[act.ID] = true
	}
	var lost []string
	for _, act := range erasures {
		line := fmt.Sprintf("  %s, by %s: %s\n", act.Object, act.Actor, act.Reason)
		isOfBatch := len(lost) > 0 && strings.HasSuffix(lost[len(lost)-1], line) // an act for each thousand
		if !known[act.ID] && !isOfBatch {
			lost = append(lost, "  "+act.At.UTC().Format(time.RFC3339)+line)
		}
	}
	if len(lost) > 0 {
		c.cmd.PrintErrf("The backup is older than %s. Their messages can be read again. Repeat them with 'bankingapi notifications erase':\n%s",
			backoffice.Plural(int64(len(lost)), "erasure"), strings.Join(lost, ""))
	}
	return nil
}

// keepNewerCheckpoints renames the file of checkpoints that the restored log does not have, so
// that the log continues from the backup.
func keepNewerCheckpoints(c *call) error {
	file, err := c.keeper.Ahead(c.cmd.Context())
	if err != nil || file == "" {
		return err
	}
	aside := unused(file)
	if err := os.Rename(file, aside); err != nil {
		return err
	}
	c.cmd.PrintErrf("Kept %s as %s: the trail has more than the backup. What was answered after the backup is not in the book.\n", file, aside)
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
	schema, err := bootstrap.SchemaStatus(c.cmd.Context(), settings, c.program.options, bootstrap.WithBookAsItIs())
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

// makeRoom renames the files of an existing book to keep them. It returns the acts of this book
// that erased messages.
func (o *restoreCommand) makeRoom(c *call, book string) (erasures []audit.Act, err error) {
	if o.replace && hasContent(book) {
		if err := bootstrap.CheckAlone(c.cmd.Context(), c.settings, c.program.options, bootstrap.WithBookAsItIs()); err != nil {
			return nil, fmt.Errorf("nothing was changed: %w. If no service runs, move %s away yourself", err, book)
		}
		erasures = readErasures(c)
	}
	aside := unused(book)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if !isFile(book + suffix) {
			continue
		}
		if !o.replace {
			return nil, fmt.Errorf("%s exists already: stop the service, and use --replace to keep the book under another name", book+suffix)
		}
		if err := os.Rename(book+suffix, aside+suffix); err != nil {
			return nil, err
		}
		c.cmd.PrintErrf("Kept %s as %s.\n", book+suffix, aside+suffix)
	}
	return erasures, nil
}

// isFile reports whether a file with this name exists, or may exist but cannot be inspected.
func isFile(name string) bool {
	_, err := os.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// hasContent reports whether a file with this name exists and is not empty.
func hasContent(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Size() > 0
}

// copyTo writes a new file that only its owner can read: the owner of the file that it will
// replace, or of its folder.
func copyTo(name string, from io.Reader, replaced string) error {
	to, err := owner.Create(name, os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, owner.Keep(to, replaced), to.Sync(), to.Close())
}

type copyCommand struct {
	to       string
	takeBack bool
}

func (o *copyCommand) flags(f *flags) {
	f.reason()
	f.set.StringVar(&o.to, "to", "", "Postgres `URL` or SQLite file of the copy")
	f.set.BoolVar(&o.takeBack, "take-back", false, "let services use the book again, because its copy is not used")
}

// copied is what copy prints at its end.
type copied struct {
	Rows, Driver, To, KeyFile string
	IsURL                     bool
}

func (o *copyCommand) run(c *call) error {
	if o.takeBack {
		return o.takeBookBack(c)
	}
	target, isURL, err := o.target(c.settings)
	if err != nil {
		return err
	}
	keyFile, err := keyFileOfBook(c)
	if err != nil {
		return err
	}
	work := startProgress(c.cmd.ErrOrStderr(), "copying", 0)
	defer work.stop()
	rows, err := bootstrap.Copy(c.cmd.Context(), c.settings, target, store.CopyWatch{
		Phase: work.enter,
		Row:   func(n int64) { work.rows.Add(n) },
	}, c.program.options)
	if errors.Is(err, bootstrap.ErrCopied) && errors.Is(err, bootstrap.ErrTarget) {
		return wrongUsef("--to: %v. Nothing was copied now; %v: if the target is that copy, it is finished", bootstrap.ErrTarget, bootstrap.ErrCopied)
	}
	if errors.Is(err, bootstrap.ErrTarget) {
		return wrongUsef("--to: %v. Nothing was copied", bootstrap.ErrTarget)
	}
	if err != nil {
		return err
	}
	to := o.to
	if !isURL {
		to = absolute(target.Storage.File())
	}
	work.printf("%s", screen("copied", copied{Rows: backoffice.Plural(rows, "row"), Driver: target.Storage.Driver, IsURL: isURL, To: to, KeyFile: keyFile}))
	return nil
}

// target returns the settings of the copy, and whether --to is a URL.
func (o *copyCommand) target(of bootstrap.Settings) (target bootstrap.Settings, isURL bool, err error) {
	if o.to == "" {
		return of, false, wrongUsef("--to is missing")
	}
	target = of
	target.Storage.DSN = bootstrap.Secret(o.to)
	scheme, _, isURL := strings.Cut(o.to, "://")
	switch {
	case isURL && (scheme == "postgres" || scheme == "postgresql"):
		target.Storage.Driver = bootstrap.Postgres
	case isURL || strings.Contains(o.to, "dbname=") || strings.Contains(o.to, "host="):
		return of, isURL, wrongUsef("--to must be a URL like postgres://user@host/database, or a SQLite file")
	default:
		target.Storage.Driver = bootstrap.SQLite
	}
	if target.Storage == of.Storage {
		return of, isURL, wrongUsef("--to names the book itself")
	}
	return target, isURL, nil
}

// keyFileOfBook returns the file with the key of the book's log, or an empty name. It leaves the
// book closed. A book that was copied already is no error: the copy may go on.
func keyFileOfBook(c *call) (string, error) {
	keyFile := c.settings.Trail.KeyFile
	err := c.openAny()
	mark, isMarked := errors.AsType[store.MarkError](err)
	switch {
	case isMarked && mark == store.CopiedMark:
	case err != nil:
		return "", err
	default:
		keyFile = c.keeper.KeyFile()
	}
	err = c.close()
	if err != nil || keyFile == "" {
		return "", err
	}
	return absolute(keyFile), nil
}

// absolute returns the name of a file that a program in another folder can use too.
func absolute(file string) string {
	name, err := filepath.Abs(file)
	if err != nil {
		return file // the name as it was given will do
	}
	return name
}

func (o *copyCommand) takeBookBack(c *call) error {
	switch {
	case o.to != "":
		return wrongUsef("use --to or --take-back, not both")
	case c.reason == "":
		return errNoReason
	}
	err := bootstrap.TakeBack(c.cmd.Context(), c.settings, c.program.options)
	if mark, ok := errors.AsType[store.MarkError](err); ok && mark == "" {
		return errors.New("the book was not copied, or was taken back: nothing was changed")
	}
	return c.done(err, "Services may use the book again. Do not use its copy: it would sell the same.\n")
}
