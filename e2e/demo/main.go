// Command demo runs lakeweir's demo with Debezium between the shop and the worker: it
// installs and starts Kafka, and Kafka Connect with Debezium's connector, and tells the
// demo where they are. Their data lies in the demo's folder, so that the next start goes
// on where this one stopped.
//
//	demo LAKEWEIR [flags of lakeweir demo]
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lakeweir/lakeweir/e2e/stack"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: demo LAKEWEIR [flags of lakeweir demo]")
		os.Exit(2)
	}
	err := run(os.Args[1], os.Args[2:])
	if exit, ok := errors.AsType[*exec.ExitError](err); ok { // it has said why
		os.Exit(max(exit.ExitCode(), 1))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(lakeweir string, args []string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, args := folder(args)
	if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		return tell(ctx, exec.Command(lakeweir, "demo", "--help")) //nolint:gosec,noctx // the program that make has built
	}
	began := time.Now()
	fmt.Println("stack     starting Kafka, and Connect with Debezium …")
	s, err := stack.Start(ctx, stack.Config{Dir: filepath.Join(dir, "stack"), Debezium: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	fmt.Printf("          they run after %.1f s, with their logs in %s\n", time.Since(began).Seconds(), filepath.Join(dir, "stack", "log"))
	args = append([]string{"demo", "--dir", dir, "--kafka", s.Kafka.Address, "--connect", s.Connect.URL}, args...)
	return tell(ctx, exec.Command(lakeweir, args...)) //nolint:gosec,noctx // likewise; it is ended by its signal, not the context's
}

// folder takes --dir from flags, which says where the demo keeps everything.
func folder(flags []string) (dir string, others []string) {
	dir = "lakeweir-demo-debezium"
	for i := 0; i < len(flags); i++ {
		value, ok := strings.CutPrefix(flags[i], "--dir=")
		switch {
		case ok:
			dir = value
		case flags[i] == "--dir" && i+1 < len(flags):
			i++
			dir = flags[i]
		default:
			others = append(others, flags[i])
		}
	}
	return dir, others
}

// tell runs a command in this terminal. Each signal that ends this program goes to the
// command, which ends in its own time, or at once after a second one.
func tell(ctx context.Context, cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's signal comes through us alone
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if ctx.Err() != nil { // before it began
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s)
		case err := <-ended:
			return err
		}
	}
}
