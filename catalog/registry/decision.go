package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Verdict is a word on a schema change.
type Verdict string

// The verdicts: the first three are a policy's, the others a person's.
const (
	VerdictEvolve     Verdict = "evolve"
	VerdictHold       Verdict = "hold"
	VerdictQuarantine Verdict = "quarantine"
	VerdictApprove    Verdict = "approve"
	VerdictReject     Verdict = "reject"
)

// Decision is a verdict with who gave it and why.
type Decision struct {
	At      time.Time // set by Decide
	Verdict Verdict
	Rule    string          // of the policy; empty for a person
	Input   json.RawMessage // what the policy was given; nil for a person
	Actor   string
	Reason  string
	Mapping json.RawMessage // how the change is to be made, where that has to be said; else nil
}

// leads is what a verdict makes of a change, and which changes it may be given on. A
// person's word stands until a person changes it: policies do not overrule it.
var leads = map[Verdict]struct {
	to    ChangeState
	after []ChangeState
	doing string
}{
	VerdictEvolve:     {ChangeEvolving, []ChangeState{ChangePending, ChangeHeld, ChangeQuarantined, ChangeEvolving}, "be judged"},
	VerdictHold:       {ChangeHeld, []ChangeState{ChangePending, ChangeHeld, ChangeQuarantined, ChangeEvolving}, "be judged"},
	VerdictQuarantine: {ChangeQuarantined, []ChangeState{ChangePending, ChangeHeld, ChangeQuarantined, ChangeEvolving}, "be judged"},
	VerdictApprove:    {ChangeApproved, []ChangeState{ChangePending, ChangeHeld, ChangeQuarantined, ChangeRejected, ChangeApproved}, "be approved"},
	VerdictReject:     {ChangeRejected, []ChangeState{ChangePending, ChangeHeld, ChangeQuarantined, ChangeEvolving, ChangeApproved, ChangeRejected}, "be rejected"},
}

// Decide writes a verdict on a schema change and moves it to the state that follows.
// All verdicts are kept; the newest counts. It fails with schema_change.state when the
// change is past it: applied, superseded, or decided by a person where a policy asks.
func (r *Registry) Decide(ctx context.Context, id int64, d Decision) error {
	lead, ok := leads[d.Verdict]
	if !ok {
		return fmt.Errorf("%q is no verdict", d.Verdict)
	}
	input, err := textOf(d.Input)
	if err != nil {
		return fmt.Errorf("the input of a decision: %w", err)
	}
	mapping, err := textOf(d.Mapping)
	if err != nil {
		return fmt.Errorf("the mapping of a decision: %w", err)
	}
	return r.changeState(ctx, id, func(ctx context.Context, tx pgx.Tx, c *changeHead) error {
		if !slices.Contains(lead.after, c.state) {
			return c.refuse(lead.doing)
		}
		_, err := tx.Exec(ctx, `insert into lakeweir.schema_decisions (change_id, verdict, rule, input, actor, reason, mapping)
			values ($1, $2, $3, $4::text::jsonb, $5, $6, $7::text::jsonb)`,
			id, string(d.Verdict), d.Rule, input, storable(d.Actor), storable(d.Reason), mapping)
		if err != nil {
			return fmt.Errorf("keep a decision on schema change %d: %w", id, err)
		}
		if _, err := tx.Exec(ctx, `update lakeweir.schema_changes set state = $2, since = case when state = $2 then since else now() end
			where id = $1`, id, string(lead.to)); err != nil {
			return fmt.Errorf("decide schema change %d: %w", id, err)
		}
		return addEvent(ctx, tx, c.table, SchemaChanged, map[string]any{
			"id": id, "from": c.state, "to": lead.to, "verdict": d.Verdict, "rule": d.Rule, "by": storable(d.Actor), "message": storable(d.Reason),
		})
	})
}
