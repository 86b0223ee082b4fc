package bootstrap

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// A chore is done at the start, unless it waits, and in each interval. An error is told,
// and the chore goes on. Of the rounds that a long one misses, one is made up for.
func TestRoundsOfAChore(t *testing.T) {
	t.Parallel()
	const interval = 15 * time.Second
	for waits, want := range map[bool][]time.Duration{
		false: {0, interval, 2 * interval, 3 * interval, 4 * interval, 6*interval + time.Second, 7 * interval},
		true:  {interval, 2 * interval, 3 * interval, 4 * interval, 6*interval + time.Second, 7 * interval},
	} {
		synctest.Test(t, func(t *testing.T) {
			core, logged := observer.New(zap.DebugLevel)
			a := background{Log: serviceLog{zap: zap.New(core)}}
			begin := time.Now()
			var rounds []time.Duration
			ctx, cancel := context.WithCancel(t.Context())
			go a.keepDoing(ctx, chore{interval: interval, waits: waits, level: zap.WarnLevel, failed: "it failed", do: func(context.Context) error {
				after := time.Since(begin)
				rounds = append(rounds, after)
				switch after {
				case 2 * interval:
					return errors.New("lost")
				case 4 * interval:
					time.Sleep(2*interval + time.Second)
				default:
				}
				return nil
			}})
			time.Sleep(8*interval - time.Second)
			synctest.Wait()
			cancel()
			synctest.Wait()
			require.Equal(t, want, rounds)
			require.Equal(t, 1, logged.Len())
			require.Equal(t, "it failed", logged.All()[0].Message)
			require.Equal(t, zap.WarnLevel, logged.All()[0].Level)
		})
	}
}

// A failure that lasts is logged once a minute. One that comes back is logged at once.
func TestAChoreThatFailsForALongTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, logged := observer.New(zap.DebugLevel)
		a := background{Log: serviceLog{zap: zap.New(core)}}
		ctx, cancel := context.WithCancel(t.Context())
		round := 0
		go a.keepDoing(ctx, chore{interval: time.Second, level: zap.WarnLevel, failed: "it failed", do: func(context.Context) error {
			round++
			if round == 150 {
				return nil
			}
			return errors.New("lost")
		}})
		begin := time.Now()
		time.Sleep(200 * time.Second)
		synctest.Wait()
		cancel()
		synctest.Wait()
		var after []time.Duration
		for _, line := range logged.All() {
			after = append(after, line.Time.Sub(begin))
		}
		require.Equal(t, []time.Duration{0, time.Minute, 2 * time.Minute, 150 * time.Second}, after)
	})
}

// A round that was cut short is not reported, and it is the last.
func TestAChoreEndsInTheMiddleOfARound(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zap.DebugLevel)
	a := background{Log: serviceLog{zap: zap.New(core)}}
	ctx, cancel := context.WithCancel(t.Context())
	rounds := 0
	a.keepDoing(ctx, chore{interval: time.Hour, do: func(ctx context.Context) error {
		rounds++
		cancel()
		return ctx.Err()
	}})
	require.Equal(t, 1, rounds)
	require.Zero(t, logged.Len())
}
