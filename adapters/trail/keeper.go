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
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"bankingapi/application/backoffice"
	application "bankingapi/application/trail"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// Options configure a Keeper.
type Options struct {
	// Ports are the ports of the storage. application.None means that it cannot keep a trail.
	Ports *application.Ports
	// Wanted is false if the operator has disabled the trail.
	Wanted bool
	// NewID makes the IDs of batches.
	NewID func() operation.ID
	// Ready returns an error while the storage cannot be used.
	Ready func(ctx context.Context) error
	// IsNew reports whether the storage has no tables yet, so that it has no log either. nil
	// means that it always has its tables.
	IsNew func(ctx context.Context) (bool, error)
	// AllowUnsafe lets a service whose trail is disabled use a book that has a log.
	AllowUnsafe bool
	// KeyFile has the signing key. If it is empty and the book is a file, the key is in a file
	// beside the book. The keeper makes this key if the log is empty.
	KeyFile string
	// Folder is the data folder. Book is the name of the book's file in this folder, without
	// the extension. It is empty if the book is not a file.
	Folder, Book string
	// AsItIs prevents the keeper from making a key.
	AsItIs bool
}

// Keeper keeps the trail of a service, or says why it keeps none. It is safe for concurrent
// use.
type Keeper struct {
	o       Options
	current atomic.Pointer[kept]
	// trouble is the error of the last Round. It is nil if the round succeeded.
	trouble atomic.Pointer[error]
}

// missing is the error of a trail that cannot be kept. It says why, and what to do.
type missing string

func (m missing) Error() string { return string(m) }

// startTimeout bounds how long Load and Reload wait for the log.
const startTimeout = 3 * time.Second

// NoKey is the reason why no trail is kept if no key was configured.
const NoKey = "There is no trail, because trail.key_file is empty. Make a key with `bankingapi trail keygen`, give its file to" +
	" every replica as trail.key_file, or set trail.enabled to false."

// thatKey says where the key of a log may be.
const thatKey = "trail.key beside the original book; if `bankingapi trail rekey` was killed, the file beside the key whose name ends" +
	" in eight hexadecimal digits"

const (
	lostKey = "The book has a trail, and the key of its log is missing. Set trail.key_file to the file with that key" +
		" (" + thatKey + "), or begin another log with `bankingapi trail rekey`."
	damagedKey = ": the file is empty or damaged. Put the key of the log of this book there (" + thatKey +
		"; or a copy of it), or begin another log with `bankingapi trail rekey`."
	makeKey  = ": make one with `bankingapi trail keygen`"
	otherKey = "The key of %s is not that of the log of this book. Set trail.key_file to the file with the key of" +
		" this log (" + thatKey + "), or begin another log with `bankingapi trail rekey`."
	notAsked = "The book could not be asked whether it has a trail, so no key was made. The service asks again."
	noKeyYet = "The trail has not begun: the service makes its key."
	notKept  = "this service keeps no trail: see trail.enabled"
	disabled = "The book has a trail, and trail.enabled is false. The log would lack the operations of this service," +
		" and `bankingapi verify` would report each of them. Set trail.enabled to true."
)

// New returns a Keeper. It keeps no trail before Load. New opens no file and does not call the
// storage.
func New(o Options) *Keeper {
	k := &Keeper{o: o}
	k.current.Store(new(kept))
	return k
}

// Load reads the key or makes it. From the next transaction on, the storage writes leaves. Call
// it once, before the first transaction. If the key is not the key of the log, no leaves are
// written: they would look forged. Missing returns what is missing.
func (k *Keeper) Load(ctx context.Context) error {
	err := k.Reload(ctx, k.o.KeyFile)
	if why, ok := errors.AsType[missing](err); ok {
		k.current.Store(&kept{missing: why})
		return nil
	}
	return err
}

// Reload reads the key again. keyFile is Options.KeyFile. A service that kept no trail because
// the key was missing keeps one from now on. It returns an error if the key is missing, or if
// the file has another key than the log: then the service continues with its current key. It
// does nothing if the trail is disabled.
func (k *Keeper) Reload(ctx context.Context, keyFile string) error {
	if !k.IsWanted() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	notary, err := k.load(ctx, keyFile)
	if err != nil || k.Missing() == nil {
		return err
	}
	current := k.use(notary, keyFile)
	current.mu.Lock()
	defer current.mu.Unlock()
	_ = current.follow(ctx) // if the storage does not answer yet, the first round follows the log
	return nil
}

