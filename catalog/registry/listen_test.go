package registry_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
)

const never = time.Hour // no look in between, for a test of notices alone

// heard has somebody listen, and returns a channel with one word for each time that it
// is told of something, the first time included.
func heard(t *testing.T, b *bundle, source string, every time.Duration) <-chan struct{} {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	news, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for range b.Listen(ctx, source, every) {
			select {
			case news <- struct{}{}:
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	hear(t, news, "at first")
	return news
}

func hear(t *testing.T, news <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-news:
	case <-time.After(30 * time.Second):
		t.Fatal("nobody was told: " + what)
	}
}

func TestWhoeverListensIsToldOfEveryChange(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	all, ours := heard(t, b, "", never), heard(t, b, "shop", never)
	other := heard(t, b, "other", never)
	var c *registry.SchemaChange
	var q *registry.Quarantine
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"found", func() (err error) { c, err = b.RecordSchemaChange(ctx, "shop", renamed(place(1))); return err }},
		{"judged", func() error { return b.JudgeSchemaChange(ctx, c.ID, judged(catalog.Hold), nil, "p") }},
		{"approved", func() error { return b.ApproveSchemaChange(ctx, c.ID, "ann", "", nil) }},
		{"applied", func() error { return b.MarkSchemaApplied(ctx, c.ID) }},
		{"begun", func() (err error) { q, err = b.BeginQuarantine(ctx, "shop", stopped("public.orders")); return err }},
		{"release asked", func() error { return b.AskRelease(ctx, q.ID, "ann", "") }},
		{"asked again", func() error { return b.AskRelease(ctx, q.ID, "ann", "") }},
		{"replaying", func() error { return b.StartReplay(ctx, q.ID) }},
		{"released", func() error { return b.EndQuarantine(ctx, q.ID) }},
		{"skip", func() error {
			return b.AddSkip(ctx, "shop", registry.Skip{Table: "public.orders", Position: place(3).Position, By: "ann"})
		}},
	} {
		require.NoError(t, step.do(), step.what)
		hear(t, all, step.what)
		hear(t, ours, step.what)
	}
	select {
	case <-other:
		t.Fatal("a source was told of another's")
	default:
	}
}

func TestWhatComesWhileTheListenerIsBusyIsToldOfInOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rounds := 0
	for range b.Listen(ctx, "shop", never) {
		rounds++
		if rounds == 1 {
			for n := range uint64(50) {
				_, err := b.RecordSchemaChange(ctx, "shop", renamed(place(n+1)))
				require.NoError(t, err)
			}
			continue
		}
		pending, err := b.PendingSchemaChanges(ctx, "shop")
		require.NoError(t, err)
		require.Len(t, pending, 50)
		time.AfterFunc(300*time.Millisecond, cancel) // time for 48 rounds too many
	}
	require.Equal(t, 2, rounds)
}

func TestAListenerLooksAgainWhenNothingReachesIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	news := heard(t, b, "shop", 50*time.Millisecond)
	hear(t, news, "behind a pooler no notice arrives")

	// As when the registry starts again: the connection goes, with what it was to bring.
	_, err := b.conn.Exec(ctx, `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'lakeweir listens' and datname = current_database()`)
	require.NoError(t, err)
	for range 3 {
		hear(t, news, "after the connection was lost")
	}
	listens := func() (n int) {
		require.NoError(t, b.conn.QueryRow(ctx, `select count(*) from pg_stat_activity where application_name = 'lakeweir listens' and datname = current_database()`).Scan(&n))
		return n
	}
	for deadline := time.Now().Add(30 * time.Second); listens() == 0; hear(t, news, "while it connects again") {
		require.True(t, time.Now().Before(deadline), "it listens no more")
	}
}

func TestListeningEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rounds := 0
	for range b.Listen(ctx, "shop", never) {
		rounds++
		cancel()
	}
	require.Equal(t, 1, rounds)
	b.Close() // and needs no registry
	for range b.Listen(t.Context(), "shop", never) {
		break
	}
}
