package worker

import (
	"context"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
)

// again runs a source, and runs it again where the slot's going is no reason to end:
// the next start says what is missing, and of which tables. Its tries are bounded, so
// that a slot that goes again and again ends the worker with the reason.
func again(ctx context.Context, cfg Config, run func() error) error {
	for try := 0; ; try++ {
		began := time.Now() //nolint:forbidigo // bounds the tries
		err := run()
		switch {
		case slotWent(err) && try < 5 && time.Since(began) < 10*time.Second:
			// A worker that is killed while it makes the slot takes the unfinished slot
			// with it, so that the next one may see it go.
			cfg.Logger.InfoContext(ctx, "the slot went while the source was being started, starting it again", "source", cfg.Source.Name)
		case logWent(err) && (try == 0 || time.Since(began) > time.Minute):
			cfg.Logger.ErrorContext(ctx, "the slot cannot be read on, starting the source again to see what is missing", "source", cfg.Source.Name, "error", err)
		default:
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// slotWent reports a slot that was there when Start looked and was gone when it
// wanted to read.
func slotWent(err error) bool {
	return err != nil && catalog.KindOf(err) == catalog.Unavailable && catalog.Public(err).Code == catalog.CodeSourceSlot
}

// logWent reports a slot or a log that went while it was being read.
func logWent(err error) bool {
	return err != nil && catalog.KindOf(err) == catalog.Conflict && catalog.Public(err).Code == catalog.CodeSourceSlot
}
