package tableconfig

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The JSON Schemas are generated from the structs and their comments; a test keeps
// them up to date.
//
//go:embed schema/*.schema.json
var schemaFiles embed.FS

// Format names one of the two kinds of file.
type Format string

// The formats, each with the file that has it.
const (
	TableFormat  Format = "table"  // <schema>.<table>.yaml
	SourceFormat Format = "source" // source.yaml
)

// Formats lists both, in the order docs show them.
func Formats() []Format { return []Format{TableFormat, SourceFormat} }

// Schema returns the JSON Schema (draft 2020-12) of a format, for editors and CI.
func Schema(f Format) ([]byte, error) {
	b, err := schemaFiles.ReadFile("schema/" + string(f) + ".schema.json")
	if err != nil {
		return nil, fmt.Errorf("schema of %q: %w", f, err)
	}
	return b, nil
}

// Field is the description of one key.
type Field struct {
	Format      Format   `json:"format"`
	Path        string   `json:"path"` // "heartbeat.interval"
	Type        string   `json:"type"` // in words: "list of texts"
	Required    bool     `json:"required"`
	Values      []string `json:"values,omitempty"` // the only ones allowed
	Default     string   `json:"default,omitempty"`
	Example     string   `json:"example,omitempty"` // a value as written in the file
	Description string   `json:"description"`
	// Unavailable, when not empty, says that the key is refused for now and what
	// to do instead.
	Unavailable string `json:"unavailable,omitempty"`
}

// node is what explanations read of a JSON Schema.
type node struct {
	Type        string          `json:"type"`
	Description string          `json:"description"`
	Properties  json.RawMessage `json:"properties"`
	Required    []string        `json:"required"`
	Enum        []any           `json:"enum"`
	Items       *node           `json:"items"`
	OneOf       []*node         `json:"oneOf"`
	Additional  json.RawMessage `json:"additionalProperties"`
	Default     string          `json:"x-default"`
	Example     string          `json:"x-example"`
	Unavailable string          `json:"x-unavailable"`
}

// Fields describes every key of a format, in the order of the file, nested ones
// after their mapping.
func Fields(f Format) ([]Field, error) {
	b, err := Schema(f)
	if err != nil {
		return nil, err
	}
	var root node
	if err := json.Unmarshal(b, &root); err != nil {
		return nil, fmt.Errorf("schema of %q: %w", f, err)
	}
	return fieldsOf(f, "", &root)
}

func fieldsOf(f Format, path string, n *node) ([]Field, error) {
	var out []Field
	dec := json.NewDecoder(strings.NewReader(string(n.Properties)))
	if _, err := dec.Token(); err != nil { // the opening brace; decoding by token keeps the order
		return nil, fmt.Errorf("properties of %q: %w", path, err)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("properties of %q: %w", path, err)
		}
		var p node
		if err := dec.Decode(&p); err != nil {
			return nil, fmt.Errorf("property %v: %w", key, err)
		}
		name := fmt.Sprint(key)
		field := Field{
			Format: f, Path: join(path, name), Type: p.words(), Required: slices.Contains(n.Required, name),
			Values: p.values(), Default: p.Default, Example: p.Example, Description: p.Description, Unavailable: p.Unavailable,
		}
		out = append(out, field)
		if len(p.Properties) > 0 {
			inner, err := fieldsOf(f, field.Path, &p)
			if err != nil {
				return nil, err
			}
			out = append(out, inner...)
		}
	}
	return out, nil
}

// words names a schema's type for a person.
func (n *node) words() string {
	switch {
	case n.Unavailable != "":
		return "not available yet"
	case len(n.OneOf) > 0:
		return "mapping of columns, or list of columns"
	case n.Type == "array" && n.Items != nil:
		return "list of " + n.Items.words() + "s"
	case n.Type == "string":
		return "text"
	case n.Type == "boolean":
		return "true or false"
	case n.Type == "integer":
		return "number"
	case n.Type == "object" && len(n.Properties) == 0:
		return "mapping of texts"
	case n.Type == "object":
		return "mapping"
	}
	return n.Type
}

func (n *node) values() []string {
	enum := n.Enum
	if n.Items != nil {
		enum = n.Items.Enum
	}
	for _, alternative := range n.OneOf {
		var inner node
		if json.Unmarshal(alternative.Additional, &inner) == nil && len(inner.Enum) > 0 {
			enum = inner.Enum
		}
	}
	var out []string
	for _, v := range enum {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// Explain returns the fields of that path in both formats: "freshness_tier",
// "heartbeat.interval". When there is none it returns the path that was probably
// meant, or "".
func Explain(path string) (fields []Field, meant string, err error) {
	var all []string
	byLast := map[string]string{}
	for _, f := range Formats() {
		in, err := Fields(f)
		if err != nil {
			return nil, "", err
		}
		for _, field := range in {
			if field.Path == path {
				fields = append(fields, field)
			}
			all = append(all, field.Path)
			byLast[field.Path[strings.LastIndexByte(field.Path, '.')+1:]] = field.Path
		}
	}
	if len(fields) > 0 {
		return fields, "", nil
	}
	return nil, cmp.Or(byLast[path], nearest(path, all)), nil
}
