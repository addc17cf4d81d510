package lake

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/lakeweir/lakeweir/catalog"
)

// edit is what one commit does to a layer, whatever head it lands on.
type edit struct {
	data    []iceberg.DataFile
	deletes []iceberg.DataFile
	// superseded are the data files, by path, whose live deletion vector one of
	// deletes replaces.
	superseded map[string]bool
	// replace takes away all that the head holds.
	replace bool
	// newest is the position of the newest row, when no row of the layer was as new
	// before; else zero.
	newest  catalog.Position
	summary iceberg.Properties
}

func (e *edit) operation() table.Operation {
	switch {
	case e.replace:
		return table.OpOverwrite
	case len(e.deletes) == 0:
		return table.OpAppend
	case len(e.data) == 0:
		return table.OpDelete
	}
	return table.OpOverwrite
}

// staged is a snapshot written on top of one head, ready to land.
type staged struct {
	id, parent, seq int64
	schema          int   // that was current
	rows            int64 // that the layer holds once it lands; negative when unknown
	updates         []table.Update
	requirements    []table.Requirement
	manifests       []iceberg.ManifestFile
	deletes         map[string][]deleteEntry // of the new delete manifests
	written         []string                 // metadata files, of no use unless it lands
}

// mergeAt is how many manifests of about one size are merged into one. Every commit
// adds a manifest, so without merging each reader would open one file a commit.
const mergeAt = 16

// stage writes the manifests and the manifest list of a snapshot that does e to the
// head. A snapshot that does nothing is one too: it moves the state.
func (l *layer) stage(e *edit) (s *staged, err error) {
	md := l.tbl.Metadata()
	st := stager{
		layer: l, md: md, edit: e, unique: uuid.NewString(),
		staged: &staged{id: newSnapshotID(md), parent: head(md), seq: md.LastSequenceNumber() + 1, deletes: map[string][]deleteEntry{}},
	}
	defer func() {
		if err != nil {
			l.remove(st.written)
		}
	}()
	var old []iceberg.ManifestFile
	if !e.replace {
		if old, err = l.headManifests(); err != nil {
			return nil, err
		}
	}
	var manifests []iceberg.ManifestFile
	if len(e.data) > 0 {
		m, err := st.add(iceberg.ManifestContentData, e.data)
		if err != nil {
			return nil, err
		}
		manifests = append(manifests, m...)
	}
	kept, err := st.keepData(old)
	if err != nil {
		return nil, err
	}
	deletes, err := st.keepDeletes(old)
	if err != nil {
		return nil, err
	}
	manifests = append(append(manifests, kept...), deletes...)
	return st.finish(manifests)
}

type stager struct {
	*staged
	layer  *layer
	md     table.Metadata
	edit   *edit
	unique string
	files  int
}

func newSnapshotID(md table.Metadata) int64 {
	for {
		if id := rand.Int64(); id > 0 && md.SnapshotByID(id) == nil { //nolint:gosec // an id, not a secret
			return id
		}
	}
}

