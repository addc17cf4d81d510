// Command build measures what a newcomer waits for: a cold build of lakeweir, with
// modules downloaded and an empty build cache, in CPU-seconds of all processes. It
// fails when that is more than -limit.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

type report struct {
	CPUSeconds  float64 `json:"cpu_s"`
	WallSeconds float64 `json:"wall_s"`
	BinaryMiB   float64 `json:"binary_mib"`
	Limit       float64 `json:"limit_cpu_s"`
	Go          string  `json:"go"`
	CPUs        int     `json:"cpus"`
}

func main() {
	limit := flag.Float64("limit", 360, "most CPU-seconds that a cold build may take")
	out := flag.String("out", "bench/out/build.json", "where the figures go")
	flag.Parse()
	if err := measure(context.Background(), *limit, *out); err != nil {
		fmt.Fprintln(os.Stderr, "bench/build:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, limit float64, out string) error {
	dir, err := os.MkdirTemp("", "lakeweir-build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := execute(ctx, nil, "go", "mod", "download"); err != nil {
		return err
	}
	before, start := childCPU(), time.Now()
	binary := filepath.Join(dir, "lakeweir")
	if err := execute(ctx, []string{"GOCACHE=" + filepath.Join(dir, "cache")}, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "./cmd/lakeweir"); err != nil {
		return err
	}
	r := report{CPUSeconds: (childCPU() - before).Seconds(), WallSeconds: time.Since(start).Seconds(), Limit: limit, Go: runtime.Version(), CPUs: runtime.NumCPU()}
	if info, err := os.Stat(binary); err == nil {
		r.BinaryMiB = float64(info.Size()) / (1 << 20)
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	fmt.Println(string(b))
	if err := errors.Join(os.MkdirAll(filepath.Dir(out), 0o750), os.WriteFile(out, append(b, '\n'), 0o600)); err != nil {
		return err
	}
	if r.CPUSeconds > limit {
		return fmt.Errorf("a cold build took %.0f CPU-seconds, more than %.0f", r.CPUSeconds, limit)
	}
	return nil
}

func execute(ctx context.Context, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// childCPU is the CPU time of all finished processes below this one.
func childCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
