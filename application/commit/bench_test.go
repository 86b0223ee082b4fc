package commit_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bankingapi/application/commit"
)

// BenchmarkDo is the cost of one item in a closed loop of so many callers, each
// with a context that may end, as a request has: of the queue itself (nothing),
// and in front of a file that is synced after each batch (fsync).
func BenchmarkDo(b *testing.B) {
	file, err := os.CreateTemp(b.TempDir(), "journal")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	page := make([]byte, 64<<10)
	limits := commit.Limits{Batch: 256, Queue: 1024, Timeout: time.Minute}
	for name, run := range map[string]func(int) error{
		"nothing": func(int) error { return nil },
		"fsync": func(n int) error {
			if _, err := file.WriteAt(page[:128*n], 0); err != nil {
				return err
			}
			return file.Sync()
		},
	} {
		for _, callers := range []int{1, 16, 64, 256} {
			b.Run(fmt.Sprintf("%s/callers=%d", name, callers), func(b *testing.B) {
				b.ReportAllocs()
				var batches, left atomic.Int64
				left.Store(int64(b.N))
				queue := commit.New(limits, weigh, nil, func(_ context.Context, batch []*item) error {
					batches.Add(1)
					return run(len(batch))
				}, commit.Observer{})
				var wg sync.WaitGroup
				for range callers {
					wg.Go(func() {
						ctx, cancel := context.WithCancel(b.Context())
						defer cancel()
						it := &item{weight: 1}
						for left.Add(-1) >= 0 {
							if err := queue.Do(ctx, it); err != nil {
								b.Error(err)
							}
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/float64(batches.Load()), "items/batch")
			})
		}
	}
}
