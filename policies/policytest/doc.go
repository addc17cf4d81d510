// Package policytest runs tests of policies: cases, which say in YAML what is done to a
// table and what has to become of it, and tests in Rego.
//
// Lakeweir's own run against its rules alone; an organisation's against both together,
// as they would judge. docs/policies.md describes the form of cases.
package policytest
