package tableconfig

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/lakeweir/lakeweir/catalog"
)

// decode fills the struct that into points at from the document and reports every
// problem of form: what the JSON Schema would refuse too. other is the format the
// key may belong to instead, otherFile its name.
func (d *document) decode(into any, other *spec, otherFile string) {
	v := reflect.ValueOf(into).Elem()
	dec := decoder{document: d, other: other, otherFile: otherFile}
	before := len(d.problems)
	switch d.body {
	case nil:
		dec.missing(specOf(v.Type()), "")
	default:
		dec.mapping(d.body, "", specOf(v.Type()), v)
	}
	for _, p := range d.problems[before:] {
		p.structural = p.Code != catalog.CodeConfigSyntax && p.Code != catalog.CodeConfigDuplicateField
	}
}

type decoder struct {
	*document
	other     *spec
	otherFile string
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// entry is one key of a mapping.
type entry struct {
	name  string
	at    place
	key   ast.Node
	value ast.Node
}

// entries returns the entries of a mapping, after reporting keys that are not
// text or stand twice. It returns false when n is no mapping.
func (d *decoder) entries(n ast.Node, path string) (out []entry, ok bool) {
	var values []*ast.MappingValueNode
	switch x := n.(type) {
	case *ast.MappingNode:
		values = x.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{x}
	default:
		return nil, false
	}
	first := map[string]place{}
	for _, v := range values {
		at := d.nodePlace(v.Key)
		var name string
		switch k := v.Key.(type) {
		case *ast.StringNode:
			name = k.Value
		case *ast.MergeKeyNode:
			d.report(catalog.CodeConfigSyntax, at, "merge keys (<<) are not read", "write the keys out")
			continue
		case *ast.NullNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
			d.report(catalog.CodeConfigType, at, "a key that is not text: "+v.Key.GetToken().Value, fmt.Sprintf("quote it: %q", v.Key.GetToken().Value))
			continue
		default:
			d.report(catalog.CodeConfigSyntax, at, "a key that is not text", "write a plain word")
			continue
		}
		if earlier, twice := first[name]; twice {
			d.report(catalog.CodeConfigDuplicateField, at, fmt.Sprintf("%q is already set in line %d", join(path, name), earlier.line), "keep one of the two")
			continue
		}
		first[name] = at
		d.keys[join(path, name)] = at
		d.values[join(path, name)] = d.nodePlace(v.Value)
		out = append(out, entry{name, at, v.Key, v.Value})
	}
	return out, true
}

func (d *decoder) mapping(n ast.Node, path string, s *spec, into reflect.Value) {
	entries, ok := d.entries(n, path)
	if !ok {
		if path == "" {
			d.refused[""] = true
			d.report(catalog.CodeConfigType, d.nodePlace(n), "the file is "+describe(n)+", not keys with values", "write \"key: value\" lines, such as "+s.fields[0].key+": …")
			return
		}
		d.wrongType(n, path, "a mapping", "write its keys below it: "+strings.Join(s.keys(), ", "))
		return
	}
	for _, e := range entries {
		f := s.field(e.name)
		if f == nil {
			d.unknown(e, path, s)
			continue
		}
		d.field(e, join(path, e.name), f, into.Field(f.index))
	}
	d.missing(s, path)
}

// missing reports required keys that are not there.
func (d *decoder) missing(s *spec, path string) {
	for _, f := range s.fields {
		if f.required && !d.has(join(path, f.key)) {
			hint := fmt.Sprintf("add it; see %q", "lakeweir config explain "+join(path, f.key))
			d.report(catalog.CodeConfigMissing, place{1, 1, 0}, fmt.Sprintf("%q is missing", join(path, f.key)), hint)
		}
	}
}

// unknown reports a key that the mapping does not have.
func (d *decoder) unknown(e entry, path string, s *spec) {
	var hint string
	near := nearest(e.name, s.allKeys())
	switch {
	case near != "":
		hint = fmt.Sprintf("did you mean %q?", join(path, near))
	case path == "" && s.deepKeys()[e.name] != "":
		hint = fmt.Sprintf("did you mean %q?", s.deepKeys()[e.name])
	case path == "" && d.other.field(e.name) != nil:
		hint = fmt.Sprintf("%q is a key of %s", e.name, d.otherFile)
	default:
		hint = "use one of " + strings.Join(s.keys(), ", ")
		if path != "" {
			hint = fmt.Sprintf("%s has the keys %s", path, strings.Join(s.keys(), ", "))
		}
	}
	d.report(catalog.CodeConfigUnknownField, e.at, fmt.Sprintf("unknown field %q", join(path, e.name)), hint)
}

// field decodes one known key.
func (d *decoder) field(e entry, path string, f *field, into reflect.Value) {
	before := len(d.problems)
	defer func() {
		if len(d.problems) > before {
			d.refused[path] = true
		}
	}()
	switch n := e.value.(type) {
	case *ast.AliasNode, *ast.AnchorNode:
		d.report(catalog.CodeConfigSyntax, d.nodePlace(n), "anchors and aliases are not read", "write the value out")
		return
	case *ast.TagNode:
		d.report(catalog.CodeConfigSyntax, d.nodePlace(n), "tags such as "+n.GetToken().Value+" are not read", "remove it; quote a text that looks like a number")
		return
	}
	if f.kind == unavailableField {
		if seq, ok := e.value.(*ast.SequenceNode); ok && f.emptyIsFine && len(seq.Values) == 0 {
			return
		}
		d.report(catalog.CodeConfigNotAvailable, e.at, fmt.Sprintf("%q is not available yet", path), f.unavailable)
		return
	}
	if e.value.Type() == ast.NullType {
		d.report(catalog.CodeConfigType, d.nodePlace(e.value), fmt.Sprintf("%q has no value", path), "write a value, or remove the key for its default")
		return
	}
	switch f.kind {
	case textField:
		if s, ok := d.text(e.value, path, f); ok {
			into.SetString(s)
		}
	case boolField:
		b, ok := e.value.(*ast.BoolNode)
		if !ok {
			d.wrongType(e.value, path, "true or false", boolHint(e.value))
			return
		}
		into.SetBool(b.Value)
	case numberField:
		if n, ok := d.number(e.value, path, f); ok {
			into.SetInt(int64(n))
		}
	case textListField, numberListField:
		d.list(e.value, path, f, into)
	case piiField:
		d.pii(e.value, path, f, into)
	case propertiesField:
		d.properties(e.value, path, into)
	case mappingField:
		d.mapping(e.value, path, f.inner, into)
	case unavailableField:
	}
}
