package tableconfig

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/lakeweir/lakeweir/catalog"
)

// text decodes one text, which is of the field's form or one of its values.
func (d *decoder) text(n ast.Node, path string, f *field) (string, bool) {
	var s string
	switch x := n.(type) {
	case *ast.StringNode:
		s = x.Value
	case *ast.LiteralNode:
		s = x.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		hint := forms[f.form].hint
		if f.form == "" && len(f.enum) > 0 {
			hint = oneOf(f.enum)
		} else if f.form == "text" || f.form == "column" || f.form == "identifier" || f.form == "slot" {
			hint = fmt.Sprintf("quote it: %q", n.GetToken().Value)
		}
		d.wrongType(n, path, wanted(f), hint)
		return "", false
	default:
		hint := forms[f.form].hint
		if seq, ok := n.(*ast.SequenceNode); ok && len(seq.Values) == 1 {
			hint = "write the value without brackets"
		}
		d.wrongType(n, path, wanted(f), hint)
		return "", false
	}
	if len(f.enum) > 0 {
		return s, d.enum(n, path, s, f)
	}
	form := forms[f.form]
	if form.pattern != nil && !form.pattern.MatchString(s) {
		message := fmt.Sprintf("%q is %q; want %s", path, s, form.want)
		if form.secret || s == "" {
			message = fmt.Sprintf("%q is not %s", path, form.want)
		}
		d.report(catalog.CodeConfigValue, d.nodePlace(n), message, form.hint)
		if f.form == "reference" && s != "" && !strings.Contains(s, "${") { // what stands there is the secret itself
			d.problems[len(d.problems)-1].Code = catalog.CodeConfigSecret
			d.problems[len(d.problems)-1].Message = fmt.Sprintf("%q holds the secret itself", path)
			d.problems[len(d.problems)-1].Hint = "write ${env:NAME} or ${file:PATH} instead, and replace the secret, since the file has shown it"
		}
		return "", false
	}
	return s, true
}

// wanted names the kind of text a field takes.
func wanted(f *field) string {
	if form, ok := forms[f.form]; ok && f.form != "text" {
		return form.want
	}
	return "text"
}

// enum reports a value that is not one of those allowed.
func (d *decoder) enum(n ast.Node, path, s string, f *field) bool {
	switch {
	case slices.Contains(f.enum, s):
		return true
	case slices.Contains(f.later, s):
		d.report(catalog.CodeConfigNotAvailable, d.nodePlace(n), fmt.Sprintf("%q: %s is not available yet", path, s), oneOf(f.enum))
	default:
		d.report(catalog.CodeConfigValue, d.nodePlace(n), fmt.Sprintf("%q cannot be %q", path, s), oneOf(f.enum))
	}
	return false
}

func oneOf(words []string) string {
	if len(words) == 1 {
		return "write " + words[0]
	}
	return "use one of " + strings.Join(words, ", ")
}

func (d *decoder) number(n ast.Node, path string, f *field) (int, bool) {
	i, ok := n.(*ast.IntegerNode)
	if !ok {
		hint := "write a whole number"
		if len(f.enum) > 0 {
			hint = oneOf(f.enum)
		}
		d.wrongType(n, path, "a whole number", hint)
		return 0, false
	}
	value := int64(-1)
	switch x := i.Value.(type) {
	case int64:
		value = x
	case uint64:
		if x < 1<<62 {
			value = int64(x)
		}
	}
	if len(f.enum) > 0 {
		return int(value), d.enum(n, path, strconv.FormatInt(value, 10), f)
	}
	if f.min != f.max && (value < int64(f.min) || value > int64(f.max)) {
		d.report(catalog.CodeConfigValue, d.nodePlace(n), fmt.Sprintf("%q is %s", path, i.GetToken().Value), fmt.Sprintf("use a number from %d to %d", f.min, f.max))
		return 0, false
	}
	return int(value), true
}

// list decodes a list of texts or numbers; a value in it twice is reported.
func (d *decoder) list(n ast.Node, path string, f *field, into reflect.Value) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		hint := "write it in brackets"
		if isScalar(n) {
			hint = "write [" + n.GetToken().Value + "]"
		}
		d.wrongType(n, path, "a list", hint)
		return
	}
	list := reflect.MakeSlice(into.Type(), 0, len(seq.Values))
	seen := map[string]bool{}
	for i, item := range seq.Values {
		itemPath := path + "[" + strconv.Itoa(i) + "]"
		d.values[itemPath] = d.nodePlace(item)
		var value any
		var good bool
		switch {
		case item.Type() == ast.NullType:
			d.report(catalog.CodeConfigType, d.nodePlace(item), fmt.Sprintf("%q has an empty entry", path), "remove it")
		case f.kind == textListField:
			value, good = d.text(item, itemPath, f)
		default:
			value, good = d.number(item, itemPath, f)
		}
		if !good {
			continue
		}
		text := fmt.Sprint(value)
		if seen[text] {
			d.report(catalog.CodeConfigValue, d.nodePlace(item), fmt.Sprintf("%q names %s twice", path, text), "keep one of the two")
			continue
		}
		seen[text] = true
		list = reflect.Append(list, reflect.ValueOf(value))
	}
	into.Set(list)
}

