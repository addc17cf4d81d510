package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
	"github.com/lakeweir/lakeweir/worker/lake"
	"github.com/lakeweir/lakeweir/worker/park"
)

// lotRig is a registry and a lake, of which a worker parks.
type lotRig struct {
	Config

	table catalog.TableName
}

func newLotRig(t *testing.T, warehouse string, props map[string]string) *lotRig {
	t.Helper()
	reg, err := registry.Open(t.Context(), catalog.Secret(localpgtest.Database(t)))
	require.NoError(t, err)
	t.Cleanup(reg.Close)
	source := &catalog.Source{Name: "shop", Namespaces: catalog.Namespaces{Bronze: []string{"bronze"}, Silver: []string{"silver"}}, FormatVersion: 3}
	r := &lotRig{table: catalog.TableName{Schema: "public", Name: "orders"}, Config: Config{
		Source: source, Registry: reg, TokenKey: "0123456789abcdef0123456789abcdef",
		Lake: lake.Config{Catalog: "sqlite://" + filepath.Join(t.TempDir(), "catalog.db"), Warehouse: warehouse, Properties: props},
	}}
	require.NoError(t, reg.SyncConfig(t.Context(), []catalog.Source{*source}, []catalog.Table{{Source: "shop", Name: r.table}}))
	return r
}