// use starts to keep the trail with a key.
func (k *Keeper) use(notary *Notary, keyFile string) *kept {
	checkpoints := NewCheckpoints(k.o.file("checkpoints"), notary.VerifyingKey())
	current := &kept{ports: k.o.Ports, notary: notary, keyFile: k.o.keyFile(keyFile), checkpoints: checkpoints}
	k.current.Store(current)
	k.o.Ports.Writer.Use(notary.Keys(), k.o.NewID)
	return current
}

// keyFile returns the file with the key. named is the file in the settings, or empty.
func (o *Options) keyFile(named string) string { return cmp.Or(named, o.file("key")) }

// load loads the key of the log. It makes a key for an empty log. It returns an error of type
// missing if there is no key.
func (k *Keeper) load(ctx context.Context, named string) (*Notary, error) {
	_, err := os.Stat(k.o.keyFile(named))
	canCreate := named == "" && k.o.Book != ""
	if named == "" && (!canCreate || errors.Is(err, fs.ErrNotExist)) {
		switch isEmpty, err := k.o.isEmpty(ctx); {
		case err != nil:
			return nil, missing(notAsked)
		case !isEmpty:
			return nil, missing(lostKey)
		case !canCreate:
			return nil, missing(NoKey)
		case k.o.AsItIs:
			return nil, missing(noKeyYet)
		}
	}
	notary, err := LoadNotary(k.o.keyFile(named), canCreate)
	if errors.Is(err, errNoKey) {
		return nil, fmt.Errorf("%w%s", err, k.adviceForNoKey(ctx))
	}
	if err != nil {
		return nil, err
	}
	isOther, err := k.isOther(ctx, notary)
	if err != nil {
		// The storage does not answer yet. Assume that its log has this key: Ready asks again
		// before the first transaction.
		return notary, nil //nolint:nilerr // Ready returns it if it lasts
	}
	if isOther {
		return nil, missing(fmt.Sprintf(otherKey, k.o.keyFile(named)))
	}
	return notary, nil
}

// adviceForNoKey says what to do if the file of the key has something else. A new key helps only a
// book without a log.
func (k *Keeper) adviceForNoKey(ctx context.Context) string {
	isEmpty, err := k.o.isEmpty(ctx)
	if err != nil || !isEmpty {
		return damagedKey
	}
	return makeKey
}

// isEmpty reports whether the book has no log.
func (o *Options) isEmpty(ctx context.Context) (bool, error) {
	if o.IsNew != nil {
		isNew, err := o.IsNew(ctx)
		if err != nil || isNew {
			return isNew, err
		}
	}
	return o.Ports.Log.IsOf(ctx, nil)
}

// isOther reports whether the log of the book has another key. Two services that began the log at
// the same moment both have batches in it. Then it is the log of the service that signed it.
func (k *Keeper) isOther(ctx context.Context, notary *Notary) (bool, error) {
	state, err := k.o.Ports.Log.State(ctx)
	if err != nil {
		return false, err
	}
	if state.Checkpoint != "" && notary.isOthers(state.Checkpoint) {
		return true, nil
	}
	if _, err := notary.Open(state.Checkpoint); err == nil {
		return false, nil
	}
	isOurs, err := k.o.Ports.Log.IsOf(ctx, notary.Keys()) // the checkpoint is empty, or was changed
	return !isOurs, err
}

// Ready returns an error if this service must not change the book: the book has a log, and the
// service has not its key, or does not keep the log. Otherwise it returns warnings: why no trail
// is kept, or why it is not sealed. An error without a cause is a finding. Any other error means
// that the storage does not answer.
func (k *Keeper) Ready(ctx context.Context) (warnings []string, err error) {
	if k.o.Ports == application.None {
		return nil, nil
	}
	current := k.current.Load()
	if current.missing == notAsked {
		err := k.Load(ctx)
		if err != nil {
			return nil, err
		}
		current = k.current.Load()
	}
	if current.notary != nil {
		isOther, err := k.isOther(ctx, current.notary)
		if err != nil {
			return k.problems(), err
		}
		if isOther {
			return k.problems(), fault.New(fault.Unavailable, fmt.Sprintf(otherKey, current.keyFile))
		}
		return k.problems(), nil
	}
	isEmpty, err := k.o.isEmpty(ctx)
	if err != nil || isEmpty {
		return k.problems(), err
	}
	switch {
	case !k.o.Wanted && k.o.AllowUnsafe:
		return []string{disabled}, nil
	case !k.o.Wanted:
		return nil, fault.New(fault.Unavailable, disabled+" To run this service all the same, set storage.allow_unsafe.")
	case current.missing == NoKey || current.missing == noKeyYet || current.missing == notAsked: // another service has begun the log
		return nil, fault.New(fault.Unavailable, lostKey)
	default:
		return nil, fault.New(fault.Unavailable, string(current.missing))
	}
}

