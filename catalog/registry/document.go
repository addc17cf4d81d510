package registry

import (
	"encoding/json"
	"errors"

	"github.com/lakeweir/lakeweir/catalog"
)

// texts writes values as JSON texts, for parameters that are cast to jsonb.
func texts(values ...any) ([]string, error) {
	out := make([]string, len(values))
	for i, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		out[i] = string(b)
	}
	return out, nil
}

// textOf is a document that others made; nil for none.
func textOf(doc json.RawMessage) (*string, error) {
	if doc == nil {
		return nil, nil //nolint:nilnil // NULL
	}
	if !json.Valid(doc) {
		return nil, errors.New("it is no JSON")
	}
	s := string(doc)
	return &s, nil
}

func raw(text *string) json.RawMessage {
	if text == nil {
		return nil
	}
	return json.RawMessage(*text)
}

// schemaTexts writes columns as they are stored; nil for none.
func schemaTexts(before, after *catalog.Schema) (b, a *string, err error) {
	for _, s := range []struct {
		schema *catalog.Schema
		into   **string
	}{{before, &b}, {after, &a}} {
		if s.schema == nil {
			continue
		}
		doc, err := texts(docOf(s.schema))
		if err != nil {
			return nil, nil, err
		}
		*s.into = &doc[0]
	}
	return b, a, nil
}
