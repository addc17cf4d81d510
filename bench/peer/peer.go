package peer

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lakeweir/lakeweir/bench/tree"
	"github.com/lakeweir/lakeweir/bench/verify"
	"github.com/lakeweir/lakeweir/bench/workload"
	"github.com/lakeweir/lakeweir/e2e/install"
	"github.com/lakeweir/lakeweir/e2e/readers"
)

var (
	//go:embed job.py
	jobScript []byte
	// sparkJars are Iceberg 1.12.0 and Spark's Kafka source 4.1.3.
	//
	//go:embed spark.jars
	sparkJars string
)

// Config says what to run.
type Config struct {
	Dir       string // keeps warehouse, checkpoint and logs
	Broker    string
	Prefix    string // of the topics
	BatchRows int
	History   bool // of orders, too
}

// Peer is Spark, installed.
type Peer struct {
	cfg   Config
	spark *readers.Spark
	jars  []string
}

// New installs Spark with its Kafka source unless it is there.
func New(ctx context.Context, cfg Config) (*Peer, error) {
	spark, err := readers.NewSpark(ctx)
	if err != nil {
		return nil, err
	}
	p := &Peer{cfg: cfg, spark: spark}
	if p.jars, err = install.Jars(ctx, sparkJars); err != nil {
		return nil, fmt.Errorf("install Spark's Kafka source: %w", err)
	}
	if err := os.MkdirAll(cfg.Dir, 0o750); err != nil {
		return nil, err
	}
	return p, os.WriteFile(filepath.Join(cfg.Dir, "job.py"), jobScript, 0o600)
}

// Fold reads the topics from their begin to their end and folds them, and tells what
// that took.
func (p *Peer) Fold(ctx context.Context) (tree.Figures, error) {
	args := []string{
		p.cfg.Dir, "--brokers", p.cfg.Broker, "--prefix", p.cfg.Prefix, "--batch-rows", strconv.Itoa(p.cfg.BatchRows), "--read-partitions", "6",
	}
	if p.cfg.History {
		args = append(args, "--history")
	}
	var said bytes.Buffer
	cmd := p.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = &said, &said
	f, err := tree.Run(ctx, cmd)
	if err != nil {
		return f, fmt.Errorf("the job of Spark: %w: %s", err, said.Bytes()[max(0, said.Len()-4000):])
	}
	return f, nil
}

// Lake is what the job has written.
func (p *Peer) Lake() (verify.Lake, error) {
	l := verify.Lake{Tables: map[string]verify.Table{}}
	for _, table := range workload.Tables() {
		l.Tables[table] = verify.Table{Metadata: p.metadata(table)}
	}
	if p.cfg.History {
		l.Tables[verify.Versions] = verify.Table{Metadata: p.metadata(workload.Orders + "_history")}
	}
	for _, t := range l.Tables {
		if t.Metadata == "" {
			return l, fmt.Errorf("the job of Spark has left no tables in %s", p.cfg.Dir)
		}
	}
	return l, nil
}

// metadata is the file of a table's newest metadata; empty when there is none. It is
// found as Iceberg's Hadoop catalog finds it.
func (p *Peer) metadata(table string) string {
	dir := filepath.Join(p.cfg.Dir, "warehouse", "shop", table, "metadata")
	hint, err := os.ReadFile(filepath.Join(dir, "version-hint.text"))
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "v"+strings.TrimSpace(string(hint))+".metadata.json")
}

// Versions are those of what the job runs on.
func (p *Peer) Versions() map[string]string {
	return map[string]string{
		"spark":         install.Version(p.jars, "spark-sql-kafka-0-10_2.13"),
		"spark-iceberg": install.Version(p.jars, "iceberg-spark-runtime-4.1_2.13"),
	}
}

func (p *Peer) command(ctx context.Context, args ...string) *exec.Cmd {
	submit := []string{
		"--master", "local[2]", "--driver-memory", "4g", "--driver-java-options", "-XX:+UseParallelGC",
		"--jars", strings.Join(p.jars, ","), filepath.Join(p.cfg.Dir, "job.py"),
	}
	return p.spark.Submit(ctx, append(submit, args...)...)
}