// pii decodes column: protection pairs, or a bare list of columns.
func (d *decoder) pii(n ast.Node, path string, f *field, into reflect.Value) {
	out := PII{}
	into.Set(reflect.ValueOf(out))
	column := &field{kind: textField, form: "column"}
	if seq, ok := n.(*ast.SequenceNode); ok {
		for i, item := range seq.Values {
			itemPath := path + "[" + strconv.Itoa(i) + "]"
			if m, isMapping := d.entriesOfItem(item); isMapping { // - email: tokenize
				d.wrongType(item, itemPath, "the name of a column", "write the mapping without dashes: pii: {"+m+"}")
				continue
			}
			name, good := d.text(item, itemPath, column)
			if !good {
				continue
			}
			if _, twice := out[name]; twice {
				d.report(catalog.CodeConfigValue, d.nodePlace(item), fmt.Sprintf("%q names %s twice", path, name), "keep one of the two")
				continue
			}
			out[name] = string(catalog.Tokenize)
			d.keys[join(path, name)], d.values[join(path, name)] = d.nodePlace(item), d.nodePlace(item)
		}
		return
	}
	entries, ok := d.entries(n, path)
	if !ok {
		d.wrongType(n, path, "a mapping or a list of columns", "write {column: tokenize} or [column]")
		return
	}
	for _, e := range entries {
		if e.name == "" {
			d.report(catalog.CodeConfigValue, e.at, fmt.Sprintf("%q has an empty name", path), "name a column of the table")
			continue
		}
		if e.value.Type() == ast.NullType {
			d.report(catalog.CodeConfigType, d.nodePlace(e.value), fmt.Sprintf("%q has no value", join(path, e.name)), "write tokenize or redact")
			continue
		}
		if how, good := d.text(e.value, join(path, e.name), &field{kind: textField, enum: f.enum, later: f.later}); good {
			out[e.name] = how
		}
	}
}

// properties decodes a mapping of texts, numbers and truth values, each as it is
// written.
func (d *decoder) properties(n ast.Node, path string, into reflect.Value) {
	entries, ok := d.entries(n, path)
	if !ok {
		d.wrongType(n, path, "a mapping", "write name: value below it, one in a line")
		return
	}
	out := Properties{}
	for _, e := range entries {
		at := join(path, e.name)
		switch x := e.value.(type) {
		case *ast.StringNode:
			out[e.name] = x.Value
		case *ast.LiteralNode:
			out[e.name] = x.Value.Value
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			out[e.name] = x.GetToken().Value
		case *ast.NullNode:
			d.report(catalog.CodeConfigType, d.nodePlace(x), fmt.Sprintf("%q has no value", at), "write a value, or remove it")
		default:
			d.wrongType(x, at, "text, a number, or true or false", "write the property's value as one text")
		}
	}
	into.Set(reflect.ValueOf(out))
}

func (d *decoder) entriesOfItem(n ast.Node) (shown string, ok bool) {
	switch x := n.(type) {
	case *ast.MappingNode:
		if len(x.Values) > 0 {
			return x.Values[0].Key.GetToken().Value + ": …", true
		}
		return "column: …", true
	case *ast.MappingValueNode:
		return x.Key.GetToken().Value + ": …", true
	}
	return "", false
}

func (d *decoder) wrongType(n ast.Node, path, want, hint string) {
	d.report(catalog.CodeConfigType, d.nodePlace(n), fmt.Sprintf("%q is %s; want %s", path, describe(n), want), hint)
}

func boolHint(n ast.Node) string {
	switch strings.ToLower(strings.Trim(n.GetToken().Value, `"'`)) {
	case "yes", "y", "on", "1", "true":
		return "write true, without quotes"
	case "no", "n", "off", "0", "false":
		return "write false, without quotes"
	}
	return "write true or false"
}

func isScalar(n ast.Node) bool {
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return true
	}
	return false
}

// describe names a node's type; never its value, which may be a secret.
func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.NullNode:
		return "empty"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	}
	return "something else"
}