func (k *Keeper) problems() []string {
	problem := k.Problem()
	if problem != "" {
		return []string{problem}
	}
	return nil
}

// file returns the name of a file of the trail in the data folder. Two books in one folder have
// different logs. So a book with another name than the default puts its name before these
// files: other.db has other.trail.key.
func (o *Options) file(kind string) string {
	name := "trail." + kind
	if o.Book != "" && o.Book != "bankingapi" {
		name = o.Book + "." + name
	}
	return filepath.Join(o.Folder, name)
}

// Missing returns why no trail is kept, or nil if the trail is kept.
func (k *Keeper) Missing() error {
	switch current := k.current.Load(); {
	case current.notary != nil:
		return nil
	case current.missing != "":
		return current.missing
	}
	return errors.New(notKept)
}

// IsWanted reports whether a trail is kept, or would be kept if nothing was missing.
func (k *Keeper) IsWanted() bool { return k.o.Wanted && k.o.Ports != application.None }

// Problem says what is wrong with the trail: why it is not kept, or why it is not sealed. It is
// empty if there is no problem. It leaves out errors of the database, because they name hosts.
func (k *Keeper) Problem() string {
	trouble := k.trouble.Load()
	if trouble == nil {
		return string(k.current.Load().missing)
	}
	text := (*trouble).Error()
	if _, isForeign := errors.AsType[*foreignError](*trouble); isForeign {
		return sentence(text)
	}
	if known, ok := errors.AsType[*fault.Error](*trouble); ok && known.Cause != nil {
		if _, isFlaw := errors.AsType[application.Flaw](known); isFlaw {
			text = known.Cause.Error()
		} else if text = known.Detail; !strings.HasSuffix(text, ".") {
			text = "See the log."
		}
	}
	return sentence("The trail is not sealed: " + text)
}

// sentence ends a text with a period, because a list of problems puts other sentences after it.
func sentence(text string) string { return strings.TrimSuffix(text, ".") + "." }

// beginTimeout bounds how long Begin waits.
const beginTimeout = 2 * time.Second

// Begin seals the first round before requests arrive. Then, if a service runs on a copy of the
// book, its batches are genuine only in its own log. If Begin fails, Round tries again.
func (k *Keeper) Begin(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, beginTimeout)
	defer cancel()
	_ = k.seal(ctx, true)
}

// seal signs everything up to now, if a trail is kept. Without mark, it ignores foreign
// batches.
func (k *Keeper) seal(ctx context.Context, mark bool) error {
	current := k.current.Load()
	if current.notary == nil {
		return nil
	}
	if err := k.o.Ready(ctx); err != nil {
		return err
	}
	err := current.seal(ctx, mark)
	if _, isForeign := errors.AsType[*foreignError](err); isForeign && !mark {
		return nil
	}
	return err
}

// Round seals, if a trail is kept.
func (k *Keeper) Round(ctx context.Context) error {
	err := fault.Explain(k.seal(ctx, true))
	if err == nil {
		k.trouble.Store(nil)
		return nil
	}
	if ctx.Err() != nil {
		return nil //nolint:nilerr // ignore a round that was cancelled
	}
	k.trouble.Store(&err)
	return err
}

// KeyFile returns the file with the signing key, or "" if no trail is kept. A copy of the book
// needs the same key.
func (k *Keeper) KeyFile() string {
	return k.current.Load().keyFile
}

// VerifyingKey returns the public key for checkpoints, proofs and receipts, or "" without a
// trail.
func (k *Keeper) VerifyingKey() string {
	notary := k.current.Load().notary
	if notary != nil {
		return notary.VerifyingKey()
	}
	return ""
}

// Secret derives a key for another purpose. All services with the key of the log get the same.
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
	if err != nil {
		return "", err
	}
	if state.Checkpoint == "" {
		return "", errors.New("the log is empty: nothing was written yet")
	}
	return state.Checkpoint, nil
}

