// Package worker wires the data plane: for one source it connects what reads it
// (worker/postgres), what masks it (worker/privacy), what keeps it (worker/lake)
// and what is told of it (catalog/registry) to the pipeline that runs it. It
// decides nothing itself.
package worker
