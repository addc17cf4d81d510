package worker_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// schedule is everything that one run does, made of its seed alone. What it cannot
// fix is how the threads of shop, server and worker interleave: at which row the n-th
// write comes, and between which two of its steps a cut connection catches the
// server.
type schedule struct {
	Catalog string // sqlite, rest or postgres
	Own     string // how the run's own Postgres is restarted in its second life; else ""
	Format  int
	Chunk   int
	Tables  []string
	Clean   bool // the first snapshot is taken in peace
	Lives   []life
}

// life is one life of the worker's process.
type life struct {
	Before  []event // what others do while no worker runs
	Trouble trouble
	Catalog []fault
	// CutAt has the slot's connection cut when so many snapshots are staged; 0 never.
	CutAt int
	// Second has a second worker try to run the source meanwhile.
	Second bool
	// Ends is after how many staged snapshots the life ends, unless it ends itself.
	Ends int
	Kill bool // by SIGKILL, not by SIGTERM
}

// fault comes at the At-th commit that the catalog is asked for.
type fault struct {
	Kind    string
	At, For int
}

// event is what somebody does to the lake or the source between two lives.
type event struct {
	Kind string
	N    int // of what; its meaning is the kind's
}

// The kinds of trouble with the catalog.
const (
	commitRefused    = "commit refused"
	replyLost        = "commit reply lost"
	replyCut         = "commit connection cut after it"
	catalogDown      = "catalog down"
	killedCommit     = "SIGKILL before a commit"
	killedCommitted  = "SIGKILL after a commit"
	rivalProperty    = "another writer sets a property first"
	rivalManifests   = "another writer makes a snapshot first"
	rivalCompacts    = "another writer compacts first"
	rivalColumn      = "another writer adds a column first"
	rivalRollsBack   = "another writer rolls silver back first"
	rivalExpires     = "another writer expires snapshots first"
	silverRolledBack = "silver rolled back"
	bronzeRolledBack = "bronze rolled back and forward"
	compacted        = "compacted by another engine"
	expired          = "snapshots expired by others"
	expiredUntagged  = "tags dropped and snapshots expired"
	orphansRemoved   = "orphans removed by others"
	silverDropped    = "silver table dropped"
	clockJumped      = "worker's clock jumped"
	sourceJumped     = "source's clock jumped"
	slotBusy         = "slot busy"
	slotCut          = "slot connection cut"
	secondWorker     = "second worker"
	pgRestarted      = "Postgres restarted"
	pgCrashed        = "Postgres crashed"
	killed           = "SIGKILL"
	ended            = "SIGTERM"
)

var (
	fileKinds    = []string{warehouseDown, readsFail, diskFull, notSynced, slowDisk}
	fileDeaths   = []string{killedBefore, killedWithin, killedAfter}
	catalogKinds = []string{
		commitRefused, replyLost, replyCut, catalogDown,
		rivalProperty, rivalManifests, rivalCompacts, rivalColumn, rivalRollsBack, rivalExpires,
	}
	catalogDeaths = []string{killedCommit, killedCommitted}
	eventKinds    = []string{
		silverRolledBack, silverRolledBack, bronzeRolledBack, compacted, expired, expiredUntagged, orphansRemoved,
		silverDropped, clockJumped, sourceJumped, slotBusy,
	}
	otherKinds = []string{slotCut, secondWorker, pgRestarted, pgCrashed, killed, ended}
)

// shopTables are those that a run may replicate: three of them, so that it is short.
var shopTables = []string{"customers", "documents", "event_log", "order_items", "orders", "payments", "refunds"}

func allKinds() []string {
	all := slices.Concat(fileKinds, fileDeaths, catalogKinds, catalogDeaths, eventKinds, otherKinds)
	slices.Sort(all)
	return slices.Compact(all)
}

func newSchedule(seed uint64) schedule {
	random := rand.New(rand.NewPCG(seed, 0))
	pick := func(kinds []string) string { return kinds[random.IntN(len(kinds))] }
	s := schedule{
		Catalog: pick([]string{"rest", "rest", "rest", "postgres", "sqlite"}),
		Format:  2 + random.IntN(2), Chunk: 20 + random.IntN(60), Clean: random.IntN(3) > 0,
	}
	for _, i := range random.Perm(len(shopTables))[:3] {
		s.Tables = append(s.Tables, shopTables[i])
	}
	if seed%10 == 0 {
		s.Own = []string{pgRestarted, pgCrashed}[seed/10%2]
	}
	for n := range 2 + random.IntN(2) {
		l := life{Ends: 8 + random.IntN(25), Kill: random.IntN(3) == 0, Trouble: trouble{Says: true, Save: 60 * time.Millisecond}}
		if n > 0 || s.Clean {
			for range random.IntN(3) {
				l.Before = append(l.Before, event{pick(eventKinds), random.IntN(1000)})
			}
		}
		if i := slices.IndexFunc(l.Before, func(e event) bool { return e.Kind == clockJumped }); i >= 0 {
			l.Trouble.Clock = time.Duration(l.Before[i].N%13-6) * time.Hour
		}
		catalog := s.Catalog != "sqlite" // a file cannot be stood before
		for range 1 + random.IntN(2) {
			l.Trouble.Files = append(l.Trouble.Files, fileFault{pick(fileKinds), 1 + random.IntN(60), 1 + random.IntN(4)})
		}
		for range 3 + random.IntN(3) {
			if catalog {
				l.Catalog = append(l.Catalog, fault{pick(catalogKinds), 1 + random.IntN(24), 1 + random.IntN(5)})
			}
		}
		switch n := random.IntN(10); { // one death at most
		case n < 2 || n < 4 && !catalog:
			l.Trouble.Files = append(l.Trouble.Files, fileFault{pick(fileDeaths), 8 + random.IntN(80), 1})
		case n < 4:
			l.Catalog = append(l.Catalog, fault{pick(catalogDeaths), 4 + random.IntN(24), 1})
		}
		if random.IntN(3) == 0 {
			l.CutAt = 1 + random.IntN(20)
		}
		l.Second = random.IntN(8) == 0
		s.Lives = append(s.Lives, l)
	}
	return s
}

func (s schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v, catalog %s, format %d, chunks of %d, first snapshot in peace: %v %s\n", s.Tables, s.Catalog, s.Format, s.Chunk, s.Clean, s.Own)
	for i, l := range s.Lives {
		fmt.Fprintf(&b, "life %d: before %v, files %v, catalog %v, slot cut at %d, second worker %v, ends after %d, by SIGKILL %v\n",
			i+1, l.Before, l.Trouble.Files, l.Catalog, l.CutAt, l.Second, l.Ends, l.Kill)
	}
	return b.String()
}
