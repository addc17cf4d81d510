package worker

import (
	"context"
	"errors"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/worker/lake"
	"github.com/lakeweir/lakeweir/worker/park"
	"github.com/lakeweir/lakeweir/worker/privacy"
)

var (
	_ park.Store  = (*lake.Files)(nil)
	_ park.Sealer = (*privacy.Sealer)(nil)
	_ park.Index  = parkedIndex{}
)

// parking keeps what comes for a source's stopped tables: in sealed files beside the
// lake's tables, of which the registry says which count and by which key they open.
type parking struct {
	registry *registry.Registry
	lake     *lake.Lake
	source   *catalog.Source
	sealer   park.Sealer // nil where the source has no token key
}

// newParking fails with privacy.key when the source's token key is too short.
func newParking(cfg Config, l *lake.Lake) (*parking, error) {
	p := &parking{registry: cfg.Registry, lake: l, source: cfg.Source}
	if key := cfg.TokenKey.Reveal(); key != "" {
		s, err := privacy.NewSealer([]byte(key))
		if err != nil {
			return nil, err
		}
		p.sealer = s
	}
	return p, nil
}

// parkingLot is where one quarantine's runs are kept, and the quarantine as it was when
// it was opened.
type parkingLot struct {
	*park.Lot

	quarantine registry.Quarantine
	files      *lake.Files
}

// begin begins the quarantine of a table, from the first change on that was not handed
// over, or goes on with the one that the table has.
func (p *parking) begin(ctx context.Context, table catalog.TableName, at catalog.Place, cause registry.Cause) (*parkingLot, error) {
	folder, err := p.lake.ParkFolder(ctx, p.source, table)
	if err != nil {
		return nil, err
	}
	key := park.NewKey()
	q, err := p.registry.BeginQuarantine(ctx, p.source.Name, registry.Quarantine{
		Table: table.String(), Cause: cause, At: at, Key: key.Seal(p.sealer), KeyID: key.ID(), Folder: folder,
	})
	if err != nil {
		return nil, err
	}
	return p.open(ctx, *q)
}

// open opens the lot of a quarantine that has not ended. It fails with park.key when its
// key cannot be had.
func (p *parking) open(ctx context.Context, q registry.Quarantine) (*parkingLot, error) {
	key, err := park.OpenKey(q.Key, q.KeyID, p.sealer)
	if err != nil {
		return nil, err
	}
	files, err := p.lake.OpenFiles(ctx, p.source, catalog.ParseTableName(q.Table), q.Folder)
	if err != nil {
		return nil, err
	}
	scope := park.Scope{Source: p.source.Name, Table: q.Table, Quarantine: q.ID}
	return &parkingLot{Lot: park.New(scope, key, files, parkedIndex{p.registry, q.ID}), quarantine: q, files: files}, nil
}

// end ends a quarantine of which bronze holds every run. Its key is destroyed first;
// files that cannot be removed now are left for sweep.
func (p *parking) end(ctx context.Context, lot *parkingLot) error {
	if err := p.registry.EndQuarantine(ctx, lot.quarantine.ID); err != nil {
		return err
	}
	return p.clear(ctx, lot.quarantine, lot.files)
}

// sweep removes the files of quarantines that have ended.
func (p *parking) sweep(ctx context.Context) error {
	ended, err := p.registry.UnsweptQuarantines(ctx, p.source.Name)
	if err != nil {
		return err
	}
	var failed []error
	for _, q := range ended {
		files, err := p.lake.OpenFiles(ctx, p.source, catalog.ParseTableName(q.Table), q.Folder)
		if err == nil {
			err = p.clear(ctx, q, files)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func (p *parking) clear(ctx context.Context, q registry.Quarantine, files *lake.Files) error {
	if err := park.Clear(ctx, files, q.ID, q.KeyID); err != nil {
		return err
	}
	return p.registry.MarkSwept(ctx, q.ID)
}

// parkedIndex keeps in the registry which files of a quarantine count.
type parkedIndex struct {
	registry   *registry.Registry
	quarantine int64
}

// Note implements park.Index.
func (i parkedIndex) Note(ctx context.Context, run park.Noted) error {
	return i.registry.NoteParked(ctx, i.quarantine, registry.ParkedRun(run))
}

// Runs implements park.Index.
func (i parkedIndex) Runs(ctx context.Context, after uint64, most int) ([]park.Noted, error) {
	runs, err := i.registry.ParkedRuns(ctx, i.quarantine, after, most)
	out := make([]park.Noted, len(runs))
	for n, r := range runs {
		out[n] = park.Noted(r)
	}
	return out, err
}
