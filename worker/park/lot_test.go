package park

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
)

// folders is a Store in memory.
type folders struct {
	files map[string][]byte
	fails func(op, name string) error
}

func newFolders() *folders { return &folders{files: map[string][]byte{}} }

func (f *folders) fail(op, name string) error {
	if f.fails == nil {
		return nil
	}
	return f.fails(op, name)
}

func (f *folders) Put(_ context.Context, name string, content []byte) error {
	if _, there := f.files[name]; there {
		return fmt.Errorf("%s is written twice", name)
	}
	f.files[name] = bytes.Clone(content)
	return f.fail("put", name)
}

func (f *folders) Get(_ context.Context, name string, most int64) ([]byte, error) {
	b, ok := f.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if int64(len(b)) > most {
		return nil, errors.New("too large")
	}
	return bytes.Clone(b), f.fail("get", name)
}

func (f *folders) List(_ context.Context, folder string) (out []string, err error) {
	for name := range f.files {
		if strings.HasPrefix(name, folder+"/") {
			out = append(out, name)
		}
	}
	return out, f.fail("list", folder)
}

func (f *folders) Delete(_ context.Context, names ...string) error {
	for _, name := range names {
		delete(f.files, name)
	}
	return nil
}

// notes is an Index in memory.
type notes struct {
	runs  []Noted
	fails func() error // after it was noted
	lost  func() error // before
}

func (n *notes) Note(_ context.Context, run Noted) error {
	if n.lost != nil {
		if err := n.lost(); err != nil {
			return err
		}
	}
	switch next := uint64(len(n.runs)) + 1; {
	case run.Seq == next:
		n.runs = append(n.runs, run)
	case run.Seq == 0, run.Seq > next:
		return errors.New("not the next one")
	case !n.runs[run.Seq-1].To.Equal(run.To):
		return errors.New("noted with other changes")
	}
	if n.fails != nil {
		return n.fails()
	}
	return nil
}

func (n *notes) Runs(_ context.Context, after uint64, most int) (out []Noted, err error) {
	for _, r := range n.runs {
		if r.Seq > after && len(out) < min(most, 2) { // in small pages
			out = append(out, r)
		}
	}
	return out, nil
}

func run(seq uint64, data string) Run {
	at := func(n uint64) catalog.Place {
		return catalog.Place{Position: catalog.Position{Generation: 1, Commit: catalog.LSN(n), Ordinal: n}}
	}
	return Run{Seq: seq, Data: []byte(data), Events: len(data), From: at(seq), To: at(seq + 1)}
}

func lotOf(store Store, index Index) *Lot { return New(scope, NewKey(), store, index) }

func read(l *Lot, after, through uint64) (out []Run, err error) {
	for r, err := range l.Runs(context.Background(), after, through) {
		if err != nil {
			return out, err
		}
		out = append(out, r)
	}
	return out, nil
}

func TestRunsComeBackInOrder(t *testing.T) {
	t.Parallel()
	store, index := newFolders(), &notes{}
	l := lotOf(store, index)
	var want []Run
	for i, data := range []string{"a", "", "ccc", "dddd", "e"} {
		want = append(want, run(uint64(i)+1, data))
		require.NoError(t, l.Park(t.Context(), want[i]))
	}
	for after := range want {
		for through := after; through <= len(want); through++ {
			got, err := read(l, uint64(after), uint64(through))
			require.NoError(t, err)
			require.Len(t, got, through-after)
			for i, r := range got {
				require.Equal(t, want[after+i].Seq, r.Seq)
				require.Equal(t, string(want[after+i].Data), string(r.Data))
				require.Equal(t, want[after+i].To, r.To)
			}
		}
	}
	for name := range store.files {
		require.Regexp(t, `^7-[0-9a-f]{16}/000000000[1-5]-[0-9a-f]{16}$`, name)
	}
	for r := range l.Runs(t.Context(), 0, 5) { // whoever stops early is let go
		require.EqualValues(t, 1, r.Seq)
		break
	}
}

func TestWhatIsMissingOrSwappedIsSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trouble func(*folders, *notes)
		code    catalog.Code
		after   int // runs that come back before
	}{
		"a file is gone":        {func(s *folders, n *notes) { delete(s.files, n.runs[1].File) }, catalog.CodeParkMissing, 1},
		"a file is cut":         {func(s *folders, n *notes) { s.files[n.runs[2].File] = s.files[n.runs[2].File][:40] }, catalog.CodeParkDamaged, 2},
		"a note is gone":        {func(_ *folders, n *notes) { n.runs = slices.Delete(n.runs, 1, 2) }, catalog.CodeParkMissing, 1},
		"the last note is gone": {func(_ *folders, n *notes) { n.runs = n.runs[:3] }, catalog.CodeParkMissing, 3},
		"two files are swapped": {func(s *folders, n *notes) {
			a, b := n.runs[0].File, n.runs[1].File
			s.files[a], s.files[b] = s.files[b], s.files[a]
		}, catalog.CodeParkDamaged, 0},
		"two notes are swapped":  {func(_ *folders, n *notes) { n.runs[2].File, n.runs[3].File = n.runs[3].File, n.runs[2].File }, catalog.CodeParkDamaged, 2},
		"another attempt's file": {func(s *folders, n *notes) { s.files[n.runs[3].File] = s.files["stray"] }, catalog.CodeParkDamaged, 3},
		"a file of another quarantine": {func(s *folders, n *notes) {
			other := New(Scope{scope.Source, scope.Table, 8}, NewKey(), s, &notes{})
			_ = other.Park(context.Background(), run(1, "x"))
			for name, b := range maps.Clone(s.files) {
				if strings.HasPrefix(name, "8-") {
					s.files[n.runs[0].File] = b
				}
			}
		}, catalog.CodeParkKey, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, index := newFolders(), &notes{}
			l := lotOf(store, index)
			for seq := range uint64(4) {
				require.NoError(t, l.Park(t.Context(), run(seq+1, "data")))
			}
			stray, err := seal(l.key, scope, 4, []byte("data, and more that came with it"))
			require.NoError(t, err)
			store.files["stray"] = stray
			c.trouble(store, index)
			got, err := read(l, 0, 4)
			require.Equal(t, c.code, code(err))
			require.NotEmpty(t, catalog.Public(err).Hint)
			require.Len(t, got, c.after)
		})
	}
}

func TestTroubleOfTheStoreIsNoDamage(t *testing.T) {
	t.Parallel()
	store := newFolders()
	l := lotOf(store, &notes{})
	require.NoError(t, l.Park(t.Context(), run(1, "x")))
	down := catalog.Errorf(catalog.Unavailable, catalog.CodeLakeUnavailable, "", "down")
	store.fails = func(string, string) error { return down }
	_, err := read(l, 0, 1)
	require.ErrorIs(t, err, down)
	require.ErrorIs(t, l.Park(t.Context(), run(2, "x")), down)
	require.ErrorIs(t, l.Sweep(t.Context(), 1), down)
}

// TestARunCountsOnceWhateverFails parks runs while writing, noting and answering fail at
// random, trying again and starting anew as a worker does: what comes back is each run
// once, and a sweep leaves nothing else.
func TestARunCountsOnceWhateverFails(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		down := errors.New("down")
		fails := func(what string) func() error {
			return func() error {
				if rapid.IntRange(0, 3).Draw(t, what) == 0 {
					return down
				}
				return nil
			}
		}
		store, index, key := newFolders(), &notes{lost: fails("note"), fails: fails("answer")}, NewKey()
		store.fails = func(op, _ string) error { return fails(op)() }
		l := New(scope, key, store, index)
		total := rapid.Uint64Range(1, 6).Draw(t, "runs")
		for seq := uint64(1); seq <= total; {
			err := l.Park(context.Background(), run(seq, fmt.Sprint("run ", seq)))
			switch {
			case err == nil:
				seq++
			case rapid.Bool().Draw(t, "killed"): // it goes on behind what the index says
				l, seq = New(scope, key, store, index), uint64(len(index.runs))+1
			}
		}
		store.fails, index.fails, index.lost = nil, nil, nil
		require.NoError(t, l.Sweep(context.Background(), total))
		require.Len(t, store.files, int(total))
		got, err := read(l, 0, total)
		require.NoError(t, err)
		for i, r := range got {
			require.Equal(t, fmt.Sprint("run ", i+1), string(r.Data))
		}
		require.Len(t, got, int(total))
	})
}

func TestASweepLeavesWhatMayStillBeNoted(t *testing.T) {
	t.Parallel()
	store, index := newFolders(), &notes{}
	l := lotOf(store, index)
	require.NoError(t, l.Park(t.Context(), run(1, "x")))
	index.lost = func() error { return errors.New("killed before the note") }
	require.Error(t, l.Park(t.Context(), run(2, "y")))
	require.Len(t, store.files, 2)
	require.NoError(t, l.Sweep(t.Context(), 1))
	require.Len(t, store.files, 2, "number 2 is not taken: a note of it may be on its way")

	index.lost = nil
	require.NoError(t, l.Park(t.Context(), run(2, "y")))
	require.NoError(t, l.Sweep(t.Context(), 2))
	require.Len(t, store.files, 2)
	index.runs = nil
	require.Equal(t, catalog.CodeParkMissing, code(l.Sweep(t.Context(), 2)), "an index that lost its notes sweeps nothing")
	require.Len(t, store.files, 2)

	require.NoError(t, store.Put(t.Context(), "7-other/0000000001-x", nil))
	require.NoError(t, Clear(t.Context(), store, 7, l.key.ID()))
	require.Len(t, store.files, 1, "the files of another key stay")
}
