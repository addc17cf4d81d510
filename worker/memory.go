package worker

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/lakeweir/lakeweir/worker/lake"
)

const (
	// DefaultMemory is Config.Memory where none is given.
	DefaultMemory = 512 << 20
	// LeastMemory is the least that Config.Memory may be.
	LeastMemory = 256 << 20
	// bytesAChange is how much of the memory allows for one more change in a batch:
	// folding one into history takes about a fifth of that.
	bytesAChange = 5 << 10
)

// share sets the bounds that were left open to their parts of the worker's memory.
// What is not in them is what reading and encoding take besides the changes
// themselves, the key index, and the program.
func (c *Config) share() {
	if c.Memory == 0 {
		c.Memory = DefaultMemory
	}
	c.Memory = max(c.Memory, LeastMemory)
	part := func(v *int, numerator, most int64) {
		if *v == 0 {
			*v = int(min(c.Memory*numerator/64, most))
		}
	}
	part64 := func(v *int64, numerator, most int64) {
		if *v == 0 {
			*v = min(c.Memory*numerator/64, most)
		}
	}
	if c.Limits.BatchRows == 0 {
		c.Limits.BatchRows = int(min(c.Memory/bytesAChange, 250_000))
	}
	part(&c.Limits.MemoryBytes, 12, 1<<40)
	part(&c.Limits.BatchBytes, 6, 64<<20)
	part(&c.Reader.SliceBytes, 2, 32<<20)
	part(&c.Reader.HeldBytes, 2, 32<<20)
	part(&c.Reader.ChunkBytes, 1, 16<<20)
	part(&c.Kafka.BatchBytes, 2, 32<<20)
	part(&c.Kafka.HeldBytes, 2, 32<<20)
	part(&c.Kafka.FetchBytes, 1, 8<<20)
	part64(&c.Lake.WorkBytes, 24, 1<<40)
	part64(&c.Lake.ImageBytes, 6, 128<<20)
	part64(&c.Lake.CacheBytes, 3, 256<<20)
}

// softLimit is what the Go runtime is told to stay below: the memory without what is
// not Go's, such as the program itself. A key index larger than a quarter of the
// memory is added to it, since collecting garbage more often makes it no smaller.
func softLimit(memory, index int64) int64 {
	return memory*3/4 + max(0, index-memory/4)
}

// limitMemory keeps the process near its memory until the context ends.
func limitMemory(ctx context.Context, memory int64, l *lake.Lake) {
	before := debug.SetMemoryLimit(softLimit(memory, 0))
	defer debug.SetMemoryLimit(before)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			debug.SetMemoryLimit(softLimit(memory, l.IndexBytes()))
		}
	}
}
