package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// SchemaRegistry keeps schemas for Avro, in memory of this process: no registry is to be
// had from package registries. It speaks as much of Apicurio's interface (version 2) as
// its converter needs, and of Confluent's as readers do. Both see the same schemas under
// the same numbers.
type SchemaRegistry struct {
	URL string // of Confluent's interface
	// Apicurio is the URL of Apicurio's.
	Apicurio string

	server *http.Server

	mu       sync.Mutex
	schemas  []string         // by number, from 1
	subjects map[string][]int // numbers, by version from 1
}

// NewSchemaRegistry starts one on a free port.
func NewSchemaRegistry(ctx context.Context) (*SchemaRegistry, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address(0))
	if err != nil {
		return nil, err
	}
	r := &SchemaRegistry{URL: "http://" + listener.Addr().String(), subjects: map[string][]int{}}
	r.Apicurio = r.URL + "/apis/registry/v2"
	mux := http.NewServeMux()
	mux.HandleFunc("POST /apis/registry/v2/groups/{group}/artifacts", r.createArtifact)
	for _, kind := range []string{"globalIds", "contentIds"} {
		mux.HandleFunc("GET /apis/registry/v2/ids/"+kind+"/{id}", r.content)
		mux.HandleFunc("GET /apis/registry/v2/ids/"+kind+"/{id}/references", func(w http.ResponseWriter, _ *http.Request) { answer(w, []string{}) })
	}
	mux.HandleFunc("GET /schemas/ids/{id}", r.schema)
	mux.HandleFunc("GET /subjects", r.names)
	mux.HandleFunc("POST /subjects/{subject}/versions", r.register)
	mux.HandleFunc("GET /subjects/{subject}/versions/{version}", r.version)
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = r.server.Serve(listener) }() // until Close
	return r, nil
}

// Close ends it.
func (r *SchemaRegistry) Close() error { return r.server.Close() }

const avroConverter = "io.apicurio.registry.utils.converter.AvroConverter"

// Converter is the configuration of Apicurio's converter in Kafka Connect, for keys or
// values, to write Confluent's wire format with the schemas of this registry. prefix is
// "key.converter" or "value.converter".
func (r *SchemaRegistry) Converter(prefix string) map[string]string {
	return map[string]string{
		prefix:                            avroConverter,
		prefix + ".apicurio.registry.url": r.Apicurio,
		prefix + ".apicurio.registry.auto-register":   "true",
		prefix + ".apicurio.registry.as-confluent":    "true",
		prefix + ".apicurio.registry.headers.enabled": "false",
	}
}

// put keeps a schema under a subject, and returns its number and version.
func (r *SchemaRegistry) put(subject, schema string) (id, version int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id = slices.Index(r.schemas, schema) + 1; id == 0 {
		r.schemas = append(r.schemas, schema)
		id = len(r.schemas)
	}
	versions := r.subjects[subject]
	if version = slices.Index(versions, id) + 1; version == 0 {
		r.subjects[subject] = append(versions, id)
		version = len(versions) + 1
	}
	return id, version
}

var errNoSchema = errors.New("no such schema")

// find returns the schema of a number in text.
func (r *SchemaRegistry) find(text string) (string, error) {
	id, err := strconv.Atoi(text)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || id < 1 || id > len(r.schemas) {
		return "", errNoSchema
	}
	return r.schemas[id-1], nil
}

func (r *SchemaRegistry) createArtifact(w http.ResponseWriter, req *http.Request) {
	schema, err := io.ReadAll(req.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	artifact, group := req.Header.Get("X-Registry-ArtifactId"), req.PathValue("group")
	id, version := r.put(artifact, string(schema))
	const at = "2026-01-01T00:00:00+0000"
	answer(w, map[string]any{
		"id": artifact, "groupId": group, "name": artifact, "type": "AVRO", "version": strconv.Itoa(version), "globalId": id, "contentId": id,
		"state": "ENABLED", "createdOn": at, "modifiedOn": at, "references": []string{},
	})
}

func (r *SchemaRegistry) content(w http.ResponseWriter, req *http.Request) {
	schema, err := r.find(req.PathValue("id"))
	if err != nil {
		refuse(w, http.StatusNotFound, err)
		return
	}
	_, _ = io.WriteString(w, schema) // the client has gone
}

func (r *SchemaRegistry) schema(w http.ResponseWriter, req *http.Request) {
	schema, err := r.find(req.PathValue("id"))
	if err != nil {
		refuse(w, http.StatusNotFound, err)
		return
	}
	answer(w, map[string]any{"schema": schema})
}

func (r *SchemaRegistry) names(w http.ResponseWriter, _ *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer(w, slices.Sorted(maps.Keys(r.subjects)))
}

func (r *SchemaRegistry) register(w http.ResponseWriter, req *http.Request) {
	var asked struct {
		Schema string `json:"schema"`
	}
	if err := json.NewDecoder(req.Body).Decode(&asked); err != nil {
		refuse(w, http.StatusUnprocessableEntity, err)
		return
	}
	id, _ := r.put(req.PathValue("subject"), asked.Schema)
	answer(w, map[string]any{"id": id})
}

func (r *SchemaRegistry) version(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	versions := r.subjects[req.PathValue("subject")]
	r.mu.Unlock()
	n := len(versions)
	if text := req.PathValue("version"); text != "latest" {
		n, _ = strconv.Atoi(text) // what is no number is no version either
	}
	if n < 1 || n > len(versions) {
		refuse(w, http.StatusNotFound, fmt.Errorf("no such version of %s", req.PathValue("subject")))
		return
	}
	schema, err := r.find(strconv.Itoa(versions[n-1]))
	if err != nil {
		refuse(w, http.StatusNotFound, err)
		return
	}
	answer(w, map[string]any{"subject": req.PathValue("subject"), "version": n, "id": versions[n-1], "schema": schema})
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // the client has gone
}

func refuse(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error_code": status, "message": err.Error()}) // the client has gone
}
