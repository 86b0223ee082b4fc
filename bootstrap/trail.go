package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/opsapi"
	adapter "bankingapi/adapters/trail"
	"bankingapi/application/backoffice"
	"bankingapi/application/store"
	"bankingapi/application/trail"
	"bankingapi/domain/fault"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	leaves "bankingapi/domain/trail"
)

// keptTrail is the trail of a service. Its ports are nil if it keeps none.
type keptTrail struct {
	ports       *trail.Ports
	notary      *adapter.Notary
	checkpoints *adapter.Checkpoints
	// missing says why no trail is kept although trail.enabled is true, and what
	// to do. It is empty otherwise.
	missing string
	// wanted says that trail.enabled is true and that the storage can keep one.
	wanted bool
	log    trail.Log // nil if the storage keeps none

	mu     sync.Mutex // guards the sealer
	sealer *trail.Sealer
	// trouble is why the last round did not seal. It has no mutex in common with
	// the sealer: a round may wait for the database, and a probe must not.
	trouble atomic.Pointer[string]
}

// newTrail loads the key and lets the storage write leaves from its first
// transaction on. It writes none with another key than that of the log: they
// would look forged.
func newTrail(settings Settings, s *store.Store, o *options, observe *observer) (*keptTrail, error) {
	k := new(keptTrail)
	if !settings.Trail.Enabled || s.Trail == nil || o.sandbox != nil {
		return k, nil
	}
	k.wanted, k.log = true, s.Trail.Log
	notary, missing, err := trailNotary(settings, s)
	if err != nil {
		return nil, err
	}
	if k.missing = missing; missing != "" {
		level := zap.WarnLevel
		if missing == noTrailKey && settings.Trail.Interval == 0 { // a command need not repeat what the service has said
			level = zap.InfoLevel
		}
		observe.logger.Log(level, "no trail is kept", zap.String("reason", missing))
		return k, nil
	}
	k.ports, k.notary = s.Trail, notary
	k.checkpoints = adapter.NewCheckpoints(trailFile(settings, s, "checkpoints"), notary.VerifyingKey())
	k.sealer = trail.NewSealer(*s.Trail, notary, k.checkpoints)
	s.Trail.Writer.Record(notary.Keys(), newID)
	return k, nil
}

// Why no trail is kept.
const (
	noTrailKey = "There is no trail, because trail.key_file is empty. Make a key with `bankingapi trail keygen`, give its file to" +
		" every replica as trail.key_file, or set trail.enabled to false."
	lostTrailKey = "The book has a trail, and the key of its log is missing. Set trail.key_file to the file with that key" +
		" (trail.key beside the original book), or set trail.enabled to false."
	otherTrailKey = "The key of %s is not that of the log of this book. Set trail.key_file to the file with the key of" +
		" this log (trail.key beside the original book), or set trail.enabled to false."
)

// trailNotary loads the key of the log. It makes one for a log that is empty.
// missing says why there is none.
func trailNotary(settings Settings, s *store.Store) (_ *adapter.Notary, missing string, err error) {
	file := settings.Trail.KeyFile
	ctx, cancel := context.WithTimeout(context.Background(), trailTimeout)
	defer cancel()
	if file == "" && s.HasDataFile {
		file = trailFile(settings, s, "key")
	}
	if _, err := os.Stat(file); settings.Trail.KeyFile == "" && errors.Is(err, fs.ErrNotExist) {
		switch isEmpty, err := s.Trail.Log.IsOf(ctx, nil); {
		case err == nil && !isEmpty: // a book without tables has no log yet
			return nil, lostTrailKey, nil
		case file == "":
			return nil, noTrailKey, nil
		}
	}
	notary, err := adapter.LoadNotary(file, settings.Trail.KeyFile == "")
	if err != nil {
		return nil, "", err
	}
	// A storage that does not answer yet has the key that it had before: if not,
	// nothing is sealed, and verify says so.
	if own, err := s.Trail.Log.IsOf(ctx, notary.Keys()); err == nil && !own {
		return nil, fmt.Sprintf(otherTrailKey, file), nil
	}
	return notary, "", nil
}

