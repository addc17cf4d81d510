// Package icetest has another reader and writer of Iceberg tables for tests, one that
// shares no code with ours: PyIceberg, installed once into the repository's cache.
package icetest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const pyIceberg = "pyiceberg[sql-sqlite,pyarrow]==0.12.0"

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

var python = sync.OnceValues(func() (string, error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	venv := filepath.Join(root, ".cache", "venv")
	bin := filepath.Join(venv, "bin", "python")
	has := func() bool { return exec.Command(bin, "-c", "import pyiceberg.catalog.sql, pyarrow").Run() == nil }
	if has() {
		return bin, nil
	}
	if err := os.MkdirAll(filepath.Dir(venv), 0o750); err != nil {
		return "", err
	}
	// Another package's tests may be installing it too.
	lock := venv + ".lock"
	if err := os.Mkdir(lock, 0o750); err != nil {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for range 600 {
			<-tick.C
			if _, err := os.Stat(lock); os.IsNotExist(err) && has() {
				return bin, nil
			}
		}
		return "", fmt.Errorf("%s is held by another installation; remove it if there is none", lock)
	}
	defer os.Remove(lock)
	for _, args := range [][]string{{"python3", "-m", "venv", venv}, {bin, "-m", "pip", "install", "-q", pyIceberg}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil { //nolint:gosec // of the list above
			return "", fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	return bin, nil
})

// repository finds the folder that has go.mod.
func repository() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", os.ErrNotExist
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}

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
