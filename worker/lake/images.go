package lake

import (
	"container/list"
	"sync"

	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

// imageCache keeps rows that were written lately, as they would be read back, so
// that rows that change often are not read from their files each time. Files that
// were not used for longest go first. Safe for concurrent use.
type imageCache struct {
	mu    sync.Mutex
	limit int64
	size  int64
	order *list.List // of *cachedFile, the last used first
	files map[cacheKey]*list.Element
}

type cacheKey struct {
	layer *layer
	file  int32
}

// cachedFile is all rows of one file: of current or of history.
type cachedFile struct {
	key      cacheKey
	size     int64
	rows     *change.Rows
	current  []fold.CurrentRow
	versions []fold.Version
}

func newImageCache(limit int64) *imageCache {
	return &imageCache{limit: limit, order: list.New(), files: map[cacheKey]*list.Element{}}
}

// fits reports whether rows of a size are worth keeping at all.
func (c *imageCache) fits(size int64) bool { return size <= c.limit/4 }

func (c *imageCache) put(f *cachedFile) {
	if !c.fits(f.size) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files[f.key] = c.order.PushFront(f)
	c.size += f.size
	for c.size > c.limit {
		c.evict(c.order.Back())
	}
}

func (c *imageCache) get(l *layer, file int32) *cachedFile {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.files[cacheKey{l, file}]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return fileOf(e)
}

// drop forgets everything of a layer.
func (c *imageCache) drop(l *layer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.order.Front(); e != nil; {
		next := e.Next()
		if fileOf(e).key.layer == l {
			c.evict(e)
		}
		e = next
	}
}

func (c *imageCache) evict(e *list.Element) {
	f := fileOf(e)
	c.order.Remove(e)
	delete(c.files, f.key)
	c.size -= f.size
}

func fileOf(e *list.Element) *cachedFile {
	f, _ := e.Value.(*cachedFile) // nothing else is put into the list
	return f
}

// copyImage adds a copy of an image to rows as it will be read back: cells without
// a value are NULL, unless they were never sent.
func copyImage(rows *change.Rows, from change.Ref) change.Ref {
	row := rows.CopyRow(from.Rows, from.Row)
	for col := range rows.Schema().Columns {
		switch rows.Mark(row, col) {
		case change.Absent, change.Unfit:
			rows.SetMark(row, col, change.Null)
		case change.Null, change.Present, change.Filled, change.Unavailable:
		}
	}
	return change.Ref{Rows: rows, Row: row}
}