// Ahead returns the file of checkpoints if its newest one is from a longer log, for example
// after a backup was restored. Otherwise it returns "".
func (k *Keeper) Ahead(ctx context.Context) (file string, err error) {
	current := k.current.Load()
	if current.notary == nil {
		return "", nil
	}
	newest, known, err := current.checkpoints.Newest()
	if err != nil || newest == "" {
		return "", err
	}
	if log, err := k.o.Ports.Log.State(ctx); err != nil || log.Size >= known.Size {
		return "", err
	}
	return current.checkpoints.path, nil
}

// WithoutNewer returns the checkpoints of a file, without those of this log that have more
// batches than the log has now, and the number of these. A restored log is shorter than they say,
// and nobody has changed it.
func (k *Keeper) WithoutNewer(ctx context.Context, content string) (kept string, newer int, err error) {
	current := k.current.Load()
	if current.notary == nil {
		return content, 0, nil
	}
	log, err := k.o.Ports.Log.State(ctx)
	if err != nil {
		return "", 0, err
	}
	var older []string
	for _, checkpoint := range splitCheckpoints(content) {
		opened, err := OpenCheckpoint(checkpoint, k.VerifyingKey())
		if err == nil && opened.Size > log.Size {
			newer++
			continue
		}
		older = append(older, checkpoint)
	}
	return strings.Join(older, "\n"), newer, nil
}

// Prove returns a file that proves an operation, with its end and its reversal, or an act.
// CheckFile can check the file on any machine.
func (k *Keeper) Prove(ctx context.Context, id operation.ID) (file []byte, err error) {
	if err := k.seal(ctx, false); err != nil {
		return nil, err
	}
	leaves, err := k.o.Ports.Finder.Leaves(ctx, id)
	if err != nil {
		return nil, err
	}
	state, err := k.o.Ports.Log.State(ctx)
	if err != nil {
		return nil, err
	}
	current := k.current.Load()
	for i := range leaves {
		proof, err := current.notary.Prove(&leaves[i], state, current.hashes(ctx))
		if err != nil {
			return nil, err
		}
		file = append(file, proof...)
	}
	return file, nil
}

// receiptTimeout bounds how long a response waits for its receipt.
const receiptTimeout = time.Second

// Receipts returns a function that makes the value of the header Receipt, or nil if no trail is
// wanted. The value is empty while no trail is kept, and if the operation has no leaf. After an
// error it calls failed and the value is empty. The operation is done in any case.
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
		leaves, err := k.o.Ports.Finder.Leaves(ctx, id)
		if errors.Is(err, application.ErrNotFound) {
			return ""
		}
		if err != nil {
			failed(id, err)
			return ""
		}
		header, err := notary.ReceiptHeader(answerOf(leaves))
		if err != nil {
			failed(id, err)
			return ""
		}
		return header
	}
}

// answerOf returns the leaf with the State that a repeat of the operation is answered with: that of
// its end if it was recorded first and has ended, otherwise the first one. A reversal does not
// change the answer. leaves are those of Finder.
func answerOf(leaves []application.Leaf) *application.Leaf {
	if len(leaves) == 1 {
		return &leaves[0]
	}
	first, err := proof.Decode(leaves[0].Content)
	if err != nil {
		return &leaves[0]
	}
	if first.Groups[0].Value("State") == strconv.Itoa(int(operation.Recorded)) {
		return &leaves[1] // nothing is reversed before it has ended
	}
	return &leaves[0]
}

// TakeIn writes leaves of the rows that a wrong start left outside the log, as the act that act
// returns for them (see application.Origin), and seals them. It returns the names of the rows, also if
// they could not be sealed. It changes nothing if it is known before that they cannot be.
func (k *Keeper) TakeIn(ctx context.Context, act func(names []string) audit.Act) (names []string, err error) {
	err = k.Missing()
	if err != nil {
		return nil, err
	}
	err = k.seal(ctx, false)
	if err != nil {
		return nil, err
	}
	err = k.current.Load().canSeal(ctx)
	if err != nil {
		return nil, err
	}
	names, err = k.o.Ports.Origin.TakeIn(ctx, act)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	err = k.seal(ctx, false)
	if err != nil {
		return names, fmt.Errorf("the rows were taken into the log, but are not in a checkpoint yet: %w", err)
	}
	return names, nil
}

