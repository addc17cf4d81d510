package lake

import (
	"encoding/json"
	"strconv"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// Properties of a snapshot's summary.
const (
	propCursor        = "lakeweir.cursor"
	propSnapshot      = "lakeweir.snapshot"
	propCommitTime    = "lakeweir.commit-time"
	propBatch         = "lakeweir.batch"
	propSchemaVersion = "lakeweir.schema-version"
	propLate          = "lakeweir.late"
	propRemade        = "lakeweir.remade"
	propEvents        = "lakeweir.events"  // of bronze: how many changes were ever appended
	propOffsets       = "lakeweir.offsets" // of bronze: where the reading of the table's topic stands
	propRebuilt       = "lakeweir.rebuilt" // the snapshot replaced all that the layer held
)

// Properties of a table.
const (
	propTable   = "lakeweir.table"
	propLayer   = "lakeweir.layer"
	propStarted = "lakeweir.started" // set with the first commit that has a cursor
	propLast    = "lakeweir.last"    // a last, of the newest commit of ours
	// propMaxSnapshots bounds how many snapshots are kept; see maxSnapshots.
	propMaxSnapshots = "lakeweir.max-snapshots"
)

// tagName is the Iceberg tag that keeps a layer's last snapshot of ours from being
// expired by others.
const tagName = "lakeweir"

// summaryOf writes a state into the properties of the snapshot that holds its rows.
func summaryOf(to pipeline.LayerState, batch string, version int) (iceberg.Properties, error) {
	p := iceberg.Properties{
		propCursor:        to.Cursor.String(),
		propCommitTime:    strconv.FormatInt(to.CommitTime, 10),
		propBatch:         batch,
		propSchemaVersion: strconv.Itoa(version),
	}
	if to.Late != 0 {
		p[propLate] = strconv.FormatInt(to.Late, 10)
	}
	if to.Remade != 0 {
		p[propRemade] = strconv.FormatInt(to.Remade, 10)
	}
	if to.Snapshot != nil {
		b, err := json.Marshal(to.Snapshot)
		if err != nil {
			return nil, err
		}
		p[propSnapshot] = string(b)
	}
	if to.Offsets != nil {
		b, err := json.Marshal(to.Offsets)
		if err != nil {
			return nil, err
		}
		p[propOffsets] = string(b)
	}
	return p, nil
}

// stateOf reads the state of a layer: that of the head's nearest ancestor that has
// a cursor. It fails with lake.cursor_lost when there is none, though the layer was
// written before: then nothing proves how far it has come.
func stateOf(md table.Metadata, name string) (pipeline.LayerState, error) {
	if s := md.CurrentSnapshot(); s != nil {
		return stateAt(md, s, name)
	}
	if md.Properties()[propStarted] != "" {
		return pipeline.LayerState{}, cursorLost(name, "it has no snapshot any more, though Lakeweir wrote to it before")
	}
	return pipeline.LayerState{}, nil
}

// stateAt is stateOf for another snapshot than the head.
func stateAt(md table.Metadata, s *table.Snapshot, name string) (pipeline.LayerState, error) {
	found, end := nearest(md, s)
	switch {
	case found != nil:
		return parseState(found.Summary.Properties, name)
	case end.ParentSnapshotID != nil:
		return pipeline.LayerState{}, cursorLost(name, "the snapshots between its head and the last one that Lakeweir wrote have been expired")
	case md.Properties()[propStarted] == "":
		return pipeline.LayerState{}, nil // all of it is another writer's
	}
	return pipeline.LayerState{}, cursorLost(name, "none of its snapshots was written by Lakeweir")
}

// nearest walks from a snapshot to its nearest ancestor that has a cursor. Without
// one it returns the oldest ancestor that is known: it has a parent when that has
// been expired.
func nearest(md table.Metadata, s *table.Snapshot) (found, end *table.Snapshot) {
	for {
		if s.Summary != nil && s.Summary.Properties[propCursor] != "" {
			return s, nil
		}
		if s.ParentSnapshotID == nil {
			return nil, s
		}
		parent := md.SnapshotByID(*s.ParentSnapshotID)
		if parent == nil {
			return nil, s
		}
		s = parent
	}
}

func parseState(p iceberg.Properties, name string) (pipeline.LayerState, error) {
	var st pipeline.LayerState
	var err error
	if st.Cursor, err = catalog.ParseCursor(p[propCursor]); err != nil {
		return st, cursorLost(name, "its cursor cannot be read: "+err.Error())
	}
	if v := p[propCommitTime]; v != "" {
		if st.CommitTime, err = strconv.ParseInt(v, 10, 64); err != nil {
			return st, cursorLost(name, "its commit time cannot be read")
		}
	}
	for prop, n := range map[string]*int64{propLate: &st.Late, propRemade: &st.Remade} {
		if v := p[prop]; v != "" {
			if *n, err = strconv.ParseInt(v, 10, 64); err != nil {
				return st, cursorLost(name, "its "+prop+" cannot be read")
			}
		}
	}
	if v := p[propSnapshot]; v != "" {
		st.Snapshot = new(catalog.SnapshotProgress)
		if err := json.Unmarshal([]byte(v), st.Snapshot); err != nil {
			return st, cursorLost(name, "its snapshot progress cannot be read")
		}
	}
	if v := p[propOffsets]; v != "" {
		st.Offsets = new(catalog.TopicOffsets)
		if err := json.Unmarshal([]byte(v), st.Offsets); err != nil {
			return st, cursorLost(name, "the offsets of its topic cannot be read")
		}
	}
	return st, nil
}

func cursorLost(name, why string) error {
	return catalog.Errorf(catalog.Conflict, catalog.CodeLakeCursor,
		"roll the table back to a snapshot that Lakeweir wrote, or drop it to have it read again",
		"it is not known how far %s has come: %s", name, why)
}
