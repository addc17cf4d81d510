package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
)

// schemas finds Avro schemas in a registry of Confluent's interface, and remembers them:
// what has a number never changes.
type schemas struct {
	url    string
	client *http.Client

	mu   sync.Mutex
	have map[uint32]string
}

func newSchemas(url string, patience time.Duration) *schemas {
	return &schemas{url: strings.TrimRight(url, "/"), client: &http.Client{Timeout: patience}, have: map[uint32]string{}}
}

// mostSchema bounds what is read of an answer.
const mostSchema = 16 << 20

// Schema implements debezium.SchemaRegistry.
func (s *schemas) Schema(ctx context.Context, id uint32) (string, error) {
	s.mu.Lock()
	text, ok := s.have[id]
	s.mu.Unlock()
	if ok {
		return text, nil
	}
	text, err := s.fetch(ctx, id)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	s.have[id] = text
	s.mu.Unlock()
	return text, nil
}

func (s *schemas) fetch(ctx context.Context, id uint32) (string, error) {
	away := func(err error) error {
		return catalog.Errorf(catalog.Unavailable, catalog.CodeKafkaUnreachable, "check connector.schema_registry", "the schema registry does not answer: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/schemas/ids/%d", s.url, id), nil)
	if err != nil {
		return "", catalog.Errorf(catalog.Invalid, catalog.CodeKafkaUnreachable, "correct connector.schema_registry", "the schema registry's address cannot be used")
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return "", away(errors.New("no connection"))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusNotFound {
		return "", catalog.Errorf(catalog.Invalid, catalog.CodeDecode, "find out which registry the connector writes to", "the schema registry has no schema %d", id)
	}
	if resp.StatusCode != http.StatusOK {
		return "", away(fmt.Errorf("it answers %s", resp.Status))
	}
	var answer struct {
		Schema string `json:"schema"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, mostSchema)).Decode(&answer); err != nil {
		return "", away(err)
	}
	return answer.Schema, nil
}