// trailFile is a file of the trail in the data folder. Two books in one folder
// have different logs, so that a file whose name is not the default one gives its
// name to these files: other.db has other.trail.key.
func trailFile(settings Settings, s *store.Store, kind string) string {
	name := "trail." + kind
	if book := strings.TrimSuffix(filepath.Base(string(settings.Storage.DSN)), ".db"); s.HasDataFile && book != "bankingapi" {
		name = book + "." + name
	}
	return filepath.Join(s.DataFolder, name)
}

// TrailKeyFile is the file with the signing key of the trail. It is empty if the
// service keeps no trail. A copy of the book needs the same key.
func (a *App) TrailKeyFile() string {
	if a.trail.ports == nil {
		return ""
	}
	if a.settings.Trail.KeyFile != "" {
		return a.settings.Trail.KeyFile
	}
	return trailFile(a.settings, a.store, "key")
}

// trailTimeout bounds how long the start waits for the log.
const trailTimeout = 3 * time.Second

// check is the check of readiness: warnings do not stop the service.
func (k *keptTrail) check(context.Context) error {
	if k.missing != "" {
		return opsapi.Warnings{k.missing}
	}
	if trouble := k.trouble.Load(); trouble != nil {
		return opsapi.Warnings{"The trail is not sealed: " + *trouble}
	}
	return nil
}

func (k *keptTrail) seal(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sealer.Seal(ctx)
}

// sealTrail seals in the background if the settings say so.
func sealTrail(lc fx.Lifecycle, settings Settings, k *keptTrail, s *store.Store, observe *observer) {
	if k.ports == nil || settings.Trail.Interval == 0 {
		return
	}
	report := func(err error) {
		if err == nil {
			k.trouble.Store(nil)
			return
		}
		text := fault.Explain(err).Error()
		if before := k.trouble.Swap(&text); before == nil || *before != text {
			observe.logger.Warn("the trail could not be sealed: it waits", zap.String("error", text))
		}
	}
	inBackground(lc, func(ctx context.Context) {
		for wait(ctx, settings.Trail.Interval); ctx.Err() == nil; wait(ctx, settings.Trail.Interval) {
			err := s.Schema.Require(ctx)
			if err == nil {
				err = k.seal(ctx)
			}
			if ctx.Err() == nil {
				report(err)
			}
		}
	})
}

// errNone is the error of every use of a trail that is not kept.
func (k *keptTrail) errNone() error {
	if k.missing != "" {
		return errors.New(k.missing)
	}
	return errors.New("this service keeps no trail: see trail.enabled")
}

// trailUsable returns an error if the trail cannot be used. Call it before any
// work on the trail.
func (a *App) trailUsable(ctx context.Context) error {
	if a.trail.ports == nil {
		return a.trail.errNone()
	}
	return a.usable(ctx)
}

// TrailKey is the public key that verifies the checkpoints, proofs and receipts
// of the service.
func (a *App) TrailKey() (string, error) {
	if a.trail.ports == nil {
		return "", a.trail.errNone()
	}
	return a.trail.notary.VerifyingKey(), nil
}

// TrailCheckpoint signs everything up to now and returns the newest checkpoint.
func (a *App) TrailCheckpoint(ctx context.Context) (string, error) {
	if err := a.trailUsable(ctx); err != nil {
		return "", err
	}
	if err := a.trail.seal(ctx); err != nil {
		return "", fault.Explain(err)
	}
	state, err := a.trail.ports.Log.State(ctx)
	if err == nil && state.Checkpoint == "" {
		err = errors.New("the log is empty: nothing was written yet")
	}
	return state.Checkpoint, fault.Explain(err)
}

// TrailProof returns a file that proves an operation, import or act. It is
// checked with CheckTrailProof, also on another machine.
func (a *App) TrailProof(ctx context.Context, operationID string) ([]byte, error) {
	id, err := operation.ParseID(operationID)
	if err != nil {
		return nil, fmt.Errorf("%q is not the ID of an operation", operationID)
	}
	if err := a.trailUsable(ctx); err != nil {
		return nil, err
	}
	proof, err := a.trail.prove(ctx, id)
	return proof, fault.Explain(err)
}

