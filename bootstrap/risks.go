package bootstrap

import (
	"context"
	"sync"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/opsapi"
	"bankingapi/adapters/trail"
	"bankingapi/application/store"
	"bankingapi/domain/fault"
)

// checkRisks returns nil if the storage keeps what it acknowledges,
// opsapi.Warnings for risks that do not stop the service, and another error for
// those that do.
func checkRisks(ctx context.Context, s *store.Store, allowUnsafe bool) error {
	risks, err := s.Risks(ctx)
	if err != nil {
		return err
	}
	var warnings opsapi.Warnings
	for _, r := range risks {
		if r.Unsafe && !allowUnsafe {
			return fault.New(fault.Unavailable, r.Detail+" To run the service all the same, set storage.allow_unsafe.")
		}
		warnings = append(warnings, r.Detail)
	}
	if len(warnings) == 0 {
		return nil
	}
	return warnings
}

// tellRisks logs the risks of the storage in the background, from the start to
// the stop at most.
func tellRisks(lc fx.Lifecycle, s *store.Store, logger *zap.Logger) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	lc.Append(fx.StartStopHook(func() {
		running.Go(func() { logRisks(ctx, s, logger) })
	}, func() {
		stop()
		running.Wait()
	}))
}

// risksEvery is how often a database that cannot be asked is asked again.
const risksEvery = 5 * time.Second

// logRisks logs the risks of the storage once it answers, or until ctx ends.
func logRisks(ctx context.Context, s *store.Store, logger *zap.Logger) {
	for ctx.Err() == nil {
		asked, cancel := context.WithTimeout(ctx, risksEvery)
		risks, err := s.Risks(asked)
		cancel()
		if err == nil {
			for _, r := range risks {
				logger.Warn("the database may lose data", zap.String("risk", r.Detail))
			}
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(risksEvery):
		}
	}
}

// Risks asks the database of the settings for what may lose data, or leaves no
// trail, in sentences for people. It changes nothing, and asks nothing of SQLite, whose file is
// made only when it is used.
func Risks(ctx context.Context, settings Settings, all ...Option) (sentences []string, err error) {
	if settings.Storage.Driver == SQLite {
		return nil, nil
	}
	err = withStore(settings, all, func(s *store.Store) error {
		if settings.Trail.Enabled && settings.Trail.KeyFile == "" && s.Trail != nil && !s.HasDataFile {
			sentences = append(sentences, trail.NoKey)
		}
		risks, err := s.Risks(ctx)
		for _, r := range risks {
			sentences = append(sentences, r.Detail)
		}
		return err
	})
	return sentences, err
}
