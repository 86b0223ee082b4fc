package trail

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"bankingapi/application/backoffice"
	application "bankingapi/application/trail"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// Options say where the files of a trail are.
type Options struct {
	// Ports are those of the storage. None means that it can keep no trail.
	Ports *application.Ports
	// Wanted is false if nobody wants a trail.
	Wanted bool
	// NewID makes the IDs of batches.
	NewID func() operation.ID
	// Ready returns an error while the storage cannot be used.
	Ready func(ctx context.Context) error
	// KeyFile has the signing key. If it is empty and the book is a file of its own,
	// the key is beside it, and is made for an empty log.
	KeyFile string
	// Folder is the data folder. Book is the name of the book's file in it without
	// its ending; empty if the book is no file.
	Folder, Book string
	// AsItIs makes no key.
	AsItIs bool
}

// Keeper keeps the trail of a service, or says why it keeps none. It is safe for
// concurrent use.
type Keeper struct {
	o       Options
	current atomic.Pointer[kept]
	// trouble is why the last Round did not seal.
	trouble atomic.Pointer[error]
}

// missing is the error of a trail that cannot be kept: why, and what to do.
type missing string

func (m missing) Error() string { return string(m) }

// startTimeout bounds how long Load waits for the log.
const startTimeout = 3 * time.Second

// NoKey is why no trail is kept where no key was given.
const NoKey = "There is no trail, because trail.key_file is empty. Make a key with `bankingapi trail keygen`, give its file to" +
	" every replica as trail.key_file, or set trail.enabled to false."

const (
	lostKey = "The book has a trail, and the key of its log is missing. Set trail.key_file to the file with that key" +
		" (trail.key beside the original book), begin another log with `bankingapi trail rekey`, or set trail.enabled to false."
	otherKey = "The key of %s is not that of the log of this book. Set trail.key_file to the file with the key of" +
		" this log (trail.key beside the original book), begin another log with `bankingapi trail rekey`, or set trail.enabled to false."
	noKeyYet = "The trail has not begun: the service makes its key."
	off      = "this service keeps no trail: see trail.enabled"
)

// New returns a Keeper that keeps no trail before Load. It opens no file and asks the
// storage nothing.
func New(o Options) *Keeper {
	k := &Keeper{o: o}
	k.current.Store(new(kept))
	return k
}

// Load reads the key, or makes it, and lets the storage write leaves from its next
// transaction on. It is called once, before the first transaction. It writes no leaves with
// another key than that of the log: they would look forged. Missing says what is missing.
func (k *Keeper) Load() error {
	err := k.Reload(k.o.KeyFile)
	if why, ok := errors.AsType[missing](err); ok {
		k.current.Store(&kept{missing: why})
		return nil
	}
	return err
}

// Reload reads the key again; keyFile is as in Options. A service that kept no trail,
// because the key was missing, keeps one from now on. It returns an error if the key is
// missing, or if the file has not the key of the log: then the service goes on with the
// key that it has. It does nothing if the trail is switched off.
func (k *Keeper) Reload(keyFile string) error {
	if !k.IsWanted() {
		return nil
	}
	notary, err := k.load(keyFile)
	if err != nil || k.Missing() == nil {
		return err
	}
	now := k.use(notary, keyFile)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	now.mu.Lock()
	defer now.mu.Unlock()
	_ = now.follow(ctx) // a storage that does not answer yet is followed by the first round
	return nil
}

// use keeps the trail with a key.
func (k *Keeper) use(notary *Notary, keyFile string) *kept {
	checkpoints := NewCheckpoints(k.o.file("checkpoints"), notary.VerifyingKey())
	now := &kept{ports: k.o.Ports, notary: notary, keyFile: k.keyFile(keyFile), checkpoints: checkpoints}
	k.current.Store(now)
	k.o.Ports.Writer.Use(notary.Keys(), k.o.NewID)
	return now
}

// keyFile is the file with the key, if the settings name that one or none.
func (k *Keeper) keyFile(named string) string { return cmp.Or(named, k.o.file("key")) }

// load loads the key of the log, and makes one for a log that is empty. The error is
// missing if there is none.
func (k *Keeper) load(named string) (*Notary, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	_, err := os.Stat(k.keyFile(named))
	isMade := named == "" && k.o.Book != ""
	if named == "" && (!isMade || errors.Is(err, fs.ErrNotExist)) {
		switch isEmpty, err := k.o.Ports.Log.IsOf(ctx, nil); {
		case err == nil && !isEmpty: // a book without tables has no log yet
			return nil, missing(lostKey)
		case !isMade:
			return nil, missing(NoKey)
		case k.o.AsItIs:
			return nil, missing(noKeyYet)
		}
	}
	notary, err := LoadNotary(k.keyFile(named), isMade)
	if err != nil {
		return nil, err
	}
	// A storage that does not answer yet has the key that it had before: if not,
	// nothing is sealed, and verify says so.
	if own, err := k.o.Ports.Log.IsOf(ctx, notary.Keys()); err == nil && !own {
		return nil, missing(fmt.Sprintf(otherKey, k.keyFile(named)))
	}
	return notary, nil
}

