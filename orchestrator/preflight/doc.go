// Package preflight looks at what lies between a connector and a worker before a source
// with capture debezium runs: the topics of its tables, and the connector as it is
// deployed. It only asks. It promises that all findings come at once, each with what to
// do; what it could not ask is a finding too. The database itself is looked at by
// worker/postgres.
package preflight
