package laketest

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
)

// Server serves the engine's catalog by the Iceberg REST protocol, as far as a lake
// speaks it.
func (e *Engine) Server() http.Handler { return Serve(e.cat) }

// Serve is Server for any catalog.
func Serve(cat icecat.Catalog) http.Handler {
	s := restServer{cat}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/config", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"defaults": {}, "overrides": {}}`))
	})
	mux.HandleFunc("POST /v1/namespaces", s.createNamespace)
	mux.HandleFunc("POST /v1/namespaces/{ns}/tables", s.createTable)
	mux.HandleFunc("GET /v1/namespaces/{ns}/tables/{table}", s.loadTable)
	mux.HandleFunc("POST /v1/namespaces/{ns}/tables/{table}", s.commitTable)
	return mux
}

type restServer struct{ cat icecat.Catalog }

func refuse(w http.ResponseWriter, status int, err error) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": err.Error(), "type": "Error", "code": status}})
}

func part(r *http.Request, name string) table.Identifier {
	s, err := url.PathUnescape(r.PathValue(name))
	if err != nil {
		return nil
	}
	return strings.Split(s, "\x1f")
}

func answer(w http.ResponseWriter, md table.Metadata, loc string) {
	_ = json.NewEncoder(w).Encode(map[string]any{"metadata": md, "metadata-location": loc, "config": map[string]string{}})
}

// Ident is the table that a request is about.
func Ident(r *http.Request) []string {
	parts := strings.Split(r.URL.EscapedPath(), "/") // "", v1, namespaces, NS, tables, TABLE
	if len(parts) != 6 {
		return nil
	}
	var out []string
	for _, p := range []string{parts[3], parts[5]} {
		s, err := url.PathUnescape(p)
		if err != nil {
			return nil
		}
		out = append(out, strings.Split(s, "\x1f")...)
	}
	return out
}

func (s restServer) createNamespace(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Namespace []string `json:"namespace"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	if err := s.cat.CreateNamespace(r.Context(), in.Namespace, nil); err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"namespace": in.Namespace, "properties": map[string]string{}})
}

func (s restServer) createTable(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Name       string                 `json:"name"`
		Location   string                 `json:"location"`
		Schema     *iceberg.Schema        `json:"schema"`
		Spec       *iceberg.PartitionSpec `json:"partition-spec"`
		Properties iceberg.Properties     `json:"properties"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	opts := []icecat.CreateTableOpt{icecat.WithProperties(in.Properties)}
	if in.Spec != nil {
		opts = append(opts, icecat.WithPartitionSpec(in.Spec))
	}
	if in.Location != "" {
		opts = append(opts, icecat.WithLocation(in.Location))
	}
	t, err := s.cat.CreateTable(r.Context(), append(part(r, "ns"), in.Name), in.Schema, opts...)
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	answer(w, t.Metadata(), t.MetadataLocation())
}

func (s restServer) loadTable(w http.ResponseWriter, r *http.Request) {
	t, err := s.cat.LoadTable(r.Context(), append(part(r, "ns"), part(r, "table")...))
	switch {
	case errors.Is(err, icecat.ErrNoSuchTable), errors.Is(err, icecat.ErrNoSuchNamespace):
		refuse(w, http.StatusNotFound, err)
	case err != nil:
		refuse(w, http.StatusInternalServerError, err)
	default:
		answer(w, t.Metadata(), t.MetadataLocation())
	}
}

func (s restServer) commitTable(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Requirements table.Requirements `json:"requirements"`
		Updates      table.Updates      `json:"updates"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	md, loc, err := s.cat.CommitTable(r.Context(), append(part(r, "ns"), part(r, "table")...), in.Requirements, in.Updates)
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	answer(w, md, loc)
}
