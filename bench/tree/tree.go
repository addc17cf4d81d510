// Package tree measures a program as a whole process tree, so that programs of any
// make are measured alike. It needs Linux.
package tree

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Figures are what a program took.
type Figures struct {
	Wall time.Duration
	// CPU is user and system time of the process and of all descendants that were
	// waited for.
	CPU time.Duration
	// PeakRSS is the largest sum of the resident memory of all its processes, in bytes,
	// looked at four times a second.
	PeakRSS int64
}

func (f Figures) String() string {
	return fmt.Sprintf("%.1f s wall, %.1f CPU-s, %d MiB", f.Wall.Seconds(), f.CPU.Seconds(), f.PeakRSS>>20)
}

// Watch begins to measure a command that has started. The function that it returns
// waits for its end and gives the figures, also of one that failed or was killed.
func Watch(ctx context.Context, cmd *exec.Cmd, began time.Time) (wait func() (Figures, error)) {
	ctx, stop := context.WithCancel(ctx)
	var f Figures
	var sampling sync.WaitGroup
	sampling.Go(func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			f.PeakRSS = max(f.PeakRSS, resident(cmd.Process.Pid))
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return func() (Figures, error) {
		err := cmd.Wait()
		f.Wall = time.Since(began)
		stop()
		sampling.Wait()
		f.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		return f, err
	}
}

// Run runs a command to its end and measures it.
func Run(ctx context.Context, cmd *exec.Cmd) (Figures, error) {
	began := time.Now() //nolint:forbidigo // what is measured
	if err := cmd.Start(); err != nil {
		return Figures{}, err
	}
	return Watch(ctx, cmd, began)()
}

// Plus adds what runs that followed each other took.
func (f Figures) Plus(g Figures) Figures {
	return Figures{Wall: f.Wall + g.Wall, CPU: f.CPU + g.CPU, PeakRSS: max(f.PeakRSS, g.PeakRSS)}
}

// resident sums the memory of a process and its descendants.
func resident(root int) int64 {
	folders, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	children, pages := map[int][]int{}, map[int]int64{}
	for _, folder := range folders {
		pid, err := strconv.Atoi(folder.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + folder.Name() + "/stat")
		if err != nil {
			continue // it has ended meanwhile
		}
		// The second field, the name in brackets, may hold anything.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 22 {
			continue
		}
		parent, _ := strconv.Atoi(fields[1])         // a number by the format
		n, _ := strconv.ParseInt(fields[21], 10, 64) // likewise
		children[parent] = append(children[parent], pid)
		pages[pid] = n
	}
	var sum int64
	for todo := []int{root}; len(todo) > 0; {
		pid := todo[0]
		sum += pages[pid]
		todo = append(todo[1:], children[pid]...)
	}
	return sum * int64(os.Getpagesize())
}
