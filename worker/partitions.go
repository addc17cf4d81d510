package worker

import (
	"context"
	"errors"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
)

// partitions brings a table in step with its source after whole partitions came or
// went, which the log does not tell.
type partitions struct {
	cfg Config
}

// partitionPasses bounds how often a table is compared; each pass repairs up to
// reconcile.MaxKeys keys.
const partitionPasses = 10_000

// Attached implements postgres.PartitionKeeper.
func (p partitions) Attached(ctx context.Context, table string, names []string) {
	p.record(ctx, table, map[string]any{"attached": names})
}

// Gone implements postgres.PartitionKeeper: the table is compared with its source, and
// the keys that differ are read again, until none does.
func (p partitions) Gone(ctx context.Context, table string, names []string) error {
	p.record(ctx, table, map[string]any{"gone": names})
	var t *catalog.Table
	for _, c := range p.cfg.Tables {
		if c.Name.String() == table {
			t = c
		}
	}
	if t == nil {
		return nil
	}
	for range partitionPasses {
		outcomes, err := Compare(ctx, CompareConfig{
			Source: p.cfg.Source, Tables: []*catalog.Table{t}, DSN: p.cfg.DSN, TokenKey: p.cfg.TokenKey, Lake: p.cfg.Lake,
			Registry: p.cfg.Registry, Logger: p.cfg.Logger, Repair: true,
		})
		if err == nil {
			err = outcomes[0].Err
		}
		if err != nil {
			return err
		}
		r := outcomes[0].Result
		switch {
		case r.Equal() && r.Unsettled == 0:
			p.record(ctx, table, map[string]any{"gone": names, "repaired": r.Repaired})
			return nil
		case r.Violations > 0:
			return catalog.Errorf(catalog.Conflict, catalog.CodeUnequal, "", "its layers do not agree with each other: %s", r.Line())
		case r.Differing > 0 && (r.Repaired == nil || *r.Repaired == 0):
			return catalog.Errorf(catalog.Invalid, catalog.CodeUnequal, "", "reading rows again does not mend it: %s", r.Line())
		}
	}
	return errors.New("source and lake do not come to be equal")
}

func (p partitions) record(ctx context.Context, table string, detail map[string]any) {
	within, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := p.cfg.Registry.RecordEvent(within, p.cfg.Source.Name, table, registry.Partitions, detail); err != nil {
		p.cfg.Logger.WarnContext(ctx, "a change of partitions is not recorded", "table", p.cfg.Source.Name+"/"+table, "error", err)
	}
}