// Last returns the newest checkpoint of the log. It is empty if there is none yet. With the key, it signs
// everything up to now before: the checkpoint is also returned if this failed.
func (k *Keeper) Last(ctx context.Context) (checkpoint string, err error) {
	sealed := k.seal(ctx, false)
	state, err := k.o.Ports.Log.State(ctx)
	return state.Checkpoint, errors.Join(sealed, err)
}

// IsEmpty reports whether the log has no checkpoint yet.
func (k *Keeper) IsEmpty(ctx context.Context) (bool, error) {
	state, err := k.o.Ports.Log.State(ctx)
	return state.Size == 0 && state.Checkpoint == "", err
}

// Rekey begins another log, which adopts all existing rows. It uses the key in trail.key_file.
// If that is the key of the current log, it makes a new key with this name and keeps the old
// key beside it. If name is empty, it makes up a name. The log ends together with the act that act
// returns for the new verifying key. Stop all other replicas first.
func (k *Keeper) Rekey(ctx context.Context, name string, act func(verifyingKey string) audit.Act) error {
	keyFile := k.o.keyFile(k.o.KeyFile)
	_, err := os.Stat(keyFile)
	exists := err == nil
	switch {
	case !k.IsWanted():
		return k.Missing()
	case k.o.KeyFile == "" && k.o.Book == "":
		return missing(NoKey)
	}
	if err := k.o.Ready(ctx); err != nil {
		return err
	}
	var notary *Notary
	old := k.current.Load().notary
	if !exists || old != nil {
		notary, err = replaceKey(keyFile, name, old)
	} else {
		notary, err = LoadNotary(keyFile, false)
	}
	if err != nil {
		return err
	}
	err = k.o.Ports.Origin.Clear(ctx, act(notary.VerifyingKey()))
	if err != nil && old != nil {
		return keepOldKey(keyFile, old, err)
	}
	if err != nil {
		return err
	}
	k.use(notary, k.o.KeyFile)
	return k.seal(ctx, false)
}

// Complete returns an error if something has changed the book that this service did not make for this
// log, such as a command that knew the key of the log before.
func (k *Keeper) Complete(ctx context.Context) error {
	err := k.Missing()
	if err != nil {
		return err
	}
	return k.current.Load().seal(ctx, false)
}

// keepOldKey puts the old key back if the log did not begin anew. If this is not known, it adds to
// the error where the old key is.
func keepOldKey(keyFile string, old *Notary, err error) error {
	if fault.KindOf(err) == fault.Indeterminate {
		return fmt.Errorf("%w. The old key is in %s: move it to %s if the service says that its key is not that of the log",
			fault.Explain(err), oldKeyFile(keyFile, old), keyFile)
	}
	return errors.Join(err, os.Rename(oldKeyFile(keyFile, old), keyFile))
}

// Check implements Office.CheckTrail of package backoffice.
func (k *Keeper) Check(ctx context.Context, against []string) (c backoffice.TrailCheck, err error) {
	for _, content := range against {
		if err := CheckCheckpoints(content); err != nil {
			return c, fault.Wrap(fault.Invalid, err, "A file of earlier checkpoints has")
		}
	}
	current := k.current.Load()
	if current.notary == nil {
		c.Reason = k.Missing().Error()
		if len(against) > 0 {
			return c, k.Missing()
		}
		isEmpty := true
		if k.o.Ports != application.None {
			isEmpty, err = k.o.Ports.Log.IsOf(ctx, nil)
		}
		c.IsClosed = !isEmpty
		c.IsProblem = !isEmpty && current.missing != ""
		return c, err
	}
	c.Keys = current.notary.Keys()
	c.PublicKey = k.VerifyingKey()
	c.Open = current.notary.Open
	for i, content := range against {
		current.notary.compare(&c, fmt.Sprintf("file %d of --against", i+1), content)
	}
	switch newest, _, err := current.checkpoints.Newest(); {
	case err != nil:
		c.Warnings = append(c.Warnings, "The log was not compared with its newest checkpoint outside the database: "+err.Error())
	case newest != "":
		current.notary.compare(&c, current.checkpoints.path, newest)
	case len(against) == 0:
		c.Warnings = append(c.Warnings, "The log was compared with no checkpoint outside the database: "+current.checkpoints.path+" has none.")
	}
	return c, nil
}
