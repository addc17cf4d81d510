// Package connecttest is a Kafka Connect for tests: it keeps connectors in memory and
// answers as the real one does, also while it rebalances, when a configuration is
// invalid, and when offsets are touched before the connector has stopped.
package connecttest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Server is a Kafka Connect. Its methods may be called at any time.
type Server struct {
	URL string

	mu         sync.Mutex
	changed    chan struct{} // closed at the next request
	connectors map[string]*connector
	offsets    map[string]bool // survive a connector that is only deleted
	requests   []string        // all but GET
	busy       int
	down       bool
	refusal    string
	slow       int
}

type connector struct {
	config map[string]string
	state  string
	trace  string
	task   string // "" when there is none
	stops  int    // how often it is asked until it has stopped
	unseen int    // how often it is asked until it has a status
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{changed: make(chan struct{}), connectors: map[string]*connector{}, offsets: map[string]bool{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Busy lets the next n requests meet a rebalance.
func (s *Server) Busy(n int) { s.with(func() { s.busy = n }) }

// Down lets every request fail until it is called with false.
func (s *Server) Down(down bool) { s.with(func() { s.down = down }) }

// Slow lets connectors that are made from now on have no status when they are asked for
// it the first n times.
func (s *Server) Slow(n int) { s.with(func() { s.slow = n }) }

// Refuse makes configurations invalid, for the reason given; "" ends that.
func (s *Server) Refuse(why string) { s.with(func() { s.refusal = why }) }

// FailTask lets the connector's task fail.
func (s *Server) FailTask(name, trace string) {
	s.with(func() { s.connectors[name].task, s.connectors[name].trace = "FAILED", trace })
}

// Fail lets the connector itself fail.
func (s *Server) Fail(name, trace string) {
	s.with(func() { s.connectors[name].state, s.connectors[name].trace = "FAILED", trace })
}

// Delete removes a connector as somebody else would, who leaves its offsets.
func (s *Server) Delete(name string) { s.with(func() { delete(s.connectors, name) }) }

// Set deploys a configuration as somebody else would.
func (s *Server) Set(name string, config map[string]string) {
	s.with(func() { s.put(name, maps.Clone(config)) })
}

// Config is the deployed configuration, nil when there is none.
func (s *Server) Config(name string) (config map[string]string) {
	s.with(func() {
		if c := s.connectors[name]; c != nil {
			config = maps.Clone(c.config)
		}
	})
	return config
}

// HasOffsets reports whether offsets of that name are kept.
func (s *Server) HasOffsets(name string) (has bool) {
	s.with(func() { has = s.offsets[name] })
	return has
}

// Requests are those that change something, in order: "PUT /connectors/x/pause".
func (s *Server) Requests() (out []string) {
	s.with(func() { out = append(out, s.requests...) })
	return out
}

// Await waits until the condition holds; it is looked at after each request.
func (s *Server) Await(ctx context.Context, condition func() bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if condition() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

func (s *Server) with(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

func (s *Server) put(name string, config map[string]string) (created bool) {
	config["name"] = name
	c := s.connectors[name]
	if c == nil {
		s.connectors[name], s.offsets[name] = &connector{config: config, state: "RUNNING", task: "RUNNING", unseen: s.slow}, true
		return true
	}
	c.config = config
	return false
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { close(s.changed); s.changed = make(chan struct{}) }()
	if s.down {
		refuse(w, http.StatusInternalServerError, "Request timed out. The worker is currently flushing updates to the status topic.")
		return
	}
	if r.Method != http.MethodGet {
		s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	}
	if s.busy > 0 {
		s.busy--
		refuse(w, http.StatusConflict, "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway.")
		return
	}
	if strings.HasSuffix(r.URL.Path, "/config/validate") {
		s.requests = s.requests[:len(s.requests)-1] // it changes nothing
		s.validate(w)
		return
	}
	rest, ok := strings.CutPrefix(r.URL.Path, "/connectors/")
	if !ok {
		refuse(w, http.StatusNotFound, "HTTP 404 Not Found")
		return
	}
	name, action, _ := strings.Cut(rest, "/")
	if r.Method == http.MethodPut && action == "config" {
		s.putConfig(w, r, name)
		return
	}
	c := s.connectors[name]
	if c != nil && c.unseen > 0 && action == "status" {
		c.unseen--
		c = nil
	}
	if c == nil {
		message := "Connector " + name + " not found"
		switch action {
		case "status":
			message = "No status found for connector " + name
		case "restart":
			message = "Unknown connector: " + name
		}
		refuse(w, http.StatusNotFound, message)
		return
	}
	s.act(w, r.Method+" "+action, name, c)
}

func (s *Server) putConfig(w http.ResponseWriter, r *http.Request, name string) {
	var config map[string]string
	if err := json.NewDecoder(r.Body).Decode(&config); err != nil {
		refuse(w, http.StatusInternalServerError, "Cannot deserialize value")
		return
	}
	if n := config["name"]; n != "" && n != name {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("Connector name configuration (%s) doesn't match connector name in the URL (%s)", n, name))
		return
	}
	if s.refusal != "" {
		// Connect 4.3.1 fails over Debezium's answer.
		refuse(w, http.StatusInternalServerError, `Cannot invoke "org.apache.kafka.connect.runtime.rest.entities.ConfigValueInfo.errors()" because the return value of "org.apache.kafka.connect.runtime.rest.entities.ConfigInfo.configValue()" is null`)
		return
	}
	status := http.StatusOK
	if s.put(name, config) {
		status = http.StatusCreated
	}
	write(w, status, map[string]any{"name": name, "config": config, "tasks": []any{map[string]any{"connector": name, "task": 0}}, "type": "source"})
}

func (s *Server) validate(w http.ResponseWriter) {
	problems := []string{}
	if s.refusal != "" {
		problems = append(problems, s.refusal)
	}
	write(w, http.StatusOK, map[string]any{"name": "PostgresConnector", "error_count": len(problems), "groups": []string{}, "configs": []any{
		map[string]any{"definition": map[string]any{"name": "task.id"}, "value": nil},
		map[string]any{"definition": map[string]any{"name": "database.hostname"}, "value": map[string]any{"name": "database.hostname", "value": "db", "errors": problems, "visible": true}},
	}})
}

func (s *Server) act(w http.ResponseWriter, request, name string, c *connector) {
	switch request {
	case "GET config":
		write(w, http.StatusOK, c.config)
	case "GET status":
		s.settle(c)
		write(w, http.StatusOK, c.status(name))
	case "PUT pause":
		c.state, c.task = "PAUSED", "PAUSED"
		w.WriteHeader(http.StatusAccepted)
	case "PUT resume":
		c.state, c.task = "RUNNING", "RUNNING"
		w.WriteHeader(http.StatusAccepted)
	case "PUT stop":
		c.state, c.stops = "STOPPED", 1
		w.WriteHeader(http.StatusNoContent)
	case "POST restart":
		if c.state == "FAILED" {
			c.state = "RUNNING"
		}
		if c.task == "FAILED" {
			c.task = "RUNNING"
		}
		c.trace = ""
		write(w, http.StatusAccepted, c.status(name))
	case "DELETE offsets":
		if c.state != "STOPPED" || c.task != "" {
			refuse(w, http.StatusBadRequest, "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified connector by issuing a 'PUT' request to the '/connectors/"+name+"/stop' endpoint")
			return
		}
		s.offsets[name] = false
		write(w, http.StatusOK, map[string]string{"message": "The offsets for this connector have been reset successfully"})
	case "DELETE ":
		delete(s.connectors, name)
		w.WriteHeader(http.StatusNoContent)
	default:
		refuse(w, http.StatusMethodNotAllowed, "HTTP 405 Method Not Allowed")
	}
}

// settle lets the task of a stopped connector end a moment after the request.
func (s *Server) settle(c *connector) {
	if c.state == "STOPPED" {
		if c.stops--; c.stops < 0 {
			c.task = ""
		}
	}
}

func (c *connector) status(name string) map[string]any {
	own := map[string]any{"state": c.state, "worker_id": "127.0.0.1:8083"}
	if c.state == "FAILED" {
		own["trace"] = c.trace
	}
	tasks := []any{}
	if c.task != "" {
		task := map[string]any{"id": 0, "state": c.task, "worker_id": "127.0.0.1:8083"}
		if c.task == "FAILED" {
			task["trace"] = c.trace
		}
		tasks = append(tasks, task)
	}
	return map[string]any{"name": name, "connector": own, "tasks": tasks, "type": "source"}
}

func refuse(w http.ResponseWriter, status int, message string) {
	write(w, status, map[string]any{"error_code": status, "message": message})
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client has gone
}
