package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
)

// SchemaDecision is one word on a schema change, with who gave it and why.
type SchemaDecision struct {
	At time.Time
	// Verdict is a catalog.Verdict, or Approve or Reject, which are a person's.
	Verdict string
	Rule    string            // those of the policies that decided, with commas between; empty for a person
	Judged  *catalog.Decision // what every rule said; nil for a person
	Input   json.RawMessage   // what the policies were given; nil for a person
	Actor   string
	Reason  string
	// Mappings say how columns are to follow, where a person says it.
	Mappings []ColumnMapping
}

// What a person says.
const (
	Approve = "approve"
	Reject  = "reject"
)

// ColumnMapping says how the lake follows the change of one column.
type ColumnMapping struct {
	Column  string          `json:"column"` // as catalog.SchemaChange.Column
	Mapping catalog.Mapping `json:"mapping"`
	// Name is what the lake's new column is to be called; "" leaves it to the mapping.
	Name string `json:"name,omitempty"`
}

// JudgeSchemaChange writes what the policies say of a change, given the input, and moves
// it on: to evolving, held or quarantined. A change that was judged before is judged
// anew; all that was said is kept. It fails with schema_change.state when the change has
// ended or a person has decided it: policies do not overrule people.
func (r *Registry) JudgeSchemaChange(ctx context.Context, id int64, d catalog.Decision, input json.RawMessage, actor string) error {
	to := map[catalog.Verdict]ChangeState{catalog.Evolve: ChangeEvolving, catalog.Hold: ChangeHeld, catalog.Quarantine: ChangeQuarantined}[d.Verdict]
	if to == "" {
		return fmt.Errorf("%q is no verdict on a schema change", d.Verdict)
	}
	if input != nil && !json.Valid(input) {
		return errors.New("the input of a policy is no JSON")
	}
	out := SchemaDecision{Verdict: string(d.Verdict), Judged: &d, Input: input, Actor: actor}
	out.Rule, out.Reason = decided(d)
	return r.decide(ctx, id, out, to, "be judged", ChangePending, ChangeEvolving, ChangeHeld, ChangeQuarantined)
}

// decided names the rules of the judgements that made the verdict, and their reasons.
func decided(d catalog.Decision) (rule, reason string) {
	var rules, reasons []string
	add := func(to *[]string, s string) {
		if s != "" && !slices.Contains(*to, s) {
			*to = append(*to, s)
		}
	}
	for _, j := range d.Judgements {
		if j.Verdict != d.Verdict {
			continue
		}
		add(&rules, j.Rule)
		add(&reasons, j.Reason)
	}
	return strings.Join(rules, ", "), strings.Join(reasons, "; ")
}

// ApproveSchemaChange writes that a person lets the lake follow a change, and how. It
// fails with schema_change.state when the change has ended or evolves already.
func (r *Registry) ApproveSchemaChange(ctx context.Context, id int64, actor, reason string, mappings []ColumnMapping) error {
	return r.decide(ctx, id, SchemaDecision{Verdict: Approve, Actor: actor, Reason: reason, Mappings: mappings}, ChangeApproved,
		"be approved", ChangePending, ChangeHeld, ChangeQuarantined, ChangeRejected, ChangeApproved)
}

// RejectSchemaChange writes that a person does not let the lake follow a change: the
// table waits for its source to change back. It fails with schema_change.state when the
// change has ended.
func (r *Registry) RejectSchemaChange(ctx context.Context, id int64, actor, reason string) error {
	return r.decide(ctx, id, SchemaDecision{Verdict: Reject, Actor: actor, Reason: reason}, ChangeRejected,
		"be rejected", ChangePending, ChangeEvolving, ChangeHeld, ChangeQuarantined, ChangeApproved, ChangeRejected)
}

// decide writes a decision and moves its change on, from one of the states.
func (r *Registry) decide(ctx context.Context, id int64, d SchemaDecision, to ChangeState, doing string, from ...ChangeState) error {
	judged, err := textUnlessNil(d.Judged)
	if err != nil {
		return err
	}
	var mappings, input *string
	if len(d.Mappings) > 0 {
		if mappings, err = textUnlessNil(&d.Mappings); err != nil {
			return err
		}
	}
	if d.Input != nil {
		text := string(d.Input)
		input = &text
	}
	return r.changeState(ctx, id, func(ctx context.Context, tx pgx.Tx, c *changeHead) error {
		if !slices.Contains(from, c.state) {
			return c.refuse(doing)
		}
		_, err := tx.Exec(ctx, `insert into lakeweir.schema_decisions (change_id, verdict, rule, judged, input, actor, reason, mappings)
			values ($1, $2, $3, $4::text::jsonb, $5::text::jsonb, $6, $7, $8::text::jsonb)`,
			id, d.Verdict, d.Rule, judged, input, storable(d.Actor), storable(d.Reason), mappings)
		if err != nil {
			return fmt.Errorf("keep a decision on schema change %d: %w", id, err)
		}
		_, err = tx.Exec(ctx, `update lakeweir.schema_changes set state = $2, since = case when state = $2 then since else now() end where id = $1`, id, string(to))
		if err != nil {
			return fmt.Errorf("decide schema change %d: %w", id, err)
		}
		return addEvent(ctx, tx, c.table, SchemaChanged, map[string]any{
			"id": id, "from": c.state, "to": to, "verdict": d.Verdict, "rule": d.Rule, "by": storable(d.Actor), "message": storable(d.Reason),
		})
	})
}
