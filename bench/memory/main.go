package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"

	"github.com/lakeweir/lakeweir/bench/program"
)

type options struct {
	binary  string
	limit   float64
	format  int
	run     string
	out     string
	scale   float64
	profile string
	verbose bool
}

type report struct {
	LimitMiB  float64  `json:"limit_mib"`
	Format    int      `json:"format_version"`
	Scale     float64  `json:"scale"`
	Go        string   `json:"go"`
	CPUs      int      `json:"cpus"`
	Scenarios []result `json:"scenarios"`
}

// result is what one scenario took.
type result struct {
	Name  string  `json:"name"`
	Error string  `json:"error,omitempty"`
	Steps []usage `json:"worker"`
	Reads []usage `json:"reads,omitempty"` // reconcile and scan, processes of their own
}

// usage is what a process took for one step.
type usage struct {
	Name        string  `json:"name"`
	PeakMiB     float64 `json:"peak_rss_mib"`
	CPUSeconds  float64 `json:"cpu_s"`
	WallSeconds float64 `json:"wall_s"`
}

func main() {
	runtime.MemProfileRate = 64 << 10
	if asked, err := program.Asked(profile); asked {
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench/memory: worker:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.StringVar(&o.binary, "binary", "bin/lakeweir", "the program to measure")
	flag.Float64Var(&o.limit, "limit", 512, "most MiB that a worker may have resident")
	flag.IntVar(&o.format, "format", 3, "version of the lake's tables: 2 or 3")
	flag.StringVar(&o.run, "run", "", "run only the scenarios that match this expression")
	flag.StringVar(&o.out, "out", "bench/out/memory.json", "where the figures go")
	flag.Float64Var(&o.scale, "scale", 1, "part of the rows and bytes, to try a scenario out")
	flag.StringVar(&o.profile, "profile", "", "instead of the program run the same worker from here, and write profiles of its heap at its largest to this folder")
	flag.BoolVar(&o.verbose, "v", false, "show the worker's log")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := measure(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/memory:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, o options) error {
	only, err := regexp.Compile(o.run)
	if err != nil {
		return err
	}
	r := report{LimitMiB: o.limit, Format: o.format, Scale: o.scale, Go: runtime.Version(), CPUs: runtime.NumCPU()}
	var failed []error
	for _, s := range scenarios() {
		if !only.MatchString(s.name) {
			continue
		}
		res, err := play(ctx, o, s)
		if err != nil {
			res.Error = strings.TrimSpace(err.Error())
			failed = append(failed, fmt.Errorf("%s: %w", s.name, err))
		}
		r.Scenarios = append(r.Scenarios, res)
		for _, u := range res.Steps {
			if u.PeakMiB > o.limit {
				failed = append(failed, fmt.Errorf("%s: the worker had %.0f MiB resident in step %q, more than %.0f", s.name, u.PeakMiB, u.Name, o.limit))
			}
		}
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(o.out), 0o750), os.WriteFile(o.out, append(b, '\n'), 0o600)); err != nil {
		return err
	}
	return errors.Join(failed...)
}

// play plays one scenario from a new server to the last check.
func play(ctx context.Context, o options, s scenario) (result, error) {
	res := result{Name: s.name}
	b, err := newStage(ctx, o, s)
	if err != nil {
		return res, err
	}
	defer b.close(context.WithoutCancel(ctx))
	err = s.play(ctx, b)
	if err == nil && o.profile == "" {
		err = b.reads(ctx, s) // beside the worker: reconcile waits for it to have come as far
	}
	if err == nil {
		err = b.stop()
	}
	res.Steps, res.Reads = b.steps, b.others
	return res, err
}
