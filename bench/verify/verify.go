package verify

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/lakeweir/lakeweir/bench/workload"
	"github.com/lakeweir/lakeweir/e2e/readers"
)

// Versions names the versions of orders; the other tables are the workload's own.
const Versions = "versions"

//go:embed verify.py
var script string

// Lake is what to look at.
type Lake struct {
	// Tables are what current rows, and Versions, stand in; by name.
	Tables map[string]Table
	// Logs are Lakeweir's bronze: the files of their newest metadata, by the workload's
	// tables. May be empty.
	Logs map[string]string
}

// Table is one that holds rows of the workload, or versions of them.
type Table struct {
	Metadata string   // the file of its newest metadata
	Lacks    []string // columns of the expected rows that it does not have
}

// Result is what was found.
type Result struct {
	Tables   map[string]TableResult `json:"tables"`
	Logs     map[string]LogResult   `json:"logs"`
	Versions map[string]string      `json:"versions"` // of what has read them
}

// TableResult is what a table holds.
type TableResult struct {
	Rows      int64    `json:"rows"`
	Differing int64    `json:"differing"` // rows that it has too many, and rows that it lacks
	Examples  []string `json:"examples"`
	WrittenMS int64    `json:"written_ms"` // when it was last written, in milliseconds since 1970 UTC
}

// LogResult is what a log holds.
type LogResult struct {
	Rows       int64            `json:"rows"`
	Ops        map[string]int64 `json:"ops"`
	Offsets    int64            `json:"offsets"` // different ones
	LastOffset int64            `json:"last_offset"`
	// Deleted and Worth, of orders alone, are the rows that were deleted and what those
	// were worth, by currency, as their before images tell.
	Deleted int64            `json:"deleted"`
	Worth   map[string]int64 `json:"worth"`
}

// Verifier has PyIceberg, and the rows that a workload must end with in a folder.
type Verifier struct {
	python *readers.PyIceberg
	dir    string
}

// New writes a workload's expected rows into a folder.
func New(python *readers.PyIceberg, dir string, o *workload.Outcome) (*Verifier, error) {
	v := &Verifier{python: python, dir: dir}
	for _, table := range workload.Tables() {
		if err := writeRows(v.expected(table), o, table); err != nil {
			return nil, err
		}
	}
	return v, writeVersions(v.expected(Versions), o)
}

func (v *Verifier) expected(name string) string {
	return filepath.Join(v.dir, "expected-"+name+".jsonl")
}

// Look reads a lake and says what it holds.
func (v *Verifier) Look(ctx context.Context, l Lake) (Result, error) {
	type table struct {
		Metadata string   `json:"metadata"`
		Expected string   `json:"expected"`
		Lacks    []string `json:"lacks"`
	}
	type log struct {
		Metadata string `json:"metadata"`
		Worth    bool   `json:"worth"`
	}
	tables, logs := map[string]table{}, map[string]log{}
	for name, t := range l.Tables {
		tables[name] = table{t.Metadata, v.expected(name), append([]string{}, t.Lacks...)}
	}
	for name, metadata := range l.Logs {
		logs[name] = log{metadata, name == workload.Orders}
	}
	var out Result
	spec, err := json.Marshal(map[string]any{"tables": tables, "logs": logs})
	if err != nil {
		return out, err
	}
	cmd := exec.CommandContext(ctx, v.python.Interpreter(), "-c", script) //nolint:gosec // our own script
	cmd.Stdin = bytes.NewReader(spec)
	var said bytes.Buffer
	cmd.Stderr = &said
	answer, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("compare the tables: %w: %s", err, said.Bytes()[max(0, said.Len()-4000):])
	}
	return out, json.Unmarshal(answer, &out)
}

// Differing is how many rows differ, over all tables.
func (r Result) Differing() int64 {
	var n int64
	for _, t := range r.Tables {
		n += t.Differing
	}
	return n
}
