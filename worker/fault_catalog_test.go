package worker_test

import (
	"bytes"
	"context"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/lakeweir/lakeweir/worker/lake/laketest"
)

// front stands before a run's catalog and decides what becomes of a commit, by its
// number in this life of the worker. The engine behind it is reached past it.
type front struct {
	engine *laketest.Engine
	fired  func(kind string)
	// others does what another writer does to a table just before our commit.
	others func(kind string, ident []string)

	mu     sync.Mutex
	faults map[int]fault
	asked  int // commits in this life
	down   int // requests, or connections, still to be refused
	pid    int // of the worker's process
	conns  map[net.Conn]bool
}

// live begins a new life of the worker.
func (f *front) live(pid int, faults []fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked, f.down, f.pid, f.faults = 0, 0, pid, map[int]fault{}
	for _, ft := range faults {
		f.faults[ft.At] = ft
	}
}

// refuses reports whether the catalog is down.
func (f *front) refuses() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down > 0 {
		f.down--
		return true
	}
	return false
}

// next counts a commit and returns its fault, having done what comes before it.
func (f *front) next(ident []string) fault {
	f.mu.Lock()
	f.asked++
	ft := f.faults[f.asked]
	pid := f.pid
	if ft.Kind == catalogDown {
		f.down = ft.For
	}
	f.mu.Unlock()
	if ft.Kind == "" {
		return ft
	}
	f.fired(ft.Kind)
	switch ft.Kind {
	case killedCommit:
		kill(pid)
	case rivalProperty, rivalManifests, rivalCompacts, rivalColumn, rivalRollsBack, rivalExpires:
		if ident != nil {
			f.others(ft.Kind, ident)
		}
	}
	return ft
}

// kill kills a worker. Without one there is nobody to kill: 0 would be everybody.
func kill(pid int) {
	if pid > 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func (f *front) dies(ft fault) {
	if ft.Kind == killedCommitted {
		f.mu.Lock()
		pid := f.pid
		f.mu.Unlock()
		kill(pid)
	}
}

// rest serves the engine's catalog by the REST protocol.
func (f *front) rest() http.Handler {
	pass := f.engine.Server()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.refuses() {
			http.Error(w, "{}", http.StatusServiceUnavailable)
			return
		}
		commits := r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/tables")
		if !commits {
			pass.ServeHTTP(w, r)
			return
		}
		ft := f.next(laketest.Ident(r))
		switch ft.Kind {
		case commitRefused, catalogDown:
			http.Error(w, "{}", http.StatusServiceUnavailable)
		case killedCommit:
			panic(http.ErrAbortHandler)
		case replyLost, replyCut, killedCommitted:
			pass.ServeHTTP(httptest.NewRecorder(), r)
			f.dies(ft)
			if ft.Kind != replyLost {
				panic(http.ErrAbortHandler) // cuts the connection
			}
			http.Error(w, "{}", http.StatusServiceUnavailable)
		default:
			pass.ServeHTTP(w, r)
		}
	})
}

// proxy passes connections on to a Postgres that holds a catalog, and returns the DSN
// to reach it by.
func (f *front) proxy(ctx context.Context, dsn string) (string, func(), error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	f.conns = map[net.Conn]bool{}
	to := u.Host
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if f.refuses() {
				_ = c.Close()
				continue
			}
			all.Go(func() { f.pass(c, to) })
		}
	})
	u.Host = l.Addr().String()
	return u.String(), func() { _ = l.Close(); f.cut(); all.Wait() }, nil
}

// cut ends every connection.
func (f *front) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range maps.Clone(f.conns) {
		_ = c.Close()
	}
}

// pass hands bytes on both ways. A statement that names two metadata files is a
// commit, one that names one makes a table.
func (f *front) pass(client net.Conn, to string) {
	server, err := net.Dial("tcp", to)
	if err != nil {
		_ = client.Close()
		return
	}
	f.mu.Lock()
	f.conns[client], f.conns[server] = true, true
	f.mu.Unlock()
	var lost sync.Once
	loses := make(chan struct{}) // closed when the next answer is lost
	finish := func() {
		_, _ = client.Close(), server.Close()
		f.mu.Lock()
		delete(f.conns, client)
		delete(f.conns, server)
		f.mu.Unlock()
	}
	var after fault
	var both sync.WaitGroup
	both.Go(func() {
		defer finish()
		buf := make([]byte, 1<<20)
		for {
			n, err := client.Read(buf)
			if err != nil {
				return
			}
			if bytes.Contains(buf[:n], []byte(".metadata.json")) && bytes.Contains(buf[:n], []byte("B")) {
				ft := f.next(identOf(buf[:n]))
				switch ft.Kind {
				case commitRefused, killedCommit:
					return
				case catalogDown:
					f.cut()
					return
				case replyLost, replyCut, killedCommitted:
					after = ft
					lost.Do(func() { close(loses) })
				}
			}
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	both.Go(func() {
		defer finish()
		buf := make([]byte, 1<<20)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			select {
			case <-loses:
				f.dies(after)
				return
			default:
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	both.Wait()
}

// identOf finds the table that a commit is of by the folder of its metadata, as the
// lake lays it out: …/lake/NAMESPACE/TABLE/metadata/….
func identOf(b []byte) []string {
	_, rest, ok := strings.Cut(string(b), "/lake/")
	if !ok {
		return nil
	}
	parts := strings.SplitN(rest, "/", 4)
	if len(parts) < 3 || parts[2] != "metadata" {
		return nil
	}
	return slices.Clone(parts[:2])
}
