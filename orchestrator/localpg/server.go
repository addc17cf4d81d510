package localpg

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
)

//go:embed supervise.sh
var supervise string

// Server is a running Postgres. Its methods may be called from any goroutine.
type Server struct {
	cfg   Config
	port  int
	pid   int
	id    string        // see instanceSetting
	stdin io.Closer     // its end stops the server
	ended chan struct{} // closed when the server's process is gone
}

// Start runs a server on cfg.Dir and returns when it accepts connections, which
// after a crash means when recovery is through. ctx bounds the start only. A
// server that an ended process left behind on the same folder is waited for.
// Errors are *catalog.Error.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg = cfg.WithDefaults()
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil || cfg.Dir == "" {
		return nil, catalog.Errorf(catalog.Invalid, catalog.CodeUsage, "name a folder for the server", "no folder for a private Postgres is given")
	}
	cfg.Dir = dir
	s, err := start(ctx, cfg)
	if err == nil {
		return s, nil
	}
	if e, ok := errors.AsType[*catalog.Error](err); ok {
		return nil, e
	}
	return nil, catalog.Errorf(catalog.Unavailable, catalog.CodeSourceUnreachable,
		"see postgres.log in that folder; or give the connection string of a running Postgres with --dsn",
		"the private Postgres in %s does not start: %w", cfg.Dir, err)
}

func start(ctx context.Context, cfg Config) (*Server, error) {
	data := filepath.Join(cfg.Dir, "data")
	who := chooseIdentity(data)
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil { //nolint:gosec // another user must enter it when we are root
		return nil, fmt.Errorf("make the folder: %w", err)
	}
	if cfg.RemoveDir { // whoever removes it must own it
		if err := who.own(cfg.Dir); err != nil {
			return nil, err
		}
	}
	lock, err := lockDir(ctx, cfg.Dir)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	major, err := dataVersion(data)
	if err != nil {
		return nil, err
	}
	in, err := binaries(ctx, cfg, who, major)
	if err != nil {
		return nil, err
	}
	run := runner{ctx: ctx, cfg: cfg, who: who, in: in}
	if major == 0 {
		err = run.initialise(data)
	} else if owner := ownerOf(data); who != nil && owner != nil && *owner != *who {
		err = who.own(data) // a copy that root made
	}
	if err != nil {
		return nil, err
	}
	// The lock proves that no server uses the data, so the file is stale; left
	// there, it stops the start if its process id is in use again.
	if err := os.Remove(filepath.Join(data, "postmaster.pid")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove a stale postmaster.pid: %w", err)
	}
	for attempt := 1; ; attempt++ {
		s, err := run.serve(data, lock)
		// A free port may have been taken by somebody else in between.
		if errors.Is(err, errPortTaken) && cfg.Port == 0 && attempt < 5 {
			continue
		}
		return s, err
	}
}

// lockWait is how long a server that is shutting down is waited for. It is longer
// than the supervisor lets a shutdown take.
const lockWait = 25 * time.Second

func lockDir(ctx context.Context, dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := tryLock(f)
		if ok {
			return f, nil
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock: %w", err), f.Close())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, errors.Join(catalog.Errorf(catalog.Conflict, catalog.CodeSourceUnreachable,
				"stop the other process, or use another folder",
				"another process runs the private Postgres in %s", dir), f.Close())
		}
	}
}

// dataVersion returns the major version of the data in dir, 0 when there is none.
func dataVersion(data string) (int, error) {
	b, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the data's version: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0, fmt.Errorf("read the data's version: %w", err)
	}
	return major, nil
}

// DSN returns the connection string of the named database.
func (s *Server) DSN(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User("postgres"),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), Path: database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Port returns the port on 127.0.0.1, by which a second Start comes back at the same
// address.
func (s *Server) Port() int { return s.port }

// Dir returns the folder given to Start.
func (s *Server) Dir() string { return s.cfg.Dir }

// Ended returns a channel that is closed when the server has ended, for whatever
// reason.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// Stop shuts the server down and waits until it has ended; open sessions are
// broken off. When ctx ends first the server is told to quit at once, which the
// next start recovers from. Stopping twice is harmless.
func (s *Server) Stop(ctx context.Context) error {
	_ = s.stdin.Close()
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
	}
	if err := quitProcess(s.pid); err != nil {
		return fmt.Errorf("end the private Postgres: %w", err)
	}
	<-s.ended
	return fmt.Errorf("stop the private Postgres: %w", ctx.Err())
}

// Kill ends the server as a crash would, with SIGKILL, and returns when its main
// process is gone. Start on the same folder recovers.
func (s *Server) Kill() error {
	select {
	case <-s.ended:
		return nil
	default:
	}
	if err := killProcess(s.pid); err != nil {
		return fmt.Errorf("kill the private Postgres: %w", err)
	}
	<-s.ended
	return nil
}

// wait returns when the server accepts connections.
func (s *Server) wait(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.ended: // then a connection attempt has nothing to wait for
			cancel()
		case <-ctx.Done():
		}
	}()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait until it accepts connections: %w", err)
		}
	}
}

// probe connects once and makes sure that it is this server that answers, not
// another one on a port that was taken in between.
func (s *Server) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var id string
	if err := conn.QueryRow(ctx, "select current_setting('"+instanceSetting+"', true)").Scan(&id); err != nil {
		return fmt.Errorf("ask which server answers: %w", err)
	}
	if id != s.id {
		return errPortTaken
	}
	return nil
}

// instanceSetting holds a random word by which a server is recognised.
const instanceSetting = "lakeweir.instance"

// watch reaps the supervisor.
func (s *Server) watch(cmd *exec.Cmd) {
	_ = cmd.Wait() // how it ended is in the log
	_ = s.stdin.Close()
	if s.cfg.RemoveDir {
		// The supervisor did it already, unless it may not go there.
		_ = os.RemoveAll(s.cfg.Dir)
	}
	close(s.ended)
}

// readPID reads the process id that the supervisor prints first.
func readPID(r io.Reader) (int, error) {
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("read the process id: %w", err)
	}
	return strconv.Atoi(strings.TrimSpace(line))
}
