package lake

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// manifestRow is an entry with what a manifest says of it.
type manifestRow struct {
	status iceberg.ManifestEntryStatus
	entry  iceberg.ManifestEntry
}

// add writes new files into manifests, one for each partition spec.
func (s *stager) add(content iceberg.ManifestContent, files []iceberg.DataFile) ([]iceberg.ManifestFile, error) {
	bySpec := map[int32][]manifestRow{}
	for _, f := range files {
		bySpec[f.SpecID()] = append(bySpec[f.SpecID()], manifestRow{iceberg.EntryStatusADDED, iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &s.id, nil, nil, f)})
	}
	var out []iceberg.ManifestFile
	for _, spec := range slices.Sorted(maps.Keys(bySpec)) {
		m, err := s.write(content, spec, bySpec[spec])
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func (s *stager) write(content iceberg.ManifestContent, specID int32, rows []manifestRow) (iceberg.ManifestFile, error) {
	spec := s.md.PartitionSpecByID(int(specID))
	if spec == nil {
		return nil, fmt.Errorf("partition spec %d is unknown", specID)
	}
	var buf bytes.Buffer
	w, err := iceberg.NewManifestWriter(s.md.Version(), &buf, *spec, s.md.CurrentSchema(), s.id, iceberg.WithManifestWriterContent(content))
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	for _, r := range rows {
		switch r.status {
		case iceberg.EntryStatusADDED:
			err = w.Add(r.entry)
		case iceberg.EntryStatusEXISTING:
			err = w.Existing(r.entry)
		case iceberg.EntryStatusDELETED:
			err = w.Delete(r.entry)
		}
		if err != nil {
			return nil, fmt.Errorf("manifest entry: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	s.files++
	path, err := s.path(fmt.Sprintf("%s-m%d.avro", s.unique, s.files))
	if err != nil {
		return nil, err
	}
	if err := s.put(path, buf.Bytes()); err != nil {
		return nil, err
	}
	return w.ToManifestFile(path, int64(buf.Len()))
}

// keepData carries the head's data manifests over, merging where there are many of
// one size.
func (s *stager) keepData(old []iceberg.ManifestFile) ([]iceberg.ManifestFile, error) {
	type tier struct {
		spec int32
		size int
	}
	var out []iceberg.ManifestFile
	tiers := map[tier][]iceberg.ManifestFile{}
	for _, m := range old {
		if m.ManifestContent() != iceberg.ManifestContentData {
			continue
		}
		n, size := max(1, int(m.AddedDataFiles())+int(m.ExistingDataFiles())), 0
		for ; n >= mergeAt; n /= mergeAt {
			size++
		}
		k := tier{m.PartitionSpecID(), size}
		tiers[k] = append(tiers[k], m)
	}
	for k, group := range tiers {
		if len(group) < mergeAt {
			out = append(out, group...)
			continue
		}
		var rows []manifestRow
		for _, m := range group {
			for e, err := range m.Entries(s.layer.fs, true) {
				if err != nil {
					return nil, fmt.Errorf("manifest %s: %w", m.FilePath(), err)
				}
				rows = append(rows, manifestRow{iceberg.EntryStatusEXISTING, e})
			}
		}
		if len(rows) == 0 {
			continue
		}
		m, err := s.write(iceberg.ManifestContentData, k.spec, rows)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// keepDeletes carries the head's delete manifests over and adds the edit's delete
// files. Manifests with a superseded vector are rewritten, and all when there are
// many.
func (s *stager) keepDeletes(old []iceberg.ManifestFile) ([]iceberg.ManifestFile, error) {
	if len(s.edit.deletes) == 0 {
		return slices.DeleteFunc(slices.Clone(old), func(m iceberg.ManifestFile) bool { return m.ManifestContent() != iceberg.ManifestContentDeletes }), nil
	}
	var out, all []iceberg.ManifestFile
	for _, m := range old {
		if m.ManifestContent() == iceberg.ManifestContentDeletes {
			all = append(all, m)
		}
	}
	rows := map[int32][]manifestRow{}
	entries := map[int32][]deleteEntry{}
	for _, m := range all {
		known, ok := s.layer.ledger.deletes[m.FilePath()]
		touched := slices.ContainsFunc(known, func(d deleteEntry) bool { return s.edit.superseded[d.target] })
		if !ok || !touched && len(all) < mergeAt {
			out = append(out, m)
			continue
		}
		for _, d := range known {
			e := iceberg.NewManifestEntry(iceberg.EntryStatusEXISTING, &d.snapshot, &d.seq, &d.fileSeq, d.file)
			if d.target != "" && s.edit.superseded[d.target] {
				rows[m.PartitionSpecID()] = append(rows[m.PartitionSpecID()], manifestRow{iceberg.EntryStatusDELETED, e})
				continue
			}
			rows[m.PartitionSpecID()] = append(rows[m.PartitionSpecID()], manifestRow{iceberg.EntryStatusEXISTING, e})
			entries[m.PartitionSpecID()] = append(entries[m.PartitionSpecID()], d)
		}
	}
	for _, f := range s.edit.deletes {
		d := deleteEntry{file: f, snapshot: s.id, seq: s.seq, fileSeq: s.seq}
		if ref := f.ReferencedDataFile(); ref != nil && table.IsDeletionVector(f) {
			d.target = *ref
		}
		rows[f.SpecID()] = append(rows[f.SpecID()], manifestRow{iceberg.EntryStatusADDED, iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &s.id, nil, nil, f)})
		entries[f.SpecID()] = append(entries[f.SpecID()], d)
	}
	for _, spec := range slices.Sorted(maps.Keys(rows)) {
		m, err := s.write(iceberg.ManifestContentDeletes, spec, rows[spec])
		if err != nil {
			return nil, err
		}
		s.deletes[m.FilePath()] = entries[spec]
		out = append(out, m)
	}
	return out, nil
}
