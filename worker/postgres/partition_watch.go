package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// partWatch heals what partitions brought and took without a word in the log.
type partWatch struct {
	*Source

	nudges chan struct{} // the DDL log told of one of the tables
	mu     sync.Mutex    // over the fields of parted, and heals
	heals  int64         // numbers of requests, downwards from zero: others count upwards
	answer sync.Map      // number → chan catalog.LSN: how far the log was when it was answered
}

// watchPartitions looks at the leaves of partitioned tables at the heartbeat's pace,
// until the context ends.
func (s *Source) watchPartitions(ctx context.Context) {
	every := 10 * time.Second
	if interval := s.cfg.Source.Heartbeat.Interval; interval > 0 {
		every = interval
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	failing := false
	for {
		err := s.lookAtPartitions(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing {
			s.log.WarnContext(ctx, "the partitions cannot be looked at, trying again", "source", s.cfg.Source.Name, "error", serverMessage(err))
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.watch.nudges:
		}
	}
}

// altered has the partitions looked at soon, when the table is one that is watched.
func (w *partWatch) altered(oid uint32) {
	w.mu.Lock()
	watched := slices.ContainsFunc(w.parts, func(p *parted) bool {
		return p.root.OID == oid || slices.ContainsFunc(p.known, func(r catalog.Relation) bool { return r.OID == oid })
	})
	w.mu.Unlock()
	if watched {
		select {
		case w.nudges <- struct{}{}:
		default:
		}
	}
}

func (s *Source) lookAtPartitions(ctx context.Context) error {
	roots := make([]uint32, 0, len(s.parts))
	for _, p := range s.parts {
		roots = append(roots, p.root.OID)
	}
	within, cancel := context.WithTimeout(ctx, s.cfg.Limits.ConnectTimeout)
	defer cancel()
	leaves, err := gatherLeaves(within, s.pool, roots)
	if err != nil {
		return err
	}
	for _, p := range s.parts {
		s.watch.mu.Lock()
		change := comparePartitions(p.known, leaves[p.root.OID])
		idle := !p.busy && (len(change.added) > 0 || len(change.gone) > 0 || len(change.rewritten) > 0)
		p.busy = p.busy || idle
		s.watch.mu.Unlock()
		if idle {
			s.running.Go(func() { s.watch.heal(ctx, p, change) })
		}
	}
	return nil
}

// heal reads what came and has what went removed. What is done is noted; what is not,
// because the context ended, is found again by the next look or the next run.
func (w *partWatch) heal(ctx context.Context, p *parted, c partChange) {
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		p.busy = false
	}()
	name := p.table.Name.String()
	if err := w.bring(ctx, p, c.added); err != nil {
		w.failed(ctx, p, catalog.CodeSourceAttached, "rows that came with "+namesOf(relationsOf(c.added))+" cannot be read", err)
		return
	}
	if len(c.gone)+len(c.rewritten) == 0 {
		return
	}
	went := append(slices.Clone(c.gone), c.rewritten...)
	w.log.WarnContext(ctx, "partitions were detached, dropped, truncated or rewritten; the table is compared with the source and repaired", "table", p.table.ID(), "partitions", namesOf(went))
	var err error = errNoKeeper
	if w.cfg.Partitions != nil {
		err = w.cfg.Partitions.Gone(ctx, name, namesList(went))
	}
	if err == nil {
		err = w.note(ctx, p, func(known []catalog.Relation) []catalog.Relation {
			known = slices.DeleteFunc(known, func(r catalog.Relation) bool {
				return slices.ContainsFunc(went, func(g catalog.Relation) bool { return g.OID == r.OID })
			})
			return append(known, c.rewritten...)
		})
	}
	if err != nil {
		w.failed(ctx, p, catalog.CodeSourceDetached, "rows went with "+namesOf(went)+" without a trace in the log, and the lake still has them", err)
		return
	}
	w.log.InfoContext(ctx, "the table is in step with its partitions again", "table", p.table.ID())
}

var errNoKeeper = catalog.Errorf(catalog.Invalid, catalog.CodeSourceDetached, "", "nobody repairs it")

// failed tries again where that may help, and else stops the table.
func (w *partWatch) failed(ctx context.Context, p *parted, code catalog.Code, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	if catalog.KindOf(err).Retryable() || isConnectionError(err) {
		w.log.WarnContext(ctx, "the table's partitions are not in step yet, trying again", "table", p.table.ID(), "error", serverMessage(err))
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Second):
		}
		return
	}
	e := catalog.Errorf(catalog.Conflict, code,
		"see lakeweir reconcile "+p.table.ID()+" for which rows; start the worker again to have it tried once more",
		"%s: %s", what, serverMessage(err))
	e.Err = err
	w.asked.stop(p.table.Name.String(), e)
}

// bring reads the rows of new leaves by their keys, through the root, and notes the
// leaves once bronze holds them.
func (w *partWatch) bring(ctx context.Context, p *parted, added []leaf) error {
	var withRows []leaf
	for _, l := range added {
		some, err := w.hasRows(ctx, p, l)
		if err != nil {
			return err
		}
		if some {
			withRows = append(withRows, l)
		}
	}
	if len(withRows) > 0 {
		if !p.table.HasKey() {
			return catalog.Errorf(catalog.Invalid, catalog.CodeSourceAttached, "", "the table has no key to read them by")
		}
		names := namesList(relationsOf(withRows))
		w.log.InfoContext(ctx, "partitions came with rows, reading them", "table", p.table.ID(), "partitions", strings.Join(names, ", "))
		if w.cfg.Partitions != nil {
			w.cfg.Partitions.Attached(ctx, p.table.Name.String(), names)
		}
	}
	for _, l := range withRows {
		if err := w.readLeaf(ctx, p, l); err != nil {
			return err
		}
	}
	if len(added) == 0 {
		return nil
	}
	return w.note(ctx, p, func(known []catalog.Relation) []catalog.Relation { return append(known, relationsOf(added)...) })
}

