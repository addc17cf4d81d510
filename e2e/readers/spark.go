package readers

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// What Spark is made of. PySpark's own Arrow conversion needs pyarrow and pandas.
var (
	sparkPackages = []string{"pyspark==4.1.3", "pyarrow==26.0.1", "pandas==3.1.1"}
	sparkJars     = []string{"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0", "org.xerial:sqlite-jdbc:3.50.3.0"}
)

const copyJar = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"

//go:embed spark_read.py
var sparkScript []byte

// Spark is Spark with Iceberg in a virtual environment.
type Spark struct {
	python string
	jars   []string
}

// NewSpark installs Spark unless it is there. It needs Java 17 or later on the
// path, and Maven for the first time.
func NewSpark(ctx context.Context) (*Spark, error) {
	if err := requireJava(ctx); err != nil {
		return nil, err
	}
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "spark")
	s := &Spark{}
	if s.python, err = venv(ctx, filepath.Join(dir, "venv"), "import pyspark, pyarrow, pandas", sparkPackages...); err != nil {
		return nil, fmt.Errorf("install PySpark: %w", err)
	}
	jars := filepath.Join(dir, "jars")
	for _, artifact := range sparkJars {
		parts := strings.Split(artifact, ":")
		s.jars = append(s.jars, filepath.Join(jars, parts[1]+"-"+parts[2]+".jar"))
	}
	ready := func() bool {
		for _, jar := range s.jars {
			if _, err := os.Stat(jar); err != nil {
				return false
			}
		}
		return true
	}
	err = once(ctx, jars, ready, func() error {
		for _, artifact := range sparkJars { // the jar alone: what it needs is in it
			if err := command(ctx, "mvn", "-q", "-B", copyJar, "-Dartifact="+artifact, "-DoutputDirectory="+jars); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("install Iceberg for Spark: %w", err)
	}
	return s, nil
}

var javaVersion = regexp.MustCompile(`version "(\d+)`)

func requireJava(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "java", "-version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("Spark needs Java 17 or later, such as Debian's openjdk-17-jre-headless: %w", err)
	}
	m := javaVersion.FindSubmatch(out)
	if m == nil {
		return fmt.Errorf("which Java is this? %s", out)
	}
	if n, _ := strconv.Atoi(string(m[1])); n < 17 {
		return fmt.Errorf("Spark needs Java 17 or later, this is %d", n)
	}
	return nil
}

// Read reads whole tables, each named as "silver.orders", in one session. A table
// that Spark refuses comes back with its reason.
func (s *Spark) Read(ctx context.Context, l Lake, tables ...string) ([]Table, error) {
	return readByScript(ctx, sparkScript, tables, func(script, out string) *exec.Cmd {
		c := exec.CommandContext(ctx, s.python, script, out, l.Name, l.File, strings.Join(s.jars, ",")) //nolint:gosec // our own script
		c.Env = append(os.Environ(), "SPARK_LOCAL_IP=127.0.0.1", "PYSPARK_PYTHON="+s.python)
		return c
	})
}
