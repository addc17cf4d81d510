// Package icetest has another reader and writer of Iceberg tables for tests, one that
// shares no code with ours: PyIceberg, installed once into the repository's cache.
package icetest

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/e2e/readers"
)

// Python returns an interpreter that has PyIceberg. It skips a test where PyIceberg
// cannot be had, and fails it in CI.
func Python(t testing.TB) string {
	t.Helper()
	bin, err := python()
	if err == nil {
		return bin
	}
	if os.Getenv("CI") != "" || os.Getenv("LAKEWEIR_REQUIRE") != "" {
		require.NoError(t, err, "PyIceberg is required")
	}
	t.Skipf("PyIceberg is not to be had: %v", err)
	return ""
}

// python is shared by the tests of a process, so that no test's end ends it.
var python = sync.OnceValues(func() (string, error) {
	p, err := readers.NewPyIceberg(context.Background())
	if err != nil {
		return "", err
	}
	return p.Interpreter(), nil
})

//go:embed edit.py
var editor string

// Edit is one change of rows that another writer makes; all of one call are one
// commit.
type Edit struct {
	Do     string         `json:"do"` // delete, copy, set, or swap (of two keys)
	Keys   []any          `json:"keys"`
	Set    map[string]any `json:"set,omitempty"`    // of copy and set: columns and their values
	Column string         `json:"column,omitempty"` // of swap
}

// Apply makes the edits to a table of format version 2, found by its catalog, a
// SQLite file, and its warehouse, "file://…". Key is its only key column.
func Apply(t testing.TB, catalog, warehouse string, ident []string, key string, edits ...Edit) {
	t.Helper()
	doc, err := json.Marshal(edits)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), Python(t), "-c", editor, "sqlite:///"+catalog, warehouse, ident[0], ident[1], key) //nolint:gosec // a test names its own table
	cmd.Stdin = bytes.NewReader(doc)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Run(), out.String())
}
