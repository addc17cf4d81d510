package catalog

// BudgetStage is how near the log that a slot retains is to the source's WAL budget.
type BudgetStage string

// The stages. Each is left at a lower mark than it is entered, so that none flaps.
const (
	WithinBudget BudgetStage = "ok"
	NearBudget   BudgetStage = "near" // at Source.NearBudget percent of it: capture first, fold later
	OverBudget   BudgetStage = "over" // at it: what Source.OnBudget says
)

// OnBudget is what happens to a slot that stays at its source's WAL budget.
type OnBudget string

// What a source may choose.
const (
	KeepSlot OnBudget = "keep" // say so loudly and keep it: the source's disk may fill
	DropSlot OnBudget = "drop" // give it up: the source's tables become gap
)
