package lake

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/keyindex"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// keyed is what current and history share: rows found by key and replaced.
type keyed struct {
	*layer
	// found are the keys, by place, of the rows in the index that the last Find
	// returned: a result names rows by place alone.
	found map[change.Place][]byte
	// past is the ledger of an older snapshot; see before.
	past   *ledger
	pastID int64
	// filling says that a fill writes; fillsDone is of how many the rows have the values
	// once it is done.
	filling   bool
	fillsDone int
}

// imageSource is rows of current or history.
type imageSource interface {
	rowSource
	stores() []*change.Rows
}

// write lands rows and removals with a state. landed is called when they are there,
// with the numbers of the new files, to bring the index up to date.
func (k *keyed) write(ctx context.Context, src imageSource, remove []change.Place, newest catalog.Position, to pipeline.LayerState, put func(lg *ledger, files []*dataFile, rows []int) error) (pipeline.Commit, error) {
	start := k.lake.now()
	c := pipeline.Commit{Rows: src.len(), Removed: len(remove)}
	for _, rows := range src.stores() {
		if err := k.takes(rows.Schema()); err != nil {
			return c, err
		}
	}
	lg, err := k.ready(ctx)
	if err != nil {
		return c, err
	}
	st, err := k.standing()
	if err != nil {
		return c, err
	}
	newest = firstOf(st.state.Cursor.Position, newest)
	done := len(k.fills.list)
	if k.filling {
		done = k.fillsDone
		if was := lastOf(k.tbl.Metadata()); was != nil { // the rows are those that proved it
			newest = catalog.Position{Generation: was.Generation, Commit: was.Commit}
		}
	}
	var gone removal
	var rows written
	var g errgroup.Group
	g.Go(func() (err error) { gone, err = k.writeRemovals(ctx, lg, remove); return err })
	g.Go(func() (err error) { rows, err = k.writeRows(ctx, src, nil); return err })
	err = g.Wait()
	e := &edit{data: rows.files, deletes: gone.files, superseded: gone.superseded, replace: k.rebuild, newest: newest}
	if err == nil {
		e.summary, err = summaryOf(to, newBatchID(), k.schema.Version)
	}
	if err == nil && k.rebuild {
		e.summary[propRebuilt] = "true"
	}
	if err == nil && done > 0 {
		e.summary[propFilled] = k.fills.list[done-1].name
	}
	if err != nil {
		k.abandon(e)
		return c, err
	}
	s, err := k.land(ctx, e, func() error { return pipeline.ErrStale })
	if err != nil {
		return c, err
	}
	c.Bytes, c.Files, c.SnapshotID, c.Total = rows.bytes+gone.bytes, len(rows.files)+len(gone.paths()), s.id, s.rows
	if k.ledger == lg { // else another writer committed since, and all is read anew
		if err := k.follow(lg, s, &gone, &rows, remove, put); err != nil {
			k.lake.logger.ErrorContext(ctx, "the key index is rebuilt", "table", k.name, "error", err)
			k.forget()
		}
	}
	c.Took = k.lake.now().Sub(start)
	return c, nil
}

// follow brings the ledger and the index to the snapshot that has just landed.
func (k *keyed) follow(lg *ledger, s *staged, gone *removal, rows *written, remove []change.Place, put func(*ledger, []*dataFile, []int) error) error {
	gone.apply(k.layer, lg, s)
	files := make([]*dataFile, len(rows.files))
	for i, df := range rows.files {
		files[i] = k.register(lg, df, s.seq)
	}
	if lg.index == nil {
		return nil
	}
	for _, p := range remove {
		// A row that was not found by key is none of the index: a closed version.
		if key, ok := k.found[p]; ok {
			lg.index.Remove(key)
			delete(lg.doubles, string(key))
		}
	}
	k.found = nil // its room may be that of a large batch
	err := put(lg, files, rows.rows)
	k.weigh(lg.index.Size())
	return err
}

// indexed returns the ledger with its index, filling it from the table when it is
// not known. each reads one record's live rows into the index, in no order of files.
func (k *keyed) indexed(ctx context.Context, fields []int, each func(index keyindex.Index, keys keyReader, file *dataFile, rec record, sel []int) error) (*ledger, error) {
	lg, err := k.ready(ctx)
	if err != nil || lg.index != nil {
		return lg, err
	}
	start := k.lake.now()
	index, keys := keyindex.NewMemory(), k.keyReader()
	err = k.eachLiveTogether(ctx, lg, append(fields, keys.fields...), func(file *dataFile, rec record, sel []int) error {
		return each(index, keys, file, rec, sel)
	})
	if err != nil {
		return nil, fmt.Errorf("key index of %s: %w", k.name, err)
	}
	lg.index = index
	k.weigh(index.Size())
	if index.Len() > 0 {
		k.lake.logger.InfoContext(ctx, "key index read from the table", "table", k.name, "keys", index.Len(), "files", len(lg.files), "took", k.lake.now().Sub(start))
	}
	return lg, nil
}

// place remembers the key of a row that is handed out.
func (k *keyed) place(p change.Place, key []byte) {
	if k.found == nil {
		k.found = map[change.Place][]byte{}
	}
	k.found[p] = key
}
