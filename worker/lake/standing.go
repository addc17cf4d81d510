package lake

import (
	"encoding/json"
	"fmt"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// last is what the table says, beside its snapshots, of the newest commit of ours.
// It never is the state by itself: a rollback does not roll properties back, which
// is how one is noticed. And it survives when others expire every snapshot of ours;
// then it counts if the head's rows prove that the head came after it.
type last struct {
	Snapshot int64 `json:"snapshot"`
	Sequence int64 `json:"sequence"`
	// Row is the commit that the newest row came from, which no commit before this
	// one had written; generation 0 when there was no such row.
	Generation uint32            `json:"generation,omitempty"`
	Commit     catalog.LSN       `json:"commit,omitempty"`
	Summary    map[string]string `json:"summary"`
}

// lastOf reads it, or returns nil.
func lastOf(md table.Metadata) *last {
	text := md.Properties()[propLast]
	if text == "" {
		return nil
	}
	l := &last{}
	if json.Unmarshal([]byte(text), l) != nil || l.Summary[propCursor] == "" {
		return nil
	}
	return l
}

// properties are what a commit of a snapshot sets.
func (e *edit) properties(id, seq int64) iceberg.Properties {
	l := last{Snapshot: id, Sequence: seq, Generation: e.newest.Generation, Commit: e.newest.Commit, Summary: map[string]string{}}
	for _, k := range []string{propCursor, propCommitTime, propSnapshot, propOffsets, propLate, propRemade, propFilled} {
		if v := e.summary[k]; v != "" {
			l.Summary[k] = v
		}
	}
	b, err := json.Marshal(l)
	if err != nil || l.Summary[propCursor] == "" {
		return iceberg.Properties{propStarted: "true"}
	}
	return iceberg.Properties{propStarted: "true", propLast: string(b)}
}

// standing is how far a layer has come.
type standing struct {
	state pipeline.LayerState
	// back reports that main was set back to before the newest commit of ours.
	back *last
	// rebuild reports that nothing proves the state of a layer that was written
	// before; state is zero then.
	rebuild error
}

// standing reads how far the layer has come from what was last loaded.
func (l *layer) standing() (standing, error) {
	md := l.tbl.Metadata()
	newest := lastOf(md)
	head := md.CurrentSnapshot()
	if head == nil {
		st, err := stateOf(md, l.name)
		return standing{state: st, back: newest, rebuild: err}, nil
	}
	found, end := nearest(md, head)
	switch {
	case found != nil:
		st, err := parseState(found.Summary.Properties, l.name)
		if newest == nil || newest.Snapshot == found.SnapshotID {
			newest = nil
		}
		return standing{state: st, back: newest}, err
	case newest == nil || end.ParentSnapshotID == nil || end.SequenceNumber <= newest.Sequence:
		// Whatever is known of the past is without us, or ends before our last commit.
		st, err := stateAt(md, head, l.name)
		return standing{state: st, back: newest, rebuild: err}, nil
	}
	// What came between our last commit and the head has been expired.
	lost := cursorLost(l.name, "the snapshots between its head and the last one that Lakeweir wrote have been expired")
	ok, err := l.holds(newest)
	if err != nil {
		return standing{}, l.lake.unavailable(err, "the files of "+l.name+" cannot be read")
	}
	if !ok {
		return standing{rebuild: lost}, nil
	}
	st, err := parseState(newest.Summary, l.name)
	return standing{state: st}, err
}

// firstOf returns the position of a row when its transaction is newer than the
// cursor's, so that no earlier commit can have rows of it; else zero.
func firstOf(cursor, row catalog.Position) catalog.Position {
	if row.Generation == cursor.Generation && row.Commit <= cursor.Commit || row.Generation < cursor.Generation {
		return catalog.Position{}
	}
	return row
}

// holds reports whether one of the head's data files has rows of the transaction
// that a commit of ours was the first to write: then the head came after it.
func (l *layer) holds(c *last) (bool, error) {
	if c.Generation == 0 {
		return false, nil
	}
	manifests, err := l.headManifests()
	if err != nil {
		return false, err
	}
	gen, commit := l.field(colGeneration), l.field(colCommitLSN)
	for _, m := range manifests {
		if m.ManifestContent() != iceberg.ManifestContentData {
			continue
		}
		for e, err := range m.Entries(l.fs, true) {
			if err != nil {
				return false, fmt.Errorf("manifest %s: %w", m.FilePath(), err)
			}
			upper := e.DataFile().UpperBoundValues()
			g, ok1 := readInt(upper[gen])
			at, ok2 := readInt(upper[commit])
			if ok1 && ok2 && uint32(g) == c.Generation && catalog.LSN(at) >= c.Commit {
				return true, nil
			}
		}
	}
	return false, nil
}

// checked is State of what was last loaded.
func (l *layer) checked() (pipeline.LayerState, error) {
	s, err := l.standing()
	if err != nil {
		return pipeline.LayerState{}, err
	}
	if l.kind != catalog.Bronze {
		l.rebuild = s.rebuild != nil
		if l.rebuild {
			l.forget()
			l.lake.logger.Warn("the layer is made anew from bronze", "table", l.name, "reason", s.rebuild)
			return pipeline.LayerState{}, nil
		}
		return s.state, nil
	}
	if s.back != nil {
		return pipeline.LayerState{}, setBack(l.name, s)
	}
	return s.state, s.rebuild
}

func setBack(name string, s standing) error {
	now := "before any snapshot of Lakeweir's"
	if !s.state.Cursor.IsZero() {
		now = "at " + s.state.Cursor.Position.String()
	}
	was := s.back.Summary[propCursor]
	if c, err := catalog.ParseCursor(was); err == nil {
		was = c.Position.String()
	}
	return catalog.Errorf(catalog.Conflict, catalog.CodeGap,
		fmt.Sprintf("set main of %s forward to snapshot %d again, if it still has it, and start the worker anew; else drop the table's bronze, current and history to have it read anew", name, s.back.Snapshot),
		"%s was rolled back: it stands %s, and held every change up to %s", name, now, was)
}
