package bootstrap

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/trail"
	"bankingapi/application/store"
	"bankingapi/domain/operation"
)

// keepTrail lets the storage write the trail of the settings.
func keepTrail(settings Settings, s *store.Store, o *options) (*trail.Keeper, error) {
	book := ""
	if s.HasDataFile {
		book = strings.TrimSuffix(filepath.Base(string(settings.Storage.DSN)), ".db")
	}
	return trail.Keep(trail.Options{
		Ports: s.Trail, Wanted: settings.Trail.Enabled && o.sandbox == nil, NewID: newID, Ready: s.Schema.Require,
		KeyFile: settings.Trail.KeyFile, Folder: s.DataFolder, Book: book,
	})
}

// newTrail seals in the background if the settings say so.
func newTrail(lc fx.Lifecycle, settings Settings, s *store.Store, o *options, observe *observer) (*trail.Keeper, error) {
	k, err := keepTrail(settings, s, o)
	switch {
	case err != nil || !k.IsWanted():
	case k.Kept() != nil:
		level := zap.WarnLevel
		if k.Problem() == trail.NoKey && settings.Trail.Interval == 0 { // a command need not repeat what the service has said
			level = zap.InfoLevel
		}
		observe.logger.Log(level, "no trail is kept", zap.String("reason", k.Problem()))
	case settings.Trail.Interval > 0:
		inBackground(lc, func(ctx context.Context) {
			k.Run(ctx, settings.Trail.Interval, func(err error) {
				observe.logger.Warn("the trail could not be sealed: it waits", zap.Error(err))
			})
		})
	}
	return k, err
}

// receipts returns what makes receipts, or nil if no trail is kept.
func receipts(k *trail.Keeper, observe *observer) func(context.Context, operation.ID) string {
	if k.Kept() != nil {
		return nil
	}
	return func(ctx context.Context, id operation.ID) string {
		receipt, err := k.Receipt(ctx, id)
		if err != nil {
			observe.logger.Warn("an answer has no receipt", zap.Stringer("operation_id", id), zap.Error(err))
		}
		return receipt
	}
}

// Trail returns the keeper of the trail. The error says why no trail is kept.
func (a *App) Trail() (*trail.Keeper, error) { return a.trail, a.trail.Kept() }

// CheckTrailProof checks a proof, or a receipt, with the public key of the
// service that made it. It needs no database. It returns what is proved, a line
// for each fact.
func CheckTrailProof(file []byte, key string) (facts []string, err error) {
	return trail.CheckFile(file, key)
}

// NewTrailKey makes a key for a trail. The signing key belongs into the file of
// trail.key_file, the verifying key is public. name is the origin of the log,
// such as bank.example/log.
func NewTrailKey(name string) (signing, verifying string, err error) {
	if name == "" || strings.ContainsAny(name, " +\t\r\n") {
		return "", "", errors.New("the name of a trail has no spaces and no plus signs")
	}
	return trail.GenerateKeys(name)
}
