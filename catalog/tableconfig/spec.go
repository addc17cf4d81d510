package tableconfig

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// spec is what the parser knows of one mapping: the fields of its struct.
type spec struct {
	fields []field
}

// field is one key, read from its struct field's type and tags.
type field struct {
	key         string
	index       int
	kind        fieldKind
	required    bool
	enum        []string
	later       []string // values that are not available yet
	form        string   // see forms
	min, max    int      // bounds of a number; equal when there are none
	unavailable string   // what to do instead; "" when the key is available
	emptyIsFine bool     // an unavailable list that may stand there empty
	inner       *spec    // of a mapping
}

type fieldKind int

const (
	textField fieldKind = iota + 1
	boolField
	numberField
	textListField
	numberListField
	piiField
	propertiesField
	mappingField
	unavailableField
)

// specOf reads a struct's fields. It panics on a field the format has no kind
// for, which the first test would show.
func specOf(t reflect.Type) *spec {
	s := &spec{}
	for i := range t.NumField() {
		sf := t.Field(i)
		f := field{
			key:         sf.Tag.Get("yaml"),
			index:       i,
			required:    sf.Tag.Get("required") == "true",
			enum:        splitTag(sf.Tag.Get("enum")),
			later:       splitTag(sf.Tag.Get("later")),
			form:        sf.Tag.Get("form"),
			unavailable: sf.Tag.Get("unavailable"),
			emptyIsFine: sf.Tag.Get("empty") == "true",
		}
		f.min, _ = strconv.Atoi(sf.Tag.Get("min"))
		f.max, _ = strconv.Atoi(sf.Tag.Get("max"))
		switch {
		case sf.Type == reflect.TypeFor[unavailable]():
			f.kind = unavailableField
		case sf.Type == reflect.TypeFor[PII]():
			f.kind = piiField
		case sf.Type == reflect.TypeFor[Properties]():
			f.kind = propertiesField
		case sf.Type.Kind() == reflect.String:
			f.kind = textField
		case sf.Type.Kind() == reflect.Bool:
			f.kind = boolField
		case sf.Type.Kind() == reflect.Int:
			f.kind = numberField
		case sf.Type == reflect.TypeFor[[]string]():
			f.kind = textListField
		case sf.Type == reflect.TypeFor[[]int]():
			f.kind = numberListField
		case sf.Type.Kind() == reflect.Struct:
			f.kind, f.inner = mappingField, specOf(sf.Type)
		default:
			panic("tableconfig: field " + sf.Name + " has no kind in the file")
		}
		s.fields = append(s.fields, f)
	}
	return s
}

func splitTag(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "|")
}

func (s *spec) field(key string) *field {
	i := slices.IndexFunc(s.fields, func(f field) bool { return f.key == key })
	if i < 0 {
		return nil
	}
	return &s.fields[i]
}

// keys are the names of the available fields, in order.
func (s *spec) keys() []string {
	var out []string
	for _, f := range s.fields {
		if f.kind != unavailableField {
			out = append(out, f.key)
		}
	}
	return out
}

// allKeys are the names of all fields, in order.
func (s *spec) allKeys() []string {
	out := make([]string, len(s.fields))
	for i, f := range s.fields {
		out[i] = f.key
	}
	return out
}

// deepKeys are the paths of all fields of nested mappings, by their last part.
func (s *spec) deepKeys() map[string]string {
	out := map[string]string{}
	for _, f := range s.fields {
		if f.inner != nil {
			for _, k := range f.inner.allKeys() {
				out[k] = f.key + "." + k
			}
			maps.Copy(out, f.inner.deepKeys())
		}
	}
	return out
}
