package connect

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/connectorconfig"
)

// Notes keep what was seen last of a source's connector; the registry does.
type Notes interface {
	SetConnector(ctx context.Context, source string, s catalog.ConnectorStatus) error
}

// Upkeep is what Keep needs.
type Upkeep struct {
	Client *Client
	Source *catalog.Source
	Tables []*catalog.Table
	Notes  Notes
	Log    *slog.Logger
	// Prepare, when it is not nil, is called before the connector is applied: it makes
	// what the connector needs at the source. It may be called again.
	Prepare func(context.Context) error
	// Every is the time between two looks at the connector; default 10 s.
	Every time.Duration
	Clock func() time.Time // default time.Now
}

// Times of trying again.
const (
	lookEvery      = 10 * time.Second
	firstRetry     = 10 * time.Second
	longestRestart = 10 * time.Minute
	longestApply   = 5 * time.Minute
	settled        = 5 * time.Minute
)

// Keep makes a source's connector what the files say, then watches it until the context
// ends, and returns nil then. What has failed is restarted: at once, then less and less
// often, since each restart reads from the last offset again. A connector that was
// paused, stopped or deleted by somebody is left so. What keeps it from being applied, a
// database that is down too, is noted and tried again; only files that cannot be
// rendered are an error.
func Keep(ctx context.Context, up Upkeep) error {
	if up.Every == 0 {
		up.Every = lookEvery
	}
	if up.Clock == nil {
		up.Clock = time.Now //nolint:forbidigo // the default of a clock that is passed
	}
	want, err := connectorconfig.Render(up.Source, up.Tables)
	if err != nil {
		return err
	}
	if _, err := want.Resolve(); err != nil {
		return err
	}
	k := &keeper{
		Upkeep: up, want: want,
		applies:  backoff{first: firstRetry, longest: longestApply},
		restarts: backoff{first: firstRetry, longest: longestRestart, settled: settled},
	}
	tick := time.NewTicker(up.Every)
	defer tick.Stop()
	for {
		k.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

type keeper struct {
	Upkeep

	want     *connectorconfig.Config
	applied  bool
	applies  backoff
	restarts backoff
	told     string // the last status in words, so that each is logged once
	deaf     bool   // the notes could not be written
}

// look applies the connector if that is still to be done, asks how it is, and restarts
// what has failed when it is time.
func (k *keeper) look(ctx context.Context) {
	now := k.Clock()
	justApplied := false
	if !k.applied && k.applies.due(now) {
		if err := k.apply(ctx); err != nil {
			k.applies.tried(now)
			if ctx.Err() == nil {
				k.note(ctx, k.ours(err))
			}
			return
		}
		k.applied, justApplied = true, true
	}
	if !k.applied {
		return
	}
	status, err := k.Client.Status(ctx, k.want.Name)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		if justApplied && catalog.Public(err).Code == catalog.CodeConnectorNotFound {
			return // Connect has taken it and has no status of it yet
		}
		k.note(ctx, k.ours(err))
		return
	}
	k.note(ctx, *status)
	switch {
	case !status.Failed():
		if status.Running() {
			k.restarts.isWell(now)
		}
	case k.restarts.due(now):
		k.restarts.tried(now)
		k.Log.WarnContext(ctx, "restarting what of the connector has failed", "source", k.Source.Name, "connector", k.want.Name, "again_in", k.restarts.wait)
		if err := k.Client.RestartFailed(ctx, k.want.Name); err != nil && ctx.Err() == nil {
			k.Log.WarnContext(ctx, "the connector could not be restarted", "source", k.Source.Name, "connector", k.want.Name, "error", catalog.Public(err).Message)
		}
	}
}

func (k *keeper) apply(ctx context.Context) error {
	if k.Prepare != nil {
		if err := k.Prepare(ctx); err != nil {
			return fmt.Errorf("prepare source %s for its connector: %w", k.Source.Name, err)
		}
	}
	p, err := k.Client.Plan(ctx, k.want)
	if err != nil {
		return err
	}
	if p.EndsTask() {
		k.Log.WarnContext(ctx, "the connector's task is started anew with another configuration", "source", k.Source.Name, "connector", p.Name, "caution", Caution)
	}
	if err := k.Client.Apply(ctx, p); err != nil {
		return err
	}
	k.Log.InfoContext(ctx, "applied the connector", "source", k.Source.Name, "kafka_connect", k.Client.At(), "did", p.Text())
	for _, c := range p.Changes {
		k.Log.InfoContext(ctx, "a property of the connector was changed", "source", k.Source.Name, "property", c.Property, "from", c.From, "to", c.To)
	}
	return nil
}

// ours is the status of a connector that Connect says nothing of.
func (k *keeper) ours(err error) catalog.ConnectorStatus {
	e := catalog.Public(err)
	s := catalog.ConnectorStatus{Name: k.want.Name, State: catalog.ConnectorRefused, Trace: e.Message}
	if e.Hint != "" {
		s.Trace += " → " + e.Hint
	}
	switch e.Code { //nolint:exhaustive // all others are refusals
	case catalog.CodeConnectorNotFound:
		s.State = catalog.ConnectorMissing
	case catalog.CodeConnectorUnreachable, catalog.CodeConnectorBusy:
		s.State = catalog.ConnectorUnreachable
	}
	return s
}

func (k *keeper) note(ctx context.Context, s catalog.ConnectorStatus) {
	words := Sentence(&s)
	if words != k.told {
		k.told = words
		level := slog.LevelInfo
		if !s.Running() {
			level = slog.LevelWarn
		}
		k.Log.Log(ctx, level, "the connector's state", "source", k.Source.Name, "connector", s.Name, "state", words)
	}
	err := k.Notes.SetConnector(ctx, k.Source.Name, s)
	if (err != nil) != k.deaf && ctx.Err() == nil {
		k.deaf = err != nil
		if k.deaf {
			k.Log.WarnContext(ctx, "the registry does not take the connector's status", "source", k.Source.Name, "error", err)
		}
	}
}