// worker is what a worker that has just started parks by.
func (r *lotRig) worker(t *testing.T) *parking {
	t.Helper()
	l, err := lake.Open(t.Context(), r.Lake, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	p, err := newParking(r.Config, l)
	require.NoError(t, err)
	return p
}

func (r *lotRig) begin(t *testing.T, p *parking) *parkingLot {
	t.Helper()
	lot, err := p.begin(t.Context(), r.table, lotPlace(1), registry.Cause{Fault: registry.Fault{Code: catalog.CodeDecode, Message: "a value cannot be read"}})
	require.NoError(t, err)
	return lot
}

// reopen is what the next worker finds.
func (r *lotRig) reopen(t *testing.T, p *parking) *parkingLot {
	t.Helper()
	open, err := r.Registry.OpenQuarantines(t.Context(), "shop")
	require.NoError(t, err)
	require.Len(t, open, 1)
	lot, err := p.open(t.Context(), open[0])
	require.NoError(t, err)
	return lot
}

func lotPlace(n uint64) catalog.Place {
	return catalog.Place{Position: catalog.Position{Generation: 1, Commit: catalog.LSN(n)}}
}

// planted is in every run, and nowhere else.
const planted = "alice@example.org"

func lotRun(seq uint64) park.Run {
	return park.Run{Seq: seq, Data: []byte(strings.Repeat(fmt.Sprint(planted, seq), 1000)), Events: 1000, From: lotPlace(seq), To: lotPlace(seq + 1)}
}

func readLot(t *testing.T, lot *parkingLot, through uint64) {
	t.Helper()
	seq := uint64(0)
	for run, err := range lot.Runs(t.Context(), 0, through) {
		require.NoError(t, err)
		seq++
		require.Equal(t, lotRun(seq), run)
	}
	require.Equal(t, through, seq)
}

func TestWhatIsParkedSurvivesTheWorker(t *testing.T) {
	t.Parallel()
	bucket := s3mem.New()
	require.NoError(t, bucket.CreateBucket("lake"))
	s3 := httptest.NewServer(gofakes3.New(bucket).Server())
	t.Cleanup(s3.Close)
	for name, place := range map[string]struct {
		warehouse string
		props     map[string]string
	}{
		"on a local disk": {t.TempDir(), nil},
		"in a bucket": {"s3://lake/wh", map[string]string{
			"s3.endpoint": s3.URL, "s3.access-key-id": "key", "s3.secret-access-key": "secret", "s3.region": "us-east-1",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			r := newLotRig(t, place.warehouse, place.props)
			lot := r.begin(t, r.worker(t))
			require.NoError(t, lot.Park(ctx, lotRun(1)))
			require.NoError(t, lot.Park(ctx, lotRun(2)))

			// The worker is killed between the file and its note.
			killed := errors.New("killed")
			key, err := park.OpenKey(lot.quarantine.Key, lot.quarantine.KeyID, r.worker(t).sealer)
			require.NoError(t, err)
			scope := park.Scope{Source: "shop", Table: "public.orders", Quarantine: lot.quarantine.ID}
			dying := park.New(scope, key, lot.files, diesBeforeNoting{killed})
			cut := lotRun(3)
			cut.Data = cut.Data[:100]
			require.ErrorIs(t, dying.Park(ctx, cut), killed)

			// The next goes on behind what was noted, and may have cut the changes otherwise.
			next := r.worker(t)
			lot = r.reopen(t, next)
			require.EqualValues(t, 2, lot.quarantine.Parked.Runs)
			require.Equal(t, lotPlace(3), lot.quarantine.Parked.Through)
			require.NoError(t, lot.Park(ctx, lotRun(3)))
			folder := park.Folder(lot.quarantine.ID, lot.quarantine.KeyID)
			files, err := lot.files.List(ctx, folder)
			require.NoError(t, err)
			require.Len(t, files, 4)
			require.NoError(t, lot.Sweep(ctx, 3))
			files, err = lot.files.List(ctx, folder)
			require.NoError(t, err)
			require.Len(t, files, 3, "what was never noted is swept")
			readLot(t, lot, 3)

			kept, err := lot.files.Get(ctx, files[0], 1<<20)
			require.NoError(t, err)
			require.NotContains(t, string(kept), planted)

			require.NoError(t, r.Registry.StartReplay(ctx, lot.quarantine.ID))
			require.Equal(t, catalog.CodeQuarantineState, catalog.Public(next.end(ctx, lot)).Code, "bronze does not hold them yet")
			require.NoError(t, r.Registry.NoteReplayed(ctx, lot.quarantine.ID, 3))
			require.NoError(t, next.end(ctx, lot))
			files, err = lot.files.List(ctx, folder)
			require.NoError(t, err)
			require.Empty(t, files)
			q, err := r.Registry.Quarantine(ctx, lot.quarantine.ID)
			require.NoError(t, err)
			require.False(t, q.SweptAt.IsZero())
			_, err = next.open(ctx, *q)
			require.Equal(t, catalog.CodeParkKey, catalog.Public(err).Code, "whoever kept a copy of the files has no key any more")
		})
	}
}

// diesBeforeNoting is the index of a worker that is killed before it notes.
type diesBeforeNoting struct{ err error }

func (d diesBeforeNoting) Note(context.Context, park.Noted) error { return d.err }

func (d diesBeforeNoting) Runs(context.Context, uint64, int) ([]park.Noted, error) { return nil, d.err }

func TestFilesThatCouldNotBeRemovedAreSweptLater(t *testing.T) {
	t.Parallel()
	ctx, warehouse := t.Context(), t.TempDir()
	r := newLotRig(t, warehouse, nil)
	p := r.worker(t)
	lot := r.begin(t, p)
	require.NoError(t, lot.Park(ctx, lotRun(1)))
	// The worker is killed once the key is destroyed.
	require.NoError(t, r.Registry.AbandonQuarantine(ctx, lot.quarantine.ID, "ann", "it is read anew"))
	other := r.begin(t, p) // the table stops again
	require.NotEqual(t, lot.quarantine.ID, other.quarantine.ID)
	require.NoError(t, other.Park(ctx, lotRun(1)))

	require.NoError(t, r.worker(t).sweep(ctx))
	readLot(t, other, 1)
	var left []string
	require.NoError(t, filepath.WalkDir(warehouse, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			left = append(left, path)
			content, rerr := os.ReadFile(path)
			require.NoError(t, rerr)
			require.NotContains(t, string(content), planted)
		}
		return err
	}))
	require.Len(t, left, 1, "%s", left)
}

func TestParkingWithoutATokenKey(t *testing.T) {
	t.Parallel()
	r := newLotRig(t, t.TempDir(), nil)
	r.TokenKey = ""
	lot := r.begin(t, r.worker(t))
	require.NoError(t, lot.Park(t.Context(), lotRun(1)))
	readLot(t, r.reopen(t, r.worker(t)), 1)

	r.TokenKey = "0123456789abcdef0123456789abcdef"
	readLot(t, r.reopen(t, r.worker(t)), 1) // a token key that came later changes nothing

	r.TokenKey = "short"
	l, err := lake.Open(t.Context(), r.Lake, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	_, err = newParking(r.Config, l)
	require.Equal(t, catalog.CodePrivacyKey, catalog.Public(err).Code)
}
