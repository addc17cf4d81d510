package readers

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/lakeweir/lakeweir/e2e/install"
)

// What Spark is made of. PySpark's own Arrow conversion needs pyarrow and pandas; the
// jars are Iceberg for Spark, AWS's clients for it, and SQLite.
var (
	sparkPackages = []string{"pyspark==4.1.3", "pyarrow==26.0.1", "pandas==3.1.1"}
	//go:embed spark.jars
	sparkJars string
)

//go:embed spark_read.py
var sparkScript []byte

// Spark is Spark with Iceberg in a virtual environment.
type Spark struct {
	python string
	jars   []string
}

// NewSpark installs Spark unless it is there. It needs Java 17 or later on the
// path.
func NewSpark(ctx context.Context) (*Spark, error) {
	if err := install.RequireJava(ctx); err != nil {
		return nil, err
	}
	cache, err := install.Cache()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "spark")
	s := &Spark{}
	if s.python, err = install.Venv(ctx, filepath.Join(dir, "venv"), "import pyspark, pyarrow, pandas", sparkPackages...); err != nil {
		return nil, fmt.Errorf("install PySpark: %w", err)
	}
	if s.jars, err = install.Jars(ctx, sparkJars); err != nil {
		return nil, fmt.Errorf("install Iceberg for Spark: %w", err)
	}
	return s, nil
}

// Submit is spark-submit with arguments, the name of a script among them.
func (s *Spark) Submit(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, filepath.Join(filepath.Dir(s.python), "spark-submit"), args...) //nolint:gosec // our own scripts
	c.Env = append(os.Environ(), "SPARK_LOCAL_IP=127.0.0.1", "PYSPARK_PYTHON="+s.python, "PYSPARK_DRIVER_PYTHON="+s.python)
	return c
}

// Read reads whole tables, each named as "silver.orders", in one session. A table
// that Spark refuses comes back with its reason.
func (s *Spark) Read(ctx context.Context, l Lake, tables ...string) ([]Table, error) {
	return readByScript(ctx, sparkScript, tables, func(script, out string) *exec.Cmd {
		c := exec.CommandContext(ctx, s.python, script, out, l.Name, l.spark(), strings.Join(s.jars, ",")) //nolint:gosec // our own script
		c.Env = append(os.Environ(), "SPARK_LOCAL_IP=127.0.0.1", "PYSPARK_PYTHON="+s.python)
		return c
	})
}
