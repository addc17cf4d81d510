package readers

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/lakeweir/lakeweir/e2e/install"
)

const pyIcebergPackage = "pyiceberg[sql-sqlite,pyarrow]==0.12.0"

var (
	//go:embed normal.py
	normalScript []byte
	//go:embed pyiceberg_read.py
	pyIcebergScript []byte
	//go:embed pyiceberg_find.py
	findScript []byte
)

// PyIceberg is PyIceberg in a virtual environment.
type PyIceberg struct{ python string }

// NewPyIceberg installs PyIceberg unless it is there.
func NewPyIceberg(ctx context.Context) (*PyIceberg, error) {
	cache, err := install.Cache()
	if err != nil {
		return nil, err
	}
	python, err := install.Venv(ctx, filepath.Join(cache, "venv"), "import pyiceberg.catalog.sql, pyarrow", pyIcebergPackage)
	if err != nil {
		return nil, fmt.Errorf("install PyIceberg: %w", err)
	}
	return &PyIceberg{python}, nil
}

// Interpreter is the path of a Python that has PyIceberg.
func (p *PyIceberg) Interpreter() string { return p.python }

// Read reads whole tables, each named as "silver.orders".
func (p *PyIceberg) Read(ctx context.Context, l Lake, tables ...string) ([]Table, error) {
	return readByScript(ctx, pyIcebergScript, tables, func(script, out string) *exec.Cmd {
		return exec.CommandContext(ctx, p.python, script, out, l.Name, l.pyIceberg()) //nolint:gosec // our own script
	})
}

// Find asks tables for each value that they hold, with filters, in the columns whose
// names begin with prefix. It returns how many questions it asked, and the wrong
// answers.
func (p *PyIceberg) Find(ctx context.Context, l Lake, prefix string, tables ...string) (asked int, wrong []string, err error) {
	err = runScript(ctx, findScript, tables, func(script, out string) *exec.Cmd {
		return exec.CommandContext(ctx, p.python, script, out, l.Name, l.pyIceberg(), prefix) //nolint:gosec // our own script
	}, func(out string) error {
		text, err := os.ReadFile(out)
		for dec := json.NewDecoder(bytes.NewReader(text)); err == nil && dec.More(); {
			var table struct {
				Table string   `json:"table"`
				Asked int      `json:"asked"`
				Wrong []string `json:"wrong"`
			}
			err = dec.Decode(&table)
			asked += table.Asked
			for _, w := range table.Wrong {
				wrong = append(wrong, table.Table+": "+w)
			}
		}
		return err
	})
	return asked, wrong, err
}

func readByScript(ctx context.Context, script []byte, tables []string, cmd func(script, out string) *exec.Cmd) (out []Table, err error) {
	err = runScript(ctx, script, tables, cmd, func(file string) (err error) {
		out, err = readTables(file)
		return err
	})
	return out, err
}

// runScript runs a script about tables, whose names come on its standard input, and
// reads what it wrote.
func runScript(ctx context.Context, script []byte, tables []string, cmd func(script, out string) *exec.Cmd, read func(out string) error) error {
	dir, err := os.MkdirTemp("", "lakeweir-reader-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "normal.py"), normalScript, 0o600); err != nil {
		return err
	}
	file, out := filepath.Join(dir, "read.py"), filepath.Join(dir, "out.jsonl")
	if err := os.WriteFile(file, script, 0o600); err != nil {
		return err
	}
	c := cmd(file, out)
	c.Stdin = strings.NewReader(strings.Join(tables, "\n"))
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(c.Path), err, last(said.Bytes(), 8000))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return read(out)
}

func last(b []byte, n int) []byte { return b[max(0, len(b)-n):] }
