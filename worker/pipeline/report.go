package pipeline

import (
	"context"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
)

// report tells the observer where every table and the source stand. The source is
// asked for its status beside the loop, so that a slow answer delays nothing.
func (p *Pipeline) report(ctx context.Context, last bool) {
	now := p.cfg.Clock()
	for _, t := range p.tables {
		p.cfg.Observer.State(ctx, p.status(t, now))
	}
	if !p.statusMu.TryLock() {
		return
	}
	p.reporting.Go(func() {
		defer p.statusMu.Unlock()
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		s, err := p.cfg.Reader.Status(ctx)
		if err != nil {
			if !last && !p.silent {
				p.silent = true
				p.cfg.Logger.WarnContext(ctx, "the source does not say where it stands", "source", p.cfg.Source.Name, "error", err)
			}
			return
		}
		p.silent = false
		select { // the newest answer counts
		case <-p.statuses:
		default:
		}
		p.statuses <- s // the only sender, by statusMu
	})
}

// status says where one table stands, honestly: a layer is complete up to the
// oldest change that is not in it, or as far as the source was read when there is
// none.
func (p *Pipeline) status(t *tableRun, now time.Time) TableStatus {
	s := TableStatus{Table: t.table.Name.String(), State: t.state, Fault: t.fault}
	if t.saving {
		// Its layers are in the hands of the save; say what is certain without them.
		s.BronzeThrough = p.through
		if low, at, ok := t.low(); ok {
			s.BronzeThrough, s.FreshAt = low, micros(at)
		}
		s.Snapshot = t.shown
		s.CurrentThrough, s.HistoryThrough = min(t.shownCurrent, s.BronzeThrough), min(t.shownHistory, s.BronzeThrough)
		s.State = t.stateAt(s.FreshAt, now)
		return s
	}
	s.Snapshot = t.bronze.Snapshot
	s.BronzeThrough = p.through
	s.FreshAt = p.readAt
	if t.state.Stopped() {
		s.BronzeThrough = t.held
		s.FreshAt = micros(t.bronze.CommitTime)
	} else if low, at, ok := t.low(); ok {
		s.BronzeThrough, s.FreshAt = low, micros(at)
	}
	unknown := !t.opened && t.known != nil // what its layers hold is not looked at yet
	through := func(l LayerState) catalog.LSN {
		if l.Cursor == t.bronze.Cursor {
			return s.BronzeThrough
		}
		if l.Cursor.IsZero() {
			unknown = true // it shows nothing yet
		}
		s.FreshAt = earlier(s.FreshAt, micros(l.CommitTime))
		return l.Cursor.Position.Commit
	}
	if t.opened && t.layers.Current != nil {
		s.CurrentThrough = through(t.current)
	}
	if t.opened && t.layers.History != nil {
		s.HistoryThrough = through(t.history)
	}
	if unknown {
		s.FreshAt = time.Time{}
	}
	s.State = t.stateAt(s.FreshAt, now)
	t.shown, t.shownCurrent, t.shownHistory = s.Snapshot, s.CurrentThrough, s.HistoryThrough
	return s
}

// stateAt is the table's state, seen from how old its layers are.
func (t *tableRun) stateAt(freshAt, now time.Time) catalog.State {
	if t.state == catalog.Streaming && !freshAt.IsZero() && now.Sub(freshAt) > t.table.Tier.Bound() {
		return catalog.Lagging
	}
	return t.state
}

func micros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
