package worker

import (
	"context"
	"time"

	"github.com/lakeweir/lakeweir/catalog/registry"
)

// lockCheck is how often a worker looks after its lock. One that lost it goes on:
// the slot admits one reader in any case.
const lockCheck = 5 * time.Second

// holdLock looks after the lock until the function that it returns is called, which
// releases it.
func holdLock(ctx context.Context, lock *registry.SourceLock, cfg Config) (release func()) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // it is held while the last rows are saved
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer lock.Release(ctx)
		tick := time.NewTicker(lockCheck)
		defer tick.Stop()
		for lost := false; ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			err := lock.Check(ctx)
			if err != nil && !lost && ctx.Err() == nil {
				cfg.Logger.WarnContext(ctx, "the source's lock in the registry is lost; capture goes on", "source", cfg.Source.Name, "error", err)
			}
			lost = err != nil
		}
	}()
	return func() { stop(); <-ended }
}

// unlessEnded drops the error of a start that was interrupted: nothing had been
// read.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}
