package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/lakeweir/lakeweir/bench/peer"
	"github.com/lakeweir/lakeweir/bench/topics"
	"github.com/lakeweir/lakeweir/bench/verify"
	"github.com/lakeweir/lakeweir/bench/workload"
	"github.com/lakeweir/lakeweir/e2e/readers"
	"github.com/lakeweir/lakeweir/e2e/stack"
)

// measure does all of it, and leaves nothing but the figures.
func measure(ctx context.Context, o options) (err error) {
	if o.only != "" && o.only != "lakeweir" {
		return fmt.Errorf("-only %s: only lakeweir can run alone", o.only)
	}
	dir, err := os.MkdirTemp("", "lakeweir-reference-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // Postgres may run as another user
		return err
	}
	python, err := readers.NewPyIceberg(ctx)
	if err != nil {
		return err
	}
	on, err := stack.Start(ctx, stack.Config{Dir: filepath.Join(dir, "stack"), Kafka: true, Postgres: true, Told: told})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.Close()) }()
	b := bench{o: o, place: place{dir: dir, broker: on.Kafka.Address, dsn: on.Postgres.DSN}}
	if o.only == "" && o.profile == "" { // before anything is measured: it may have to be installed
		b.peer, err = peer.New(ctx, peer.Config{
			Dir: filepath.Join(dir, "peer"), Broker: b.broker, Prefix: topics.Prefix, BatchRows: o.batchRows(), History: o.history,
		})
		if err != nil {
			return err
		}
	}
	b.outcome, err = topics.Load(ctx, b.broker, workload.Config{Scale: o.scale, Seed: o.seed})
	if err != nil {
		return err
	}
	if b.verify, err = verify.New(python, dir, b.outcome); err != nil {
		return err
	}
	r, wrong, err := b.run(ctx)
	if err != nil {
		return err
	}
	r.Versions["kafka"] = on.Kafka.Version
	if r.Versions["lakeweir"], err = version(ctx, o.binary); err != nil {
		return err
	}
	r.print(os.Stdout)
	if err := r.write(o.out); err != nil {
		return err
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

// version is the program's, as it says itself.
func version(ctx context.Context, binary string) (string, error) {
	text, err := exec.CommandContext(ctx, binary, "version", "-o", "json").Output()
	if err != nil {
		return "", fmt.Errorf("ask the program its version: %w", err)
	}
	var said struct{ Version string }
	return said.Version, json.Unmarshal(text, &said)
}

func told(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// bench is what all runs share.
type bench struct {
	place
	o       options
	peer    *peer.Peer // nil: left out
	outcome *workload.Outcome
	verify  *verify.Verifier
}

// run makes all runs, and returns their figures and what is wrong.
func (b *bench) run(ctx context.Context) (*report, []string, error) {
	if err := b.prepare(ctx); err != nil {
		return nil, nil, err
	}
	r := &report{
		Scale: b.o.scale, Seed: b.o.seed, BatchRows: b.o.batchRows(), MemoryMiB: b.o.memory, History: b.o.history, CPUs: runtime.NumCPU(),
		Versions: map[string]string{"go": runtime.Version()},
	}
	for _, table := range workload.Tables() {
		r.Events += b.outcome.Total(table)
	}
	wrong, err := b.fold(ctx, r)
	if err != nil {
		return nil, nil, fmt.Errorf("lakeweir: %w", err)
	}
	if b.peer != nil {
		more, err := b.foldByPeer(ctx, r)
		if err != nil {
			return nil, nil, err
		}
		wrong = append(wrong, more...)
	}
	if b.o.crash && b.o.profile == "" {
		more, err := b.foldWithCrash(ctx, r)
		if err != nil {
			return nil, nil, fmt.Errorf("lakeweir, killed: %w", err)
		}
		wrong = append(wrong, more...)
	}
	return r, wrong, nil
}

// fold measures Lakeweir.
func (b *bench) fold(ctx context.Context, r *report) ([]string, error) {
	s, err := newStand(ctx, b.o, b.place, "whole")
	if err != nil {
		return nil, err
	}
	defer s.close()
	ended, found, err := b.toTheEnd(ctx, s, "lakeweir")
	if err != nil {
		return nil, err
	}
	r.lakeState, r.RowsDiffering, r.cost = stateOf(found), found.Differing(), costOf(ended.figures, ended.began, found)
	maps.Copy(r.Versions, found.Versions)
	r.Saves, err = s.saves(ctx)
	return wrong("lakeweir", found, b.outcome, true), err
}

// toTheEnd starts Lakeweir on the stand, waits until all is saved, ends it, and looks at
// what came of it.
func (b *bench) toTheEnd(ctx context.Context, s *stand, name string) (*running, verify.Result, error) {
	if err := s.start(ctx); err != nil {
		return nil, verify.Result{}, err
	}
	if err := s.saved(ctx, b.outcome); err != nil {
		return nil, verify.Result{}, err
	}
	ended, err := s.stop()
	if err != nil {
		return nil, verify.Result{}, err
	}
	told("%s: %s", name, ended.figures)
	found, err := b.look(ctx, s)
	return ended, found, err
}

func (b *bench) look(ctx context.Context, s *stand) (verify.Result, error) {
	l, err := s.lake(ctx)
	if err != nil {
		return verify.Result{}, err
	}
	return b.verify.Look(ctx, l)
}

// foldByPeer measures the peer.
func (b *bench) foldByPeer(ctx context.Context, r *report) ([]string, error) {
	began := time.Now() //nolint:forbidigo // what is measured
	figures, err := b.peer.Fold(ctx)
	if err != nil {
		return nil, err
	}
	told("spark: %s", figures)
	l, err := b.peer.Lake()
	if err != nil {
		return nil, err
	}
	found, err := b.verify.Look(ctx, l)
	if err != nil {
		return nil, err
	}
	r.against(costOf(figures, began, found), found.Differing())
	maps.Copy(r.Versions, b.peer.Versions())
	return wrong("spark", found, b.outcome, false), nil
}

// killBehind is behind which batch of its largest table Lakeweir is killed.
const killBehind = 3

// foldWithCrash has Lakeweir killed and started again.
func (b *bench) foldWithCrash(ctx context.Context, r *report) ([]string, error) {
	s, err := newStand(ctx, b.o, b.place, "killed")
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	err = s.await(ctx, 5*time.Millisecond, func() (bool, error) {
		commits, _, err := s.committed(ctx, workload.Payments)
		return commits >= killBehind, err
	})
	if err != nil {
		return nil, err
	}
	killed := s.kill()
	c := &crash{BatchesAtKill: map[string]int64{}, EventsAtKill: map[string]int64{}}
	for _, table := range workload.Tables() {
		if c.BatchesAtKill[table], c.EventsAtKill[table], err = s.committed(ctx, table); err != nil {
			return nil, err
		}
	}
	if n := c.EventsAtKill[workload.Payments]; n >= b.outcome.Total(workload.Payments) {
		return nil, fmt.Errorf("it was killed too late: bronze had all %d events of %s", n, workload.Payments)
	}
	told("lakeweir, killed with %d events in bronze: %s", sum(c.EventsAtKill), killed.figures)
	ended, found, err := b.toTheEnd(ctx, s, "lakeweir, started again")
	if err != nil {
		return nil, err
	}
	c.lakeState, c.RowsDiffering = stateOf(found), found.Differing()
	c.Process = tenths(killed.figures.Plus(ended.figures).Wall.Seconds())
	r.Crash = c
	return wrong("lakeweir, killed", found, b.outcome, true), nil
}

func (r *report) write(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, append(text, '\n'), 0o600))
}
