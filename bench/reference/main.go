package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"syscall"

	"github.com/lakeweir/lakeweir/bench/program"
	"github.com/lakeweir/lakeweir/bench/workload"
)

type options struct {
	binary  string
	scale   float64
	seed    uint64
	only    string
	history bool
	crash   bool
	memory  int
	out     string
	profile string
}

// batchRows is how many events are folded at once, of a workload that is made smaller
// a part as large.
func (o options) batchRows() int { return max(1, int(250_000*min(1, o.scale))) }

func main() {
	if asked, err := program.Asked(profileCPU); asked {
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench/reference: worker:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.StringVar(&o.binary, "binary", "bin/lakeweir", "the program to measure")
	flag.Float64Var(&o.scale, "scale", 1, "part of the reference workload, and of its batches of 250,000")
	flag.Uint64Var(&o.seed, "seed", workload.Reference().Seed, "of the workload")
	flag.StringVar(&o.only, "only", "", "lakeweir leaves the peer out")
	flag.BoolVar(&o.history, "history", false, "keep the history of orders, too")
	flag.BoolVar(&o.crash, "crash", true, "also run with a SIGKILL behind the third batch")
	flag.IntVar(&o.memory, "memory", 1280, "MiB that Lakeweir is told to take; batches of 250,000 rows need 1280")
	flag.StringVar(&o.out, "out", "bench/out/reference.json", "where the figures go")
	flag.StringVar(&o.profile, "profile", "", "instead of the program run the same worker from here once, and write profiles of its CPU and its heap to this folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := measure(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/reference:", err)
		os.Exit(1)
	}
}

// profileCPU writes what a worker spends its time and its memory on.
func profileCPU(ctx context.Context, dir string) {
	cpu, err := os.Create(filepath.Join(dir, "cpu.pprof"))
	if err == nil {
		err = pprof.StartCPUProfile(cpu)
	}
	<-ctx.Done()
	pprof.StopCPUProfile()
	var heap *os.File
	if err == nil {
		heap, err = os.Create(filepath.Join(dir, "allocs.pprof"))
	}
	if err == nil {
		runtime.GC()
		err = pprof.Lookup("allocs").WriteTo(heap, 0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/reference: profile:", err)
	}
}
