package pipeline_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/fold/foldtest"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// remake makes keys anew from bronze, as a repair does.
func (w *world) remake(t *rapid.T, keys *fold.KeySet) {
	layers, err := w.lake.Open(context.Background(), w.tables[0], foldtest.NewSchema())
	require.NoError(t, err)
	_, _, err = pipeline.Remake(context.Background(), w.tables[0], layers, keys)
	require.NoError(t, err)
}

func someKeys(t *rapid.T) *fold.KeySet {
	if rapid.Bool().Draw(t, "all") {
		return fold.AllKeys()
	}
	keys := fold.NewKeySet()
	for id := range int64(8) {
		if rapid.Bool().Draw(t, "key") {
			keys.Add(foldtest.Key(id))
		}
	}
	return keys
}

func TestMakingKeysAnewChangesNothingThatIsRight(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 1)
		w.run(t)
		w.remake(t, someKeys(t))
		w.requireEqual(t)
	})
}

func TestMakingKeysAnewPutsRightWhatAnotherWriterDid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 1)
		w.run(t)
		w.lake.Table(w.tables[0].Name.String()).Layers.Tamper(t)
		w.remake(t, fold.AllKeys())
		w.requireEqual(t)
	})
}

// What bronze's retention took away is still in the layers, and stays there. (Of
// commits that share a microsecond just where bronze was cut, the times do not tell
// which of them ended a version.)
func TestMakingKeysAnewFromABronzeThatWasCutLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorldOf(t, 1, true)
		w.run(t)
		log := w.models[0].Log
		if len(log) == 0 {
			t.Skip("nothing happened")
		}
		cut := rapid.IntRange(0, len(log)-1).Draw(t, "cut")
		for cut+1 < len(log) && foldtest.SameTransaction(log[cut], log[cut+1]) {
			cut++ // days of ingestion hold whole commits
		}
		m := w.lake.Table(w.tables[0].Name.String())
		m.Forget(log[cut].Position())
		current, history := m.Layers.CurrentText(), m.Layers.HistoryText()
		w.remake(t, someKeys(t))
		require.Equal(t, current, m.Layers.CurrentText(), "current")
		require.Equal(t, history, m.Layers.HistoryText(), "history")
	})
}
