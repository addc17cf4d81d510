package localpg

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

var errPortTaken = errors.New("its port is taken")

// runner runs the binaries of one server as the right user.
type runner struct {
	ctx context.Context
	cfg Config
	who *identity
	in  install
}

// command returns a supervised command that works on the data directory, and the
// name under which that command sees it. As root the folder may lie where the
// other user cannot go, such as root's home: then it is handed over open.
func (r runner) command(data, remove string, lock *os.File, name string, args func(data string) []string) (*exec.Cmd, func(), error) {
	done := func() {}
	var extra []*os.File
	if lock == nil {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return nil, nil, err
		}
		lock, done = null, func() { _ = null.Close() }
	}
	extra = append(extra, lock) // descriptor 3
	if !r.who.reaches(r.ctx, data) {
		if runtime.GOOS != "linux" {
			done()
			return nil, nil, catalog.Errorf(catalog.Invalid, catalog.CodeUsage,
				"choose a folder that every user can enter, or start as another user than root",
				"Postgres does not run as root, and user %d may not enter %s", r.who.uid, data)
		}
		handle, err := os.Open(data)
		if err != nil {
			return nil, nil, err
		}
		closeLock := done
		done = func() { closeLock(); _ = handle.Close() }
		extra = append(extra, handle) // descriptor 4
		data = "/proc/self/fd/4"
	}
	words := append([]string{"-c", supervise, "sh", remove, filepath.Join(r.in.dir, name)}, args(data)...)
	// Not bound to the context: that is for the start only.
	cmd := exec.CommandContext(context.WithoutCancel(r.ctx), "/bin/sh", words...)
	cmd.Dir = "/"
	cmd.Env = environment()
	cmd.ExtraFiles = extra
	cmd.SysProcAttr = attributes(r.who)
	return cmd, done, nil
}

// environment is ours without what would steer Postgres or its client library.
func environment() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PG") && !strings.HasPrefix(kv, "LC_") && !strings.HasPrefix(kv, "LANG") {
			env = append(env, kv)
		}
	}
	return append(env, "LC_ALL=C")
}

// initialise makes a new data directory. It is made beside its place and moved
// there when whole, so that a kill in between leaves nothing half made.
func (r runner) initialise(data string) error {
	r.cfg.Logger.InfoContext(r.ctx, "making a postgres data directory", "dir", data, "postgres", r.in.dir, "version", r.in.major)
	fresh := data + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove an unfinished data directory: %w", err)
	}
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	if err := r.who.own(fresh); err != nil {
		return err
	}
	cmd, done, err := r.command(fresh, "", nil, "initdb", func(data string) []string {
		return []string{"-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"}
	})
	if err != nil {
		return fmt.Errorf("prepare initdb: %w", err)
	}
	defer done()
	stdin, err := cmd.StdinPipe() // as for a server: if we die, it is ended
	if err != nil {
		return fmt.Errorf("prepare initdb: %w", err)
	}
	defer stdin.Close()
	stop := context.AfterFunc(r.ctx, func() { _ = stdin.Close() })
	defer stop()
	var out bytes.Buffer
	cmd.Stderr = &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("initdb: %w: %s", errors.Join(r.ctx.Err(), err), lastLines(out.Bytes(), 5))
	}
	if err := os.Rename(fresh, data); err != nil {
		return fmt.Errorf("put the data directory in place: %w", err)
	}
	return nil
}

// serve starts the server and waits until it answers.
func (r runner) serve(data string, lock *os.File) (*Server, error) {
	port := r.cfg.Port
	if port == 0 {
		var err error
		if port, err = freePort(r.ctx); err != nil {
			return nil, err
		}
	}
	log, err := os.OpenFile(filepath.Join(r.cfg.Dir, "postgres.log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	defer log.Close()
	before, err := log.Stat()
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	remove := ""
	if r.cfg.RemoveDir {
		remove = r.cfg.Dir
	}
	id := rand.Text()
	cmd, done, err := r.command(data, remove, lock, "postgres", func(data string) []string {
		return append([]string{"-D", data, "-p", strconv.Itoa(port), "-c", instanceSetting + "=" + id}, arguments(r.cfg.Settings)...)
	})
	if err != nil {
		return nil, fmt.Errorf("prepare the server: %w", err)
	}
	defer done()
	cmd.Stderr = log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("prepare the server: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("prepare the server: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("run the server: %w", err)
	}
	s := &Server{cfg: r.cfg, port: port, id: id, stdin: stdin, ended: make(chan struct{})}
	pid, pidErr := readPID(stdout)
	s.pid = pid
	go s.watch(cmd)
	if err := s.wait(r.ctx); err != nil || pidErr != nil {
		_ = stdin.Close()
		<-s.ended
		said, _ := os.ReadFile(log.Name()) // only for the message
		said = said[min(int64(len(said)), before.Size()):]
		if bytes.Contains(said, []byte("Address already in use")) {
			return nil, fmt.Errorf("%w: port %d", errPortTaken, port)
		}
		return nil, fmt.Errorf("%w: %s", errors.Join(err, pidErr), lastLines(said, 5))
	}
	r.cfg.Logger.InfoContext(r.ctx, "postgres runs", "port", port, "dir", r.cfg.Dir, "version", r.in.major)
	return s, nil
}

// lastLines returns the end of a log on one line, for a message.
func lastLines(b []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], " / ")
}

// freePort asks the system for a port that nobody listens on now.
func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("find a free port: the listener has no TCP address")
	}
	return addr.Port, nil
}