// file is a file of the trail in the data folder. Two books in one folder have
// different logs, so that a book whose name is not the default one gives its name
// to these files: other.db has other.trail.key.
func (o *Options) file(kind string) string {
	name := "trail." + kind
	if o.Book != "" && o.Book != "bankingapi" {
		name = o.Book + "." + name
	}
	return filepath.Join(o.Folder, name)
}

// Missing returns why no trail is kept, or nil if one is.
func (k *Keeper) Missing() error {
	switch now := k.current.Load(); {
	case now.notary != nil:
		return nil
	case now.missing != "":
		return now.missing
	}
	return errors.New(off)
}

// IsWanted reports whether a trail is kept, or would be if nothing was missing.
func (k *Keeper) IsWanted() bool { return k.o.Wanted && k.o.Ports != application.None }

// Problem says what is wrong with the trail: why none is kept, or why it is not
// sealed. It is empty if nothing is. What a database says is not in it: it names hosts.
func (k *Keeper) Problem() string {
	trouble := k.trouble.Load()
	if trouble == nil {
		return string(k.current.Load().missing)
	}
	if _, isForeign := errors.AsType[*foreignError](*trouble); isForeign {
		return (*trouble).Error()
	}
	text := (*trouble).Error()
	if known, ok := errors.AsType[*fault.Error](*trouble); ok && known.Cause != nil {
		if _, isFlaw := errors.AsType[application.Flaw](known); isFlaw {
			text = known.Cause.Error()
		} else if text = known.Detail; !strings.HasSuffix(text, ".") {
			text = "See the log."
		}
	}
	return "The trail is not sealed: " + text
}

// beginTimeout bounds how long Begin waits.
const beginTimeout = 2 * time.Second

// Begin seals the first round before there are requests: the batches of a service that runs on a
// copy of the book are genuine in its own log only. If it fails, Round tries again.
func (k *Keeper) Begin(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, beginTimeout)
	defer cancel()
	_ = k.seal(ctx, true)
}

// seal signs everything up to now, if a trail is kept. Without mark, foreign batches are no
// error.
func (k *Keeper) seal(ctx context.Context, mark bool) error {
	now := k.current.Load()
	if now.notary == nil {
		return nil
	}
	if err := k.o.Ready(ctx); err != nil {
		return err
	}
	return now.seal(ctx, mark)
}

// Round seals, if a trail is kept. It returns only an error that the last round did not have.
func (k *Keeper) Round(ctx context.Context) error {
	err := fault.Explain(k.seal(ctx, true))
	if err == nil {
		k.trouble.Store(nil)
		return nil
	}
	if ctx.Err() != nil {
		return nil //nolint:nilerr // a round that was cut short is no failure
	}
	if before := k.trouble.Swap(&err); before != nil && (*before).Error() == err.Error() {
		return nil
	}
	return err
}

// KeyFile is the file with the signing key. It is empty if no trail is kept. A
// copy of the book needs the same key.
func (k *Keeper) KeyFile() string {
	return k.current.Load().keyFile
}

// VerifyingKey is the public key that verifies checkpoints, proofs and receipts. It is
// empty if no trail is kept.
func (k *Keeper) VerifyingKey() string {
	if notary := k.current.Load().notary; notary != nil {
		return notary.VerifyingKey()
	}
	return ""
}

