package peer

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lakeweir/lakeweir/bench/tree"
	"github.com/lakeweir/lakeweir/bench/workload"
	"github.com/lakeweir/lakeweir/e2e/install"
	"github.com/lakeweir/lakeweir/e2e/readers"
)

var (
	//go:embed job.py
	jobScript []byte
	//go:embed verify.py
	verifyScript []byte
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
	for name, script := range map[string][]byte{"job.py": jobScript, "verify.py": verifyScript} {
		if err := os.WriteFile(filepath.Join(cfg.Dir, name), script, 0o600); err != nil {
			return nil, err
		}
	}
	return p, nil
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
	cmd := p.command(ctx, "job.py", args...)
	cmd.Stdout, cmd.Stderr = &said, &said
	f, err := tree.Run(ctx, cmd)
	if err != nil {
		return f, fmt.Errorf("the job of Spark: %w: %s", err, said.Bytes()[max(0, said.Len()-4000):])
	}
	return f, nil
}

// Differing compares the tables with what they must hold, and returns how many rows
// only one side has.
func (p *Peer) Differing(ctx context.Context, o *workload.Outcome) (int64, error) {
	for _, table := range workload.Tables() {
		if err := writeRows(filepath.Join(p.cfg.Dir, "expected-"+table+".jsonl"), o, table); err != nil {
			return 0, err
		}
	}
	if err := writeVersions(filepath.Join(p.cfg.Dir, "expected-versions.jsonl"), o); err != nil {
		return 0, err
	}
	args := []string{p.cfg.Dir}
	if p.cfg.History {
		args = append(args, "--history")
	}
	out, err := p.command(ctx, "verify.py", args...).Output()
	if err != nil {
		return 0, fmt.Errorf("compare Spark's tables: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strconv.ParseInt(lines[len(lines)-1], 10, 64)
}

func (p *Peer) command(ctx context.Context, script string, args ...string) *exec.Cmd {
	submit := []string{
		"--master", "local[2]", "--driver-memory", "4g", "--driver-java-options", "-XX:+UseParallelGC",
		"--jars", strings.Join(p.jars, ","), filepath.Join(p.cfg.Dir, script),
	}
	return p.spark.Submit(ctx, append(submit, args...)...)
}

// writeRows writes a table's expected rows as JSON lines.
func writeRows(file string, o *workload.Outcome, table string) error {
	return write(file, func(w *bufio.Writer) {
		for row := range o.Rows(table) {
			_, _ = w.Write(row.JSON[:len(row.JSON)-1]) // an error stays in the writer
			fmt.Fprintf(w, `,"_op":"%c","_lsn":%d,"_tx_id":%d,"_source_ms":%d,"_from_snapshot":%t}`+"\n", row.Op, row.LSN, row.TxID, row.CommitMilli, row.Op == 'r')
		}
	})
}

func writeVersions(file string, o *workload.Outcome) error {
	return write(file, func(w *bufio.Writer) {
		out := json.NewEncoder(w)
		for v := range o.Versions() {
			line := map[string]any{"order_id": v.OrderID, "status": v.Status, "total_minor": v.TotalMinor, "from_ms": v.From, "to_ms": nil, "_lsn": v.LSN}
			if v.To != 0 {
				line["to_ms"] = v.To
			}
			_ = out.Encode(line) // as above
		}
	})
}

func write(file string, lines func(w *bufio.Writer)) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	lines(w)
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}
