package worker

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// rereads keeps requests to read rows again in the registry, with keys that hold no
// personal value in clear: sealed, or as the lake shows them.
type rereads struct {
	registry *registry.Registry
	source   string
	masks    *masks
	// unmasks says that the source's reader finds the rows of keys that are known only as
	// the lake shows them.
	unmasks bool
}

var _ pipeline.Rereads = (*rereads)(nil)

// pendingRereads bounds how many requests of a table are looked at at once.
const pendingRereads = 20

// Request implements pipeline.Rereads.
func (r *rereads) Request(ctx context.Context, table *catalog.Table, keys [][]string) (int64, error) {
	form := registry.RereadPlain
	if keyIsMasked(table) {
		if form = registry.RereadMasked; !r.unmasks {
			return 0, pipeline.ErrNoReread
		}
	}
	return r.request(ctx, table, registry.RereadUnavailable, form, keys)
}

// request keeps a request whose keys are written in the given form.
func (r *rereads) request(ctx context.Context, table *catalog.Table, reason registry.RereadReason, form registry.RereadForm, keys [][]string) (int64, error) {
	doc, err := json.Marshal(keys)
	if err != nil {
		return 0, fmt.Errorf("write the keys of a request: %w", err)
	}
	text := string(doc)
	if form == registry.RereadSealed {
		text = r.masks.sealer.Seal(doc)
	}
	return r.registry.RequestReread(ctx, r.source, registry.Reread{Table: table.Name.String(), Reason: reason, Form: form, Keys: text, Count: len(keys)})
}

// Pending implements pipeline.Rereads. A request that cannot be opened is an error of
// the configuration, which the others do not wait for.
func (r *rereads) Pending(ctx context.Context) ([]pipeline.Reread, error) {
	kept, err := r.registry.PendingRereads(ctx, r.source, pendingRereads)
	if err != nil {
		return nil, err
	}
	out := make([]pipeline.Reread, 0, len(kept))
	var failed error
	for _, k := range kept {
		q := pipeline.Reread{ID: k.ID, Table: k.Table, Masked: k.Form == registry.RereadMasked, Remake: k.Reason == registry.RereadRemake}
		doc := []byte(k.Keys)
		if k.Form == registry.RereadSealed {
			if doc, err = r.masks.unseal(k.Table, k.Keys); err != nil {
				failed = err
				continue
			}
		}
		if err := json.Unmarshal(doc, &q.Keys); err != nil {
			failed = fmt.Errorf("request %d of %s cannot be read", k.ID, k.Table) // the cause may quote it
			continue
		}
		out = append(out, q)
	}
	if len(out) == 0 {
		return nil, failed
	}
	return out, nil
}

// Done implements pipeline.Rereads.
func (r *rereads) Done(ctx context.Context, ids []int64) error {
	return r.registry.FinishRereads(ctx, ids)
}

func keyIsMasked(t *catalog.Table) bool {
	for _, name := range t.PrimaryKey {
		if _, masked := t.PII[name]; masked {
			return true
		}
	}
	return false
}