// Secret returns a key for another purpose. Every service with the key of the log has the same.
func (k *Keeper) Secret(purpose string) []byte {
	mac := hmac.New(sha256.New, k.current.Load().notary.secret)
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

// Checkpoint signs everything up to now and returns the newest checkpoint.
func (k *Keeper) Checkpoint(ctx context.Context) (string, error) {
	if err := k.seal(ctx, false); err != nil {
		return "", err
	}
	state, err := k.o.Ports.Log.State(ctx)
	if err == nil && state.Checkpoint == "" {
		err = errors.New("the log is empty: nothing was written yet")
	}
	return state.Checkpoint, err
}

// Ahead returns the file of checkpoints if its newest one is of a longer log, as after a
// backup was restored. Otherwise it returns "".
func (k *Keeper) Ahead(ctx context.Context) (file string, err error) {
	now := k.current.Load()
	if now.notary == nil {
		return "", nil
	}
	newest, known, err := now.checkpoints.Newest()
	if err != nil || newest == "" {
		return "", err
	}
	if log, err := k.o.Ports.Log.State(ctx); err != nil || log.Size >= known.Size {
		return "", err
	}
	return now.checkpoints.path, nil
}

// Prove returns a file that proves an operation, import or act, and the reversal of an operation.
// CheckFile checks it, also on another machine.
func (k *Keeper) Prove(ctx context.Context, id operation.ID) (file []byte, err error) {
	if err := k.seal(ctx, false); err != nil {
		return nil, err
	}
	find := k.o.Ports.Finder
	for _, leaf := range []func(context.Context, operation.ID) (application.Leaf, error){find.Leaf, find.Reversal} {
		found, err := leaf(ctx, id)
		if errors.Is(err, application.ErrNotFound) && file != nil {
			break // it was not reversed
		}
		if err != nil {
			return nil, err
		}
		state, err := k.o.Ports.Log.State(ctx)
		if err != nil {
			return nil, err
		}
		now := k.current.Load()
		proof, err := now.notary.Prove(&found, state, now.hashes(ctx))
		if err != nil {
			return nil, err
		}
		file = append(file, proof...)
	}
	return file, nil
}

// receiptTimeout bounds how long an answer waits for its receipt.
const receiptTimeout = time.Second

// Receipts returns what makes the value of the header Receipt, or nil if no trail
// is wanted. The value is empty while no trail is kept, if the operation has no leaf,
// or if there is an error, which failed is told: the operation is done all the same.
func (k *Keeper) Receipts(failed func(operation.ID, error)) func(context.Context, operation.ID) string {
	if !k.IsWanted() {
		return nil
	}
	return func(ctx context.Context, id operation.ID) string {
		notary := k.current.Load().notary
		if notary == nil {
			return ""
		}
		ctx, cancel := context.WithTimeout(ctx, receiptTimeout)
		defer cancel()
		var header string
		leaf, err := k.o.Ports.Finder.Leaf(ctx, id)
		if err == nil {
			header, err = notary.ReceiptHeader(&leaf)
		}
		if err != nil && !errors.Is(err, application.ErrNotFound) {
			failed(id, err)
		}
		return header
	}
}

// Rekey begins another log, which takes over all rows as they are. It uses the key in the file of
// trail.key_file, unless that is the key of the present log: then it makes one with that name, and
// keeps the old key beside it. An empty name is made up. Stop all other replicas first.
func (k *Keeper) Rekey(ctx context.Context, name string) error {
	keyFile := k.keyFile(k.o.KeyFile)
	_, err := os.Stat(keyFile)
	isThere := err == nil
	switch {
	case !k.IsWanted():
		return k.Missing()
	case k.o.KeyFile == "" && k.o.Book == "":
		return missing(NoKey)
	}
	if err := k.o.Ready(ctx); err != nil {
		return err
	}
	if old := k.current.Load().notary; !isThere || old != nil {
		if err := replaceKey(keyFile, name, old); err != nil {
			return err
		}
	}
	notary, err := LoadNotary(keyFile, false)
	if err != nil {
		return err
	}
	if err := k.o.Ports.Origin.Clear(ctx); err != nil {
		return err
	}
	k.use(notary, k.o.KeyFile)
	return k.seal(ctx, false)
}

// Check is Office.CheckTrail of package backoffice.
func (k *Keeper) Check(ctx context.Context, against []string) (c backoffice.TrailCheck, err error) {
	for _, content := range against {
		if err := CheckCheckpoints(content); err != nil {
			return c, fault.Wrap(fault.Invalid, err, "A file of earlier checkpoints has")
		}
	}
	now := k.current.Load()
	if now.notary == nil {
		if c.Reason = k.Missing().Error(); len(against) > 0 {
			return c, k.Missing()
		}
		isEmpty := true
		if k.o.Ports != application.None {
			isEmpty, err = k.o.Ports.Log.IsOf(ctx, nil)
		}
		c.IsClosed, c.IsProblem = !isEmpty, !isEmpty && now.missing != ""
		return c, err
	}
	c.Keys, c.PublicKey, c.Open = now.notary.Keys(), k.VerifyingKey(), now.notary.Open
	for i, content := range against {
		now.notary.compare(&c, fmt.Sprintf("file %d of --against", i+1), content)
	}
	switch newest, _, err := now.checkpoints.Newest(); {
	case err != nil:
		c.Warnings = append(c.Warnings, "The log was not compared with its newest checkpoint outside the database: "+err.Error())
	case newest != "":
		now.notary.compare(&c, now.checkpoints.path, newest)
	case len(against) == 0:
		c.Warnings = append(c.Warnings, "The log was compared with no checkpoint outside the database: "+now.checkpoints.path+" has none.")
	}
	return c, nil
}