// from is where the leaf's rows are read: the leaf itself where the role may, else the
// root, which costs a look at all leaves.
func (p *parted) from(l leaf) (name, condition string) {
	if l.selectable {
		schema, table, _ := strings.Cut(l.Name, ".")
		return quoteName(catalog.TableName{Schema: schema, Name: table}), "true"
	}
	return quoteName(p.table.Name), "tableoid = " + strconv.FormatUint(uint64(l.OID), 10)
}

func (w *partWatch) hasRows(ctx context.Context, p *parted, l leaf) (some bool, err error) {
	name, condition := p.from(l)
	err = w.pool.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM "+name+" l WHERE "+condition+")").Scan(&some)
	return some, err
}

// leafKeys is how many keys of a leaf are asked for at a time.
const leafKeys = 5000

// readLeaf pages through the keys of a leaf and has their rows read again. A row that
// comes or goes meanwhile is in the log, or answered as gone.
func (w *partWatch) readLeaf(ctx context.Context, p *parted, l leaf) error {
	name, condition := p.from(l)
	key, texts := make([]string, len(p.key)), make([]string, len(p.key))
	for i, k := range p.key {
		key[i] = "l." + quoteIdent(k) // ORDER BY id alone would be by the text of that name
		texts[i] = key[i] + "::text"
	}
	tuple := "(" + strings.Join(key, ", ") + ")"
	var after []string
	for at := catalog.LSN(0); ; {
		sql := "SELECT " + strings.Join(texts, ", ") + " FROM " + name + " l WHERE " + condition
		args := make([][]byte, 0, len(after))
		if after != nil {
			marks := make([]string, len(after))
			for i, v := range after {
				args = append(args, []byte(v))
				marks[i] = "$" + strconv.Itoa(i+1)
			}
			sql += " AND " + tuple + " > (" + strings.Join(marks, ", ") + ")"
		}
		sql += " ORDER BY " + strings.Join(key, ", ") + " LIMIT " + strconv.Itoa(leafKeys)
		keys, err := w.keys(ctx, sql, args)
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			return w.inBronze(ctx, at)
		}
		after = keys[len(keys)-1]
		if at, err = w.ask(ctx, p, keys); err != nil {
			return err
		}
	}
}

// keys reads keys as texts; the server knows the types of the parameters.
func (w *partWatch) keys(ctx context.Context, sql string, args [][]byte) ([][]string, error) {
	pooled, err := w.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer pooled.Release()
	result := pooled.Conn().PgConn().ExecParams(ctx, sql, args, nil, nil, nil).Read()
	if result.Err != nil {
		return nil, result.Err
	}
	keys := make([][]string, len(result.Rows))
	for i, row := range result.Rows {
		for _, v := range row {
			keys[i] = append(keys[i], string(v))
		}
	}
	return keys, nil
}

// ask has rows read again, and returns how far the log was when they were handed over.
func (w *partWatch) ask(ctx context.Context, p *parted, keys [][]string) (catalog.LSN, error) {
	w.mu.Lock()
	w.heals--
	id := w.heals
	w.mu.Unlock()
	answered := make(chan catalog.LSN, 1)
	w.answer.Store(id, answered)
	defer w.answer.Delete(id)
	w.asked.reread(pipeline.Reread{ID: id, Table: p.table.Name.String(), Keys: keys})
	select {
	case at := <-answered:
		return at, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// inBronze waits until bronze holds what was handed over by then.
func (w *partWatch) inBronze(ctx context.Context, at catalog.LSN) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for w.asked.saved() < at {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// answers takes the numbers of our own requests out of those that were answered.
func (s *Source) answers(ids []int64) []int64 {
	return slices.DeleteFunc(ids, func(id int64) bool {
		if id >= 0 {
			return false
		}
		if c, ok := s.watch.answer.Load(id); ok {
			c.(chan catalog.LSN) <- s.through //nolint:forcetypeassert // nothing else is stored; it has room for the one answer
		}
		return true
	})
}

// note changes what is known of a table's leaves, durably first.
func (w *partWatch) note(ctx context.Context, p *parted, change func([]catalog.Relation) []catalog.Relation) error {
	w.mu.Lock()
	next := change(slices.Clone(p.known))
	w.mu.Unlock()
	if err := w.cfg.TableNotes.WriteRelations(ctx, p.table.Name.String(), append([]catalog.Relation{p.root}, next...)); err != nil {
		return fmt.Errorf("note the partitions of table %s: %w", p.table.ID(), err)
	}
	w.mu.Lock()
	p.known = next
	w.mu.Unlock()
	return nil
}

func relationsOf(leaves []leaf) []catalog.Relation {
	out := make([]catalog.Relation, len(leaves))
	for i, l := range leaves {
		out[i] = l.Relation
	}
	return out
}

func namesList(relations []catalog.Relation) []string {
	out := make([]string, len(relations))
	for i, r := range relations {
		out[i] = r.Name
	}
	return out
}

func namesOf(relations []catalog.Relation) string {
	names := namesList(relations)
	word := "partition "
	if len(names) > 1 {
		word = "partitions "
	}
	if n := len(names); n > 3 {
		return word + strings.Join(names[:3], ", ") + " and " + strconv.Itoa(n-3) + " more"
	}
	return word + strings.Join(names, ", ")
}