// finish writes the manifest list and says what is to be committed.
func (s *stager) finish(manifests []iceberg.ManifestFile) (*staged, error) {
	var parent *int64
	if s.parent != 0 {
		parent = &s.parent
	}
	var buf bytes.Buffer
	var w *iceberg.ManifestListWriter
	var err error
	firstRow := int64(0)
	v3 := s.md.Version() >= 3
	if v3 {
		firstRow = s.md.NextRowID()
		w, err = iceberg.NewManifestListWriterV3(&buf, s.id, s.seq, firstRow, parent)
	} else {
		w, err = iceberg.NewManifestListWriterV2(&buf, s.id, s.seq, parent)
	}
	if err != nil {
		return nil, fmt.Errorf("manifest list: %w", err)
	}
	if err := w.AddManifests(manifests); err != nil {
		return nil, fmt.Errorf("manifest list: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("manifest list: %w", err)
	}
	path, err := s.path(fmt.Sprintf("snap-%d-0-%s.avro", s.id, s.unique))
	if err != nil {
		return nil, err
	}
	if err := s.put(path, buf.Bytes()); err != nil {
		return nil, err
	}
	// As the next commit would read it back: the list is where sequence numbers and
	// first row ids are given.
	if s.manifests, err = iceberg.ReadManifestList(bytes.NewReader(buf.Bytes())); err != nil {
		return nil, fmt.Errorf("manifest list: %w", err)
	}
	schemaID := s.md.CurrentSchema().ID
	s.schema = schemaID
	summary := s.summary()
	s.rows = liveRows(summary)
	snap := table.Snapshot{
		SnapshotID: s.id, ParentSnapshotID: parent, SequenceNumber: s.seq,
		TimestampMs:  max(s.layer.lake.now().UnixMilli(), s.md.LastUpdatedMillis()),
		ManifestList: path, SchemaID: &schemaID,
		Summary: &table.Summary{Operation: s.edit.operation(), Properties: summary},
	}
	if v3 {
		added := *w.NextRowID() - firstRow
		snap.FirstRowID, snap.AddedRows = &firstRow, &added
	}
	s.updates = append(s.updates, table.NewSetPropertiesUpdate(s.edit.properties(s.id, s.seq)), table.NewAddSnapshotUpdate(&snap), s.moveMain(), table.NewSetSnapshotRefUpdate(tagName, s.id, table.TagRef, 0, 0, 0))
	if old := tooOld(s.md); len(old) > 0 {
		s.updates = append(s.updates, table.NewRemoveSnapshotsUpdate(old, false))
	}
	// Columns that have changed meanwhile may be others than those that were written.
	s.requirements = []table.Requirement{table.AssertTableUUID(s.md.TableUUID()), table.AssertRefSnapshotID(table.MainBranch, parent), table.AssertCurrentSchemaID(schemaID)}
	return s.staged, nil
}

// maxSnapshots is how many snapshots a table keeps, unless its property
// lakeweir.max-snapshots says otherwise. Catalogs read and write the metadata of all
// of them at each commit, so without a bound commits would get slower for good.
const maxSnapshots = 500

// tooOld returns the snapshots that a commit forgets: main's oldest, when there are
// more than may be kept by a tenth. Only the metadata forgets them; files that no
// snapshot names any more are left to upkeep.
func tooOld(md table.Metadata) []int64 {
	keep := maxSnapshots
	if v, err := strconv.Atoi(md.Properties()[propMaxSnapshots]); err == nil && v > 0 {
		keep = v
	}
	if len(md.Snapshots()) < keep+keep/10 {
		return nil
	}
	named := map[int64]bool{}
	for _, ref := range md.Refs() {
		named[ref.SnapshotID] = true
	}
	var old []int64
	n := 0
	for c := md.CurrentSnapshot(); c != nil; n++ {
		if n >= keep-1 && !named[c.SnapshotID] {
			old = append(old, c.SnapshotID)
		}
		if c.ParentSnapshotID == nil {
			break
		}
		c = md.SnapshotByID(*c.ParentSnapshotID)
	}
	return old
}

// moveMain sets main to the snapshot, keeping what is configured for its retention.
func (s *stager) moveMain() table.Update {
	var refAge, snapshotAge int64
	var keep int
	for name, ref := range s.md.Refs() {
		if name != table.MainBranch {
			continue
		}
		if ref.MaxRefAgeMs != nil {
			refAge = *ref.MaxRefAgeMs
		}
		if ref.MaxSnapshotAgeMs != nil {
			snapshotAge = *ref.MaxSnapshotAgeMs
		}
		if ref.MinSnapshotsToKeep != nil {
			keep = *ref.MinSnapshotsToKeep
		}
	}
	return table.NewSetSnapshotRefUpdate(table.MainBranch, s.id, table.BranchRef, refAge, snapshotAge, keep)
}

// summary adds the counts that Iceberg asks for to the edit's own properties.
func (s *stager) summary() iceberg.Properties {
	p := maps.Clone(s.edit.summary)
	var before iceberg.Properties
	if c := s.md.CurrentSnapshot(); c != nil && c.Summary != nil {
		before = c.Summary.Properties
	}
	count := func(total string, added, removed int64, addedKey, removedKey string) {
		was, err := strconv.ParseInt(before[total], 10, 64)
		if s.edit.replace {
			removed, err = was, nil
		}
		if added > 0 {
			p[addedKey] = strconv.FormatInt(added, 10)
		}
		if removed > 0 {
			p[removedKey] = strconv.FormatInt(removed, 10)
		}
		if err != nil && s.parent != 0 {
			return // unknown before, so unknown now
		}
		p[total] = strconv.FormatInt(was+added-removed, 10)
	}
	var files, rows, size, deleteFiles, removedFiles, positions, removedPositions, removedSize int64
	for _, f := range s.edit.data {
		files, rows, size = files+1, rows+f.Count(), size+f.FileSizeBytes()
	}
	for _, f := range s.edit.deletes {
		deleteFiles, positions, size = deleteFiles+1, positions+f.Count(), size+fileShare(f)
	}
	if len(s.edit.superseded) > 0 {
		for _, entries := range s.layer.ledger.deletes {
			for _, d := range entries {
				if d.target != "" && s.edit.superseded[d.target] {
					removedFiles, removedPositions, removedSize = removedFiles+1, removedPositions+d.file.Count(), removedSize+fileShare(d.file)
				}
			}
		}
	}
	count("total-data-files", files, 0, "added-data-files", "deleted-data-files")
	count("total-records", rows, 0, "added-records", "deleted-records")
	count("total-delete-files", deleteFiles, removedFiles, "added-delete-files", "removed-delete-files")
	count("total-position-deletes", positions, removedPositions, "added-position-deletes", "removed-position-deletes")
	count("total-equality-deletes", 0, 0, "added-equality-deletes", "removed-equality-deletes")
	count("total-files-size", size, removedSize, "added-files-size", "removed-files-size")
	return p
}

// liveRows returns how many rows a snapshot shows, by its summary, or -1.
func liveRows(summary iceberg.Properties) int64 {
	rows, err1 := strconv.ParseInt(summary["total-records"], 10, 64)
	deleted, err2 := strconv.ParseInt(summary["total-position-deletes"], 10, 64)
	if err1 != nil || err2 != nil {
		return -1
	}
	return rows - deleted
}

// fileShare is the part of a file that an entry stands for: a deletion vector is
// one blob of a file with many.
func fileShare(f iceberg.DataFile) int64 {
	if n := f.ContentSizeInBytes(); n != nil {
		return *n
	}
	return f.FileSizeBytes()
}

func (s *stager) path(name string) (string, error) {
	p, err := s.layer.tbl.LocationProvider()
	if err != nil {
		return "", fmt.Errorf("locations of %s: %w", s.layer.name, err)
	}
	return p.NewMetadataLocation(name), nil
}

func (s *stager) put(path string, b []byte) error {
	s.written = append(s.written, path)
	return s.layer.put(path, b)
}
