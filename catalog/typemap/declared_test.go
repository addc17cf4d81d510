package typemap

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeclaredReadsTypesAsSQLSpellsThem(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"int":                            "integer: int",
		"INTEGER":                        "integer: int",
		"bigserial":                      "bigint: long",
		"numeric(12,2)":                  "numeric(12,2): decimal(12, 2)",
		"decimal( 12 , 2 )":              "numeric(12,2): decimal(12, 2)",
		"numeric(5,-2)":                  "numeric(5,-2): decimal(7, 0)",
		"numeric":                        "numeric: string",
		"varchar(20)":                    "character varying(20): string",
		"character varying(20)":          "character varying(20): string",
		"char":                           "character: string",
		"timestamptz(3)":                 "timestamp(3) with time zone: timestamptz",
		"timestamp (3) with time zone":   "timestamp(3) with time zone: timestamptz",
		"time":                           "time without time zone: time",
		"double precision":               "double precision: double",
		"numeric(12,2)[]":                "numeric(12,2)[]: list<decimal(12, 2)>",
		"integer[][]":                    "integer[]: string",
		"shop.status":                    "shop.status: string",
		"interval(3)":                    "interval(3): string",
		"bit varying(8)":                 "bit varying(8): string",
		"a type of tomorrow":             "a type of tomorrow: string",
		"timestamp without time zone":    "timestamp without time zone: timestamp",
		"character varying (5) [ ]":      "error",
		"numeric(12,2,3)":                "error",
		"text(5)":                        "error",
		"numeric(0)":                     "error",
		"":                               "error",
		"numeric(99999999999999999999)":  "error",
		"varchar(20) not null default 5": "error",
	} {
		got := "error"
		if typ, err := Declared(sql, true); err == nil {
			got = typ.Name + ": " + Postgres(typ).String()
		}
		require.Equal(t, want, got, sql)
	}
}
