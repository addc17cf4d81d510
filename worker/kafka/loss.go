package kafka

import (
	"context"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/debezium"
)

// sent knows how far the newest runs of the connector's task have come: the highest
// sequence of their changes, in whatever topic.
type sent map[debezium.RunID]catalog.LSN

// mostRuns bounds how many are known.
const mostRuns = 16

func (s sent) note(e *debezium.Event) {
	if e.Snapshot != debezium.Streamed || e.Run == (debezium.RunID{}) {
		return
	}
	was, known := s[e.Run]
	if known && e.Sequence <= was {
		return
	}
	s[e.Run] = e.Sequence
	if len(s) > mostRuns {
		oldest := e.Run
		for run, through := range s {
			if through < s[oldest] {
				oldest = run
			}
		}
		delete(s, oldest)
	}
}

// beyond reports whether the run has sent a change of a later transaction than that in
// which rows may be missing: then it had sent all of that.
func (s sent) beyond(l *debezium.Loss) bool { return s[l.Run] > l.Sequence }

// halfLost is the loss that is certain. The first half waited for the second, so that the
// lake still has the row under its old key.
func halfLost(l *debezium.Loss) *catalog.Error {
	return catalog.Errorf(catalog.Conflict, catalog.CodeGap, anew, "the second half of a key move is missing: %s", l)
}

// suspect tells that rows of one place may be missing.
func (s *Source) suspect(ctx context.Context, t *table, at Record, l *debezium.Loss) {
	s.cfg.Logger.WarnContext(ctx, "rows may be missing; lakeweir reconcile tells", "table", t.cfg.ID(),
		"topic", at.Topic, "partition", at.Partition, "offset", at.Offset, "why", l.String())
	if s.cfg.Suspected != nil {
		s.cfg.Suspected(t.name, at, l)
	}
}
