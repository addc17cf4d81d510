package lake

import (
	"context"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/lakeweir/lakeweir/worker/fold"
)

// closedTimes is when the versions of keys ended that ended after a time. It belongs
// to a ledger, like the key index, and is only filled when a clock runs backwards.
type closedTimes struct {
	since int64
	last  map[xxh3.Uint128]int64
}

const (
	// closedSlack is how much further back is looked than was asked for, in
	// microseconds: the next one that is asked for is about as far back.
	closedSlack = 60_000_000
	// mostClosed bounds what is remembered: 40 MiB.
	mostClosed = 1_000_000
)

func (c *closedTimes) put(key []byte, to int64) {
	if h := xxh3.Hash128(key); to > c.since && to > c.last[h] {
		c.last[h] = to
	}
}

// FindClosed returns when the last closed version of each of the keys ended, if that
// was after a time.
func (h *history) FindClosed(ctx context.Context, keys [][]byte, since int64) ([]fold.VersionFound, error) {
	lg, err := h.index(ctx)
	if err != nil {
		return nil, err
	}
	times := lg.closed
	if times == nil || times.since > since {
		if times, err = h.readClosed(ctx, lg, since-closedSlack, nil); err == nil && times == nil {
			times, err = h.readClosed(ctx, lg, since, nil)
		}
		if err != nil {
			return nil, err
		}
		if lg.closed = times; times == nil { // too many to remember
			if times, err = h.readClosed(ctx, lg, since, fold.NewKeySet(keys...)); err != nil {
				return nil, err
			}
		}
	}
	var out []fold.VersionFound
	for _, key := range keys {
		if to := times.last[xxh3.Hash128(key)]; to > since {
			out = append(out, fold.Closed(key, to))
		}
	}
	return out, nil
}

// readClosed reads when versions ended that ended after a time, of the given keys or
// of all. It returns nil when there are too many.
func (h *history) readClosed(ctx context.Context, lg *ledger, since int64, only *fold.KeySet) (*closedTimes, error) {
	times := &closedTimes{since: since, last: map[xxh3.Uint128]int64{}}
	keys, o := h.keyReader(), h.own(colValidTo)
	var filter keyFilter
	if only != nil {
		filter = newKeyFilter(h.schema, only)
	}
	fields := append(o.fields(), keys.fields...)
	after := h.seqBefore(since)
	for _, file := range lg.inOrder() {
		if file.seq <= after || !filter.mayHold(file, keys.fields) {
			continue
		}
		err := h.eachLiveOf(ctx, file, fields, func(_ *dataFile, rec record, sel []int) error {
			to, err := o.ints(rec, colValidTo, typeInstant)
			if err != nil {
				return err
			}
			late := sel[:0]
			for _, i := range sel {
				if v := to(i); v > since && v != fold.Open {
					late = append(late, i)
				}
			}
			if len(late) == 0 {
				return nil
			}
			return keys.each(rec, late, func(i int, key []byte) error {
				if only == nil || only.Has(key) {
					times.put(key, to(i))
				}
				return nil
			})
		})
		if err != nil {
			return nil, err
		}
		if only == nil && len(times.last) > mostClosed {
			return nil, nil //nolint:nilnil // said above
		}
	}
	return times, nil
}

// seqBefore returns the sequence number of the newest snapshot whose rows all began
// and ended at or before a time: versions that ended later are in newer files.
func (h *history) seqBefore(at int64) int64 {
	md := h.tbl.Metadata()
	for s := md.CurrentSnapshot(); s != nil; s = md.SnapshotByID(*s.ParentSnapshotID) {
		if s.Summary != nil && s.Summary.Properties[propCursor] != "" {
			if t, err := strconv.ParseInt(s.Summary.Properties[propCommitTime], 10, 64); err == nil && t <= at {
				return s.SequenceNumber
			}
		}
		if s.ParentSnapshotID == nil {
			break
		}
	}
	return -1
}

// noteClosed brings what is remembered up to date with a result that has landed.
// whole says that no closed version was removed.
func (h *history) noteClosed(lg *ledger, rows []fold.Version, whole bool) error {
	switch {
	case lg.closed == nil:
		return nil
	case !whole || len(lg.closed.last) > mostClosed:
		lg.closed = nil
		return nil
	}
	var key []byte
	for i := range rows {
		if rows[i].To == fold.Open {
			continue
		}
		var err error
		if key, err = rows[i].Image.Rows.AppendKey(key[:0], rows[i].Image.Row); err != nil {
			return err
		}
		lg.closed.put(key, rows[i].To)
	}
	return nil
}
