package readers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// Table is a table as a reader sees it.
type Table struct {
	Name string // silver.orders
	// Types are the Iceberg types of the columns, as the reader names them. A field
	// of a struct is named "after.id".
	Types map[string]string
	// Rows hold, by column, a string, nil for NULL, []any for a list and
	// map[string]any for a struct.
	Rows []map[string]any
	// Refused is why the reader cannot read the table; empty when it can.
	Refused string
}

// readTables reads what a script has written: for each table a line with its types
// and a line for each row.
func readTables(file string) ([]Table, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []Table
	lines := bufio.NewReaderSize(f, 1<<20)
	dec := json.NewDecoder(lines)
	for dec.More() {
		var line struct {
			Table   string            `json:"table"`
			Types   map[string]string `json:"types"`
			Refused string            `json:"refused"`
			Row     map[string]any    `json:"row"`
		}
		if err := dec.Decode(&line); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		switch {
		case line.Table != "":
			out = append(out, Table{Name: line.Table, Types: line.Types, Refused: line.Refused})
		case len(out) == 0:
			return nil, fmt.Errorf("%s: a row comes before its table", file)
		default:
			t := &out[len(out)-1]
			t.Rows = append(t.Rows, line.Row)
		}
	}
	return out, nil
}
