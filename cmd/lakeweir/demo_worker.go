package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
)

// childWorker runs "lakeweir run" as a child process, starts it again when it
// dies, and kills it at random when it is told to.
type childWorker struct {
	args      []string
	env       []string
	logFile   string
	killEvery time.Duration // on average; 0: never
	log       *slog.Logger

	kills  atomic.Int64
	deaths atomic.Int64 // that nobody asked for
}

// run keeps the child alive until ctx ends, then stops it as SIGTERM does and
// waits for it. It returns an error when the child dies by itself again and again.
func (w *childWorker) run(ctx context.Context) error {
	log, err := os.OpenFile(w.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the worker's log: %w", err)
	}
	defer log.Close()
	early := 0
	for {
		started := time.Now()
		killed, err := w.once(ctx, log)
		switch {
		case ctx.Err() != nil:
			return err
		case killed:
			w.kills.Add(1)
			early = 0
			continue
		}
		w.deaths.Add(1)
		if early++; time.Since(started) > 30*time.Second {
			early = 0
		}
		if early >= 5 {
			return catalog.Errorf(catalog.Unavailable, catalog.CodeWorkerEnded, "see the end of "+w.logFile, "the worker ended %d times in a row: %w", early, err)
		}
		w.log.WarnContext(ctx, "the worker ended by itself and is started again", "error", err, "log", w.logFile)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// once runs the child once. It reports whether the child was killed on purpose.
func (w *childWorker) once(ctx context.Context, log io.Writer) (killed bool, err error) {
	self, err := os.Executable()
	if err != nil {
		return false, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.Command(self, w.args...) //nolint:noctx // it is ended by SIGTERM below, not by the context's SIGKILL
	cmd.Env = append(os.Environ(), w.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()
	if err := startPinned(cmd); err != nil {
		return false, fmt.Errorf("start the worker: %w", err)
	}
	var kill <-chan time.Time
	if w.killEvery > 0 {
		kill = time.After(w.killEvery/2 + time.Duration(rand.Int64N(int64(w.killEvery)))) //nolint:gosec // when to kill is no secret
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if interrupted(err) {
			// A signal for the whole group reaches the child too, and may end it first.
			select {
			case <-ctx.Done():
				return false, nil
			case <-time.After(time.Second):
			}
		}
		return false, orExited(err)
	case <-kill:
		_ = cmd.Process.Kill()
		<-ended //nolint:errcheck // it only says that it was killed
		return true, nil
	case <-ctx.Done():
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		if interrupted(err) {
			return false, nil
		}
		return false, err
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		<-ended //nolint:errcheck // it only says that it was killed
		return false, errors.New("the worker did not stop within a minute and was killed")
	}
}

// interrupted reports the end of a child that was asked to end.
func interrupted(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return err == nil || ok && exit.ExitCode() == exitInterrupted
}

func orExited(err error) error {
	if err == nil {
		return errors.New("the worker ended though nobody asked it to")
	}
	return err
}

// startPinned starts a child that dies with this process. The kernel ties that to
// the thread that starts it, so the thread must live as long as the process.
func startPinned(cmd *exec.Cmd) error {
	starter.once.Do(func() {
		starter.work = make(chan func())
		go starter.loop()
	})
	done := make(chan error, 1)
	starter.work <- func() { done <- cmd.Start() }
	return <-done
}

type pinned struct {
	once sync.Once
	work chan func()
}

var starter pinned
