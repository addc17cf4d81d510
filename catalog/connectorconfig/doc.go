// Package connectorconfig knows what a Debezium connector is told: the settings that
// Lakeweir recommends, each with its reason; what source.yaml and the tables' files
// make of them; and which settings lose or corrupt data, in source.yaml or in a
// connector that somebody else deployed. It is pure: names of properties are those of
// Debezium 3.6 for Postgres, and nothing is asked over a network (that is
// orchestrator/connect). Secrets stay references until Resolve.
package connectorconfig
