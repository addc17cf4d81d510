package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/orchestrator/monitor"
)

const (
	fleetTitle = "Lakeweir · fleet"
	// answerWithin bounds one answer, so that a registry that hangs cannot gather
	// requests.
	answerWithin = 8 * time.Second
	longSearch   = 200 // characters of a search that count
)

// New serves the pages, /healthz (the process lives), /readyz (the registry answers;
// one broken table changes nothing) and the same facts as JSON below /api. It reads
// only. It has no login: listen on the loopback interface, or put one before it.
func New(views Views) http.Handler {
	s := &server{views: views}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.fleet)
	mux.HandleFunc("GET /fragments/fleet", s.fleetFragment)
	mux.HandleFunc("GET /tables/{source}/{table}", s.table)
	mux.HandleFunc("GET /fragments/tables/{source}/{table}", s.tableFragment)
	mux.HandleFunc("GET /api/tables", s.apiTables)
	mux.HandleFunc("GET /api/tables/{source}/{table}", s.apiTable)
	mux.HandleFunc("GET /api/sources", s.apiSources)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, map[string]bool{"ok": true}) })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /assets/", serveAssets())
	mux.HandleFunc("/", s.notFound)
	return secured(mux)
}

// secured lets pages load nothing that is not ours, and ends what takes too long.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

type server struct{ views Views }

func (s *server) fleet(w http.ResponseWriter, r *http.Request) {
	report, err := s.views.Fleet(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	render(w, r, http.StatusOK, fleetView(fleetPageOf(report, filterOf(r))))
}

func (s *server) fleetFragment(w http.ResponseWriter, r *http.Request) {
	report, err := s.views.Fleet(r.Context())
	if err != nil {
		failText(w, err)
		return
	}
	render(w, r, http.StatusOK, fleetLive(fleetPageOf(report, filterOf(r))))
}

func (s *server) table(w http.ResponseWriter, r *http.Request) {
	detail, err := s.views.Table(r.Context(), r.PathValue("source"), r.PathValue("table"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	render(w, r, http.StatusOK, tableView(tablePageOf(detail)))
}

func (s *server) tableFragment(w http.ResponseWriter, r *http.Request) {
	detail, err := s.views.Table(r.Context(), r.PathValue("source"), r.PathValue("table"))
	if err != nil {
		failText(w, err)
		return
	}
	render(w, r, http.StatusOK, tableLive(tablePageOf(detail)))
}

func (s *server) apiTables(w http.ResponseWriter, r *http.Request) {
	s.api(w, r, func(report *monitor.Report) any { return report.Document() })
}

func (s *server) apiSources(w http.ResponseWriter, r *http.Request) {
	s.api(w, r, func(report *monitor.Report) any { return report.SourcesDocument() })
}

func (s *server) api(w http.ResponseWriter, r *http.Request, document func(*monitor.Report) any) {
	report, err := s.views.Fleet(r.Context())
	if err != nil {
		failJSON(w, err)
		return
	}
	writeJSON(w, http.StatusOK, document(report))
}

func (s *server) apiTable(w http.ResponseWriter, r *http.Request) {
	detail, err := s.views.Table(r.Context(), r.PathValue("source"), r.PathValue("table"))
	if err != nil {
		failJSON(w, err)
		return
	}
	writeJSON(w, http.StatusOK, detail.Document())
}

func (s *server) ready(w http.ResponseWriter, r *http.Request) {
	report, err := s.views.Fleet(r.Context())
	if err != nil {
		failJSON(w, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"ready": true, "tables": report.Summary.Tables, "withinTier": report.Summary.Within})
}

func (s *server) notFound(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "these pages only show: use GET", http.StatusMethodNotAllowed)
		return
	}
	render(w, r, http.StatusNotFound, errorPage(problem{Title: "No such page", Message: "There is nothing at " + r.URL.Path + ".", Hint: "go to the fleet: /"}))
}

func filterOf(r *http.Request) fleetFilter {
	q := r.URL.Query()
	f := fleetFilter{Search: strings.TrimSpace(strings.ToValidUTF8(q.Get("q"), ""))}
	if runes := []rune(f.Search); len(runes) > longSearch {
		f.Search = string(runes[:longSearch])
	}
	for _, h := range monitor.Healths() {
		if string(h) == q.Get("state") {
			f.Health = h
		}
	}
	return f
}

// problem is an error on a page of its own.
type problem struct {
	Title, Message, Hint, Code string
}

func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := publicOf(err)
	title := "This page cannot be shown now"
	if e.Kind == catalog.NotFound {
		title = "No such table"
	}
	render(w, r, status(e.Kind), errorPage(problem{Title: title, Message: e.Error(), Hint: e.Hint, Code: string(e.Code)}))
}

// failText answers the script that keeps a page live.
func failText(w http.ResponseWriter, err error) {
	e := publicOf(err)
	http.Error(w, e.Error(), status(e.Kind))
}

type apiProblem struct {
	Code    catalog.Code `json:"code"`
	Kind    string       `json:"kind"`
	Message string       `json:"message"`
	Hint    string       `json:"hint,omitempty"`
}

func failJSON(w http.ResponseWriter, err error) {
	e := publicOf(err)
	writeJSON(w, status(e.Kind), map[string]any{"ok": false, "errors": []apiProblem{{e.Code, e.Kind.String(), e.Error(), e.Hint}}})
}

func publicOf(err error) *catalog.Error {
	if errors.Is(err, context.DeadlineExceeded) {
		return catalog.Errorf(catalog.Unavailable, catalog.CodeRegistryUnavailable, "check that its Postgres runs", "the registry does not answer")
	}
	return catalog.Public(err)
}

// status is the only place that turns a kind of error into an HTTP status.
func status(k catalog.Kind) int {
	switch k {
	case catalog.Invalid:
		return http.StatusBadRequest
	case catalog.NotFound:
		return http.StatusNotFound
	case catalog.Conflict:
		return http.StatusConflict
	case catalog.Denied:
		return http.StatusForbidden
	case catalog.Unavailable:
		return http.StatusServiceUnavailable
	case catalog.Internal:
		return http.StatusInternalServerError
	}
	return http.StatusInternalServerError
}

// render writes the page whole or not at all.
func render(w http.ResponseWriter, r *http.Request, status int, c templ.Component) {
	templ.Handler(c, templ.WithStatus(status)).ServeHTTP(w, r)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // the reader is gone: nothing is left to do
}
