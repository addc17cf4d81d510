// Package policies judges schema changes and table configurations by rules in Rego:
// Lakeweir's own, which are built in (lakeweir/*.rego), and an organisation's, from a
// folder, which add to them or override them.
//
// It promises that a rule sees its input alone (no network, clock, environment or
// randomness), that an evaluation ends in bounded time, that whatever decided is named
// with file, line and column, and that it fails closed: where a policy cannot be
// compiled, fails, runs out of time or answers what nobody understands, the table that
// it was asked about is quarantined with that error, and no other. It decides and does
// nothing: following a decision is the caller's.
//
// The input is the struct Input. input.schema.json and docs/policies.md are generated
// from it and its comments (go test ./policies -update); the compiler checks rules
// against the schema, so that a misspelt field is an error and never a rule that says
// nothing.
package policies
