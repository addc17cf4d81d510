package stack

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed supervise.sh
var supervise string

// startWithin bounds the start of a service. Java on a busy machine takes its time.
const startWithin = 2 * time.Minute

// Process is a service that runs as a process of its own. Its methods are for one
// goroutine at a time.
type Process struct {
	Name string
	// Log is the file with what it has printed, over all its starts.
	Log string

	argv  []string
	env   []string // besides ours
	ready func(context.Context) error
	told  func(format string, args ...any)

	pid   int
	stdin io.Closer     // its end kills the service
	ended chan struct{} // closed when the process is gone
}

// Start runs the service and returns when it answers. ctx bounds the start only.
func (p *Process) Start(ctx context.Context) error {
	began := time.Now()
	if err := p.run(ctx); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	if err := p.answers(ctx); err != nil {
		_ = p.Kill()
		return fmt.Errorf("start %s: %w; the end of its log:\n%s", p.Name, err, Tail(p.Log, 20))
	}
	p.told("%s answers after %.1f s", p.Name, time.Since(began).Seconds())
	return nil
}

func (p *Process) run(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(p.Log), 0o750); err != nil {
		return err
	}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	pidReader, pidWriter, err := os.Pipe()
	if err != nil {
		return err
	}
	defer pidReader.Close()
	defer pidWriter.Close()
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh", append([]string{"-c", supervise, "sh"}, p.argv...)...) //nolint:gosec // our own services
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{pidWriter}
	// A Ctrl-C in the terminal reaches what uses the services, not themselves.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	p.ended = ended
	go func() {
		_ = cmd.Wait() // how it ended is for the log
		close(ended)
	}()
	_ = pidWriter.Close()
	line, err := bufio.NewReader(pidReader).ReadString('\n')
	if err == nil {
		p.pid, err = strconv.Atoi(strings.TrimSpace(line))
	}
	if err != nil {
		_ = p.stdin.Close()
		return fmt.Errorf("read its process id: %w", err)
	}
	return nil
}

// answers returns when the service is ready.
func (p *Process) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		tried, done := context.WithTimeout(ctx, 5*time.Second)
		err := p.ready(tried)
		done()
		if err == nil {
			select {
			case <-p.ended: // somebody else has taken its port, and answers
			default:
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-p.ended:
			return errors.New("it has ended")
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w", err)
		}
	}
}

// PID is the service's process id.
func (p *Process) PID() int { return p.pid }

// Ended is closed when the service's process is gone.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Kill ends the service with SIGKILL and returns when it is gone.
func (p *Process) Kill() error { return p.signal(syscall.SIGKILL) }

// Stop ends the service with SIGTERM, as an operator would, and returns when it is
// gone; after 30 seconds it is killed.
func (p *Process) Stop() error { return p.signal(syscall.SIGTERM) }

func (p *Process) signal(s syscall.Signal) error {
	if p.ended == nil {
		return nil
	}
	select {
	case <-p.ended:
		return nil
	default:
	}
	if err := syscall.Kill(p.pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("end %s: %w", p.Name, err)
	}
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		_ = p.stdin.Close()
		<-p.ended
	}
	_ = p.stdin.Close()
	return nil
}

// Restart kills the service, when it runs, and starts it again on the same data and
// port.
func (p *Process) Restart(ctx context.Context) error {
	if err := p.Kill(); err != nil {
		return err
	}
	return p.Start(ctx)
}

// Tail returns the last lines of a file; empty when there is none.
func Tail(file string, lines int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	all := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}
