package catalog

import "cmp"

// Verdict is a policy's answer to a schema change.
type Verdict string

// The verdicts, the mildest first.
const (
	Evolve     Verdict = "evolve"     // the lake follows at once
	Hold       Verdict = "hold"       // the table waits until a person approves what is proposed
	Quarantine Verdict = "quarantine" // the table stops until a person finds out what to do
)

// Verdicts lists all, the mildest first.
func Verdicts() []Verdict { return []Verdict{Evolve, Hold, Quarantine} }

// Compare orders verdicts by strictness. An unknown one is the strictest.
func (v Verdict) Compare(w Verdict) int { return cmp.Compare(v.rank(), w.rank()) }

func (v Verdict) rank() int {
	switch v {
	case Evolve:
		return 0
	case Hold:
		return 1
	case Quarantine:
		return 2
	}
	return 3
}

// Mapping is how the lake's columns follow a change that has several ways.
type Mapping string

// The mappings; "" is the change's only way.
const (
	MapRename    Mapping = "rename"     // the lake's column gets the new name and keeps its id, and so its past
	MapNewColumn Mapping = "new_column" // values go to a new column; the old one stays, and is NULL from here on
	MapKeep      Mapping = "keep"       // the lake's column keeps its type, which holds every value
)

// Mappings lists all.
func Mappings() []Mapping { return []Mapping{MapRename, MapNewColumn, MapKeep} }

// Ruling is what one rule says of one schema change.
type Ruling struct {
	Verdict Verdict `json:"verdict"`
	Rule    string  `json:"rule"`   // its name, stable: "column_added"
	Reason  string  `json:"reason"` // for a person
	At      string  `json:"at"`     // the file, line and column of the rule
	// Override says that an organisation's rule replaces what others say.
	Override bool `json:"override,omitempty"`
	// Reread says that the table is to be read again after the lake has followed.
	Reread   bool     `json:"reread,omitempty"`
	Mapping  Mapping  `json:"mapping,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Judgement is what all rules together say of one schema change.
type Judgement struct {
	Change SchemaChange `json:"change"`
	// Ruling is the one that decided, with what the others add to it: a re-read that
	// any asks for, and the warnings of all that count.
	Ruling
	// Rulings are those of every rule that spoke, the strictest first.
	Rulings []Ruling `json:"rulings,omitempty"`
	// Failure says why a policy could not judge; the verdict is then quarantine.
	Failure *Failure `json:"failure,omitempty"`
}

// Failure is why a policy could not judge, as it is recorded and shown.
type Failure struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	At      string `json:"at,omitempty"` // file, line and column in the policy
}

// Decision is the answer to all changes of a table at one cursor.
type Decision struct {
	// Verdict is the strictest of the judgements'; Evolve when there are none.
	Verdict Verdict `json:"verdict"`
	// Reread says that a judgement asks for it.
	Reread     bool        `json:"reread,omitempty"`
	Judgements []Judgement `json:"judgements"`
}

// Decide joins the judgements of changes that take effect at one cursor: a table
// follows all of them or none.
func Decide(judgements []Judgement) Decision {
	d := Decision{Verdict: Evolve, Judgements: judgements}
	for _, j := range judgements {
		if j.Verdict.Compare(d.Verdict) > 0 {
			d.Verdict = j.Verdict
		}
		d.Reread = d.Reread || j.Reread
	}
	return d
}
