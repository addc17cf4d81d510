package typemap

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// declared is a type as people write it, with what its modifiers mean.
var declared = regexp.MustCompile(`^([a-z][a-z0-9_ ."]*?)\s*(?:\(\s*(-?\d+)\s*(?:,\s*(-?\d+)\s*)?\))?((?: with| without) time zone)?((?:\s*\[\d*\])*)$`)

// spellings are the names of types that the catalog has under another.
var spellings = map[string]string{
	"boolean": "bool", "smallint": "int2", "integer": "int4", "int": "int4", "bigint": "int8",
	"smallserial": "int2", "serial": "int4", "bigserial": "int8",
	"real": "float4", "double precision": "float8", "float": "float8", "decimal": "numeric",
	"character varying": "varchar", "character": "bpchar", "char": "bpchar", `"char"`: "char",
	"bit varying": "varbit", "timestamp with time zone": "timestamptz", "time with time zone": "timetz",
	"timestamp without time zone": "timestamp", "time without time zone": "time",
}

// printed are the names that the server prints for the catalog's.
var printed = map[string]string{
	"bool": "boolean", "int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real", "float8": "double precision",
	"varchar": "character varying", "bpchar": "character", "varbit": "bit varying",
	"timestamp": "timestamp without time zone", "timestamptz": "timestamp with time zone",
	"time": "time without time zone", "timetz": "time with time zone", "char": `"char"`,
}

// Declared reads a Postgres type as SQL spells it: "numeric(12,2)", "varchar(20)[]",
// "timestamptz". A name that it does not know, such as shop.status, is taken for an
// enum's when enum is set, else for itself. For proposals and tests; what a source
// really has is asked of its catalog.
func Declared(sql string, enum bool) (catalog.SourceType, error) {
	m := declared.FindStringSubmatch(strings.ToLower(strings.Join(strings.Fields(sql), " ")))
	if m == nil {
		return catalog.SourceType{}, fmt.Errorf("%q is no type such as integer, numeric(12,2) or text[]", sql)
	}
	name := m[1] + m[4]
	base := name
	if b, ok := spellings[name]; ok {
		base = b
	}
	modifier, err := modifierOf(base, m[2], m[3])
	if err != nil {
		return catalog.SourceType{}, fmt.Errorf("%q: %w", sql, err)
	}
	t := catalog.SourceType{Name: printedName(base, name, m[2], m[3]), Base: base, Modifier: modifier}
	if enum && !known(base) {
		t.Base = "enum"
	}
	if dims := strings.Count(m[5], "["); dims > 0 {
		elem := t
		elem.Modifier = -1
		t = catalog.SourceType{Name: t.Name + "[]", Base: "array", Modifier: modifier, Elem: &elem, Dims: dims}
	}
	return t, nil
}

func modifierOf(base, first, second string) (int32, error) {
	if first == "" {
		if base == "bpchar" {
			return 1 + 4, nil
		}
		if base == "bit" {
			return 1, nil
		}
		return -1, nil
	}
	n, err := strconv.ParseInt(first, 10, 32)
	if err != nil {
		return 0, err
	}
	switch base {
	case "numeric":
		var scale int64
		if second != "" {
			if scale, err = strconv.ParseInt(second, 10, 32); err != nil {
				return 0, err
			}
		}
		if n < 1 || n > 1000 || scale < -1000 || scale > 1000 {
			return 0, errors.New("precision is 1 to 1000, scale -1000 to 1000")
		}
		return int32(n)<<16 | int32(scale)&0x7ff + 4, nil
	case "varchar", "bpchar":
		return int32(n) + 4, nil
	case "bit", "varbit", "timestamp", "timestamptz", "time", "timetz":
		return int32(n), nil
	case "interval":
		return 0x7fff<<16 | int32(n), nil
	}
	return 0, fmt.Errorf("%s takes no modifier", base)
}

func printedName(base, name, first, second string) string {
	if p, ok := printed[base]; ok {
		name = p
	} else if _, ok := spellings[name]; ok {
		name = base
	}
	if first == "" {
		return name
	}
	modifier := "(" + first + ")"
	if second != "" {
		modifier = "(" + first + "," + second + ")"
	}
	head, zone, _ := strings.Cut(name, " with")
	if zone != "" && strings.HasSuffix(name, "time zone") {
		return head + modifier + " with" + zone
	}
	return name + modifier
}

func known(base string) bool {
	_, ok := postgresKinds[base]
	return ok || slices.Contains(textBases, base)
}

// textBases are built-in types that the lake has as text.
var textBases = strings.Fields(`numeric text varchar bpchar char name citext json jsonb xml timetz interval bit varbit inet cidr
 macaddr macaddr8 money oid hstore tsvector tsquery jsonpath point line lseg box path polygon circle`)
