package connect

import (
	"context"
	"fmt"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
)

// Reset makes Connect forget a connector: it is stopped, its offsets are deleted, then
// the connector itself. (A connector that is only deleted goes on from its old offsets
// when one of that name is made again.) It may be repeated after it failed midway, and
// done is told each step. A connector that is not there is nothing to do.
func (c *Client) Reset(ctx context.Context, name string, done func(step string)) error {
	if err := c.Stop(ctx, name); err != nil {
		if catalog.KindOf(err) == catalog.NotFound {
			done("there is no connector " + name)
			return nil
		}
		return err
	}
	if err := c.awaitStop(ctx, name); err != nil {
		return err
	}
	done("stopped connector " + name)
	if err := c.forget(ctx, name); err != nil {
		return fmt.Errorf("delete the offsets of connector %s: %w", name, err)
	}
	done("deleted the offsets of connector " + name)
	if err := c.delete(ctx, name); err != nil && catalog.KindOf(err) != catalog.NotFound {
		return err
	}
	done("deleted connector " + name)
	return nil
}

// awaitStop waits until Connect says that the connector is stopped and has no tasks:
// before that it refuses to touch offsets, and the slot is in use.
func (c *Client) awaitStop(ctx context.Context, name string) error {
	until := time.NewTimer(c.limits.Settle)
	defer until.Stop()
	for {
		s, err := c.Status(ctx, name)
		if err != nil {
			return err
		}
		if s.State == catalog.ConnectorStopped && len(s.Tasks) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-until.C:
			return catalog.Errorf(catalog.Unavailable, catalog.CodeConnectorBusy, "see Kafka Connect's log, and run the command again", "connector %s does not stop: it is %s with %d tasks", name, s.State, len(s.Tasks))
		case <-time.After(c.limits.First):
		}
	}
}
