package policies

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// allowed are the built-in functions that a policy may call, by name or by prefix. All
// of them depend on their arguments alone. What is not listed does not exist for a
// policy, so that a new function of a later Rego is refused until somebody adds it:
// the network (http.send, net.*, json.match_schema with remote references), the clock
// (time.now_ns), the environment (opa.runtime), randomness (rand.*, uuid.*), secrets
// (crypto.*, io.jwt.*, providers.*), and what makes much out of little (numbers.range).
var allowed = []string{
	"eq", "assign", "gt", "gte", "lt", "lte", "neq", "equal",
	"plus", "minus", "mul", "div", "ceil", "floor", "round", "abs", "rem", "bits.",
	"and", "or", "count", "sum", "product", "max", "min", "sort",
	"array.", "object.", "intersection", "union",
	"to_number", "regex.is_valid", "regex.match", "regex.split", "regex.find_n", "regex.find_all_string_submatch_n", "regex.replace", "regex.template_match",
	"strings.any_prefix_match", "strings.any_suffix_match", "strings.count", "strings.replace_n", "strings.reverse", "strings.split_n", "concat", "format_int", "indexof", "indexof_n", "substring", "lower", "upper", "contains", "startswith", "endswith",
	"split", "replace", "trim", "trim_left", "trim_prefix", "trim_right", "trim_suffix", "trim_space", "sprintf",
	"json.marshal", "json.unmarshal", "json.is_valid", "json.filter", "json.remove", "json.patch", "base64.", "hex.",
	"time.parse_duration_ns", "units.", "semver.", "glob.match", "glob.quote_meta", "walk", "graph.reachable",
	"is_number", "is_string", "is_boolean", "is_array", "is_set", "is_object", "is_null", "type_name",
	"print", "internal.",
}

// capabilities are what the compiler lets a policy use.
func capabilities() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(slices.Clone(c.Builtins), func(b *ast.Builtin) bool {
		return b.IsNondeterministic() || !slices.ContainsFunc(allowed, func(a string) bool {
			return a == b.Name || strings.HasSuffix(a, ".") && strings.HasPrefix(b.Name, a)
		})
	})
	c.AllowNet = []string{}
	return c
}
