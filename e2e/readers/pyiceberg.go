package readers

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const pyIcebergPackage = "pyiceberg[sql-sqlite,pyarrow]==0.12.0"

var (
	//go:embed normal.py
	normalScript []byte
	//go:embed pyiceberg_read.py
	pyIcebergScript []byte
)

// PyIceberg is PyIceberg in a virtual environment.
type PyIceberg struct{ python string }

// NewPyIceberg installs PyIceberg unless it is there.
func NewPyIceberg(ctx context.Context) (*PyIceberg, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	python, err := venv(ctx, filepath.Join(cache, "venv"), "import pyiceberg.catalog.sql, pyarrow", pyIcebergPackage)
	if err != nil {
		return nil, fmt.Errorf("install PyIceberg: %w", err)
	}
	return &PyIceberg{python}, nil
}

// Read reads whole tables, each named as "silver.orders".
func (p *PyIceberg) Read(ctx context.Context, l Lake, tables ...string) ([]Table, error) {
	return runScript(ctx, pyIcebergScript, tables, func(script, out string) *exec.Cmd {
		return exec.CommandContext(ctx, p.python, script, out, l.Name, l.File) //nolint:gosec // our own script
	})
}

// runScript runs a script that reads tables; their names come on its standard
// input.
func runScript(ctx context.Context, script []byte, tables []string, cmd func(script, out string) *exec.Cmd) ([]Table, error) {
	dir, err := os.MkdirTemp("", "lakeweir-reader-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "normal.py"), normalScript, 0o600); err != nil {
		return nil, err
	}
	file, out := filepath.Join(dir, "read.py"), filepath.Join(dir, "out.jsonl")
	if err := os.WriteFile(file, script, 0o600); err != nil {
		return nil, err
	}
	c := cmd(file, out)
	c.Stdin = strings.NewReader(strings.Join(tables, "\n"))
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", filepath.Base(c.Path), err, last(said.Bytes(), 8000))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return readTables(out)
}

func last(b []byte, n int) []byte { return b[max(0, len(b)-n):] }