// TrailProofOf is TrailProof for the operation of a CallerId.
func (a *App) TrailProofOf(ctx context.Context, subscription, callerID string) ([]byte, error) {
	if err := a.trailUsable(ctx); err != nil {
		return nil, err
	}
	for _, name := range operation.Names {
		key := idempotency.Key{CallerID: callerID, Subscription: subscription, Operation: name}
		found, err := a.store.Backoffice.Lookups.OperationOf(ctx, key)
		if errors.Is(err, backoffice.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fault.Explain(err)
		}
		proof, err := a.trail.prove(ctx, found.Record.ID)
		return proof, fault.Explain(err)
	}
	return nil, errors.New("this subscription has not used this CallerId")
}

func (k *keptTrail) prove(ctx context.Context, id operation.ID) ([]byte, error) {
	if err := k.seal(ctx); err != nil {
		return nil, err
	}
	leaf, err := k.ports.Finder.Leaf(ctx, id)
	if err != nil {
		return nil, err
	}
	state, err := k.ports.Log.State(ctx)
	if err != nil {
		return nil, err
	}
	return k.notary.Prove(&leaf, state, func(indexes []int64) ([]leaves.Hash, error) {
		return k.ports.Log.Hashes(ctx, indexes)
	})
}

// receiptTimeout bounds how long an answer waits for its receipt.
const receiptTimeout = time.Second

// receipts returns what makes receipts, or nil if no trail is kept. A receipt
// that cannot be made is empty: the operation is done all the same.
func (k *keptTrail) receipts(observe *observer) func(context.Context, operation.ID) string {
	if k.ports == nil {
		return nil
	}
	return func(ctx context.Context, id operation.ID) string {
		ctx, cancel := context.WithTimeout(ctx, receiptTimeout)
		defer cancel()
		leaf, err := k.ports.Finder.Leaf(ctx, id)
		header := ""
		if err == nil {
			header, err = k.notary.ReceiptHeader(&leaf)
		}
		if err != nil && !errors.Is(err, trail.ErrNotFound) {
			observe.logger.Warn("an answer has no receipt", zap.Stringer("operation_id", id), zap.Error(err))
		}
		return header
	}
}

// CheckTrailProof checks a proof, or a receipt, with the public key of the
// service that made it. It needs no database. It returns what is proved, a line
// for each fact.
func CheckTrailProof(file []byte, key string) (facts []string, err error) {
	return adapter.CheckFile(file, key)
}

// NewTrailKey makes a key for a trail. The signing key belongs into the file of
// trail.key_file, the verifying key is public. name is the origin of the log,
// such as bank.example/log.
func NewTrailKey(name string) (signing, verifying string, err error) {
	if name == "" || strings.ContainsAny(name, " +\t\r\n") {
		return "", "", errors.New("the name of a trail has no spaces and no plus signs")
	}
	return adapter.GenerateKeys(name)
}

// verifier also checks the trail, against its newest checkpoint outside the
// database and those that are given.
func (a *App) verifier(ctx context.Context, against []string) (*backoffice.Verifier, error) {
	return a.verifierOn(ctx, a.office.Verifier, against)
}

// verifierOn is verifier on other connections.
func (a *App) verifierOn(ctx context.Context, v *backoffice.Verifier, against []string) (*backoffice.Verifier, error) {
	k := a.trail
	if k.ports == nil {
		if len(against) > 0 {
			return nil, k.errNone()
		}
		if k.missing != "" {
			if isEmpty, err := k.log.IsOf(ctx, nil); err != nil || !isEmpty {
				return v.WithTrail(backoffice.TrailCheck{Problem: k.missing}), err
			}
		}
		return v, nil
	}
	newest, err := k.checkpoints.Newest()
	if err != nil && !errors.Is(err, os.ErrPermission) {
		return nil, fault.Wrap(fault.Internal, err, "the file of checkpoints cannot be read")
	}
	if newest != "" {
		against = append(against, newest)
	}
	return v.WithTrail(backoffice.TrailCheck{Keys: k.notary.Keys(), Against: against, Open: k.notary.Open}), nil
}
