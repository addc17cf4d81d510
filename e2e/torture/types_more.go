package torture

func documents() []Type {
	return []Type{
		{SQL: "json", Lake: "string", Values: values(`{"b":1,  "a":[1.50,null,"x"]}`, "null", `"\u00e9\ud83d\ude00"`, "1e400", `{"a":1,"a":2}`, "  [1 ,\n2]  ")},
		{SQL: "jsonb", Lake: "string", Values: values(`{"b":1,"a":[1.50,null,"x"],"é":"\u00e9"}`, "null", "1E400", "-0.0", `{"a":1,"a":2}`, "[]", `"\"\\\t"`)},
		{SQL: "jsonpath", Lake: "string", Values: values(`$.a[*] ? (@ > 1)`, "strict $", `$."x y".b`, `$.datetime()`)},
		{SQL: "xml", Lake: "string", Values: values("<a/>", `<a b="1">é &amp; <![CDATA[<]]></a>`, "just text", `<?xml version="1.0"?><a/>`)},
		{SQL: "tsvector", Lake: "string", Values: values("", "'a':1A,2 'fat':3C", "''''  'x y'", "'\\\\'")},
		{SQL: "tsquery", Lake: "string", Values: values("", "fat & (rat | !cat:AB) <-> x", "'x y':*", "a <3> b")},
		{SQL: "inet", Lake: "string", Values: values("10.0.0.1", "10.1.2.3/24", "0.0.0.0/0", "255.255.255.255", "::1/64", "::ffff:1.2.3.4", "fe80::1")},
		{SQL: "cidr", Lake: "string", Values: values("10.0.0.0/8", "0.0.0.0/0", "::/0", "2001:db8::/32")},
		{SQL: "macaddr", Lake: "string", Values: values("08:00:2b:01:02:03", "ff-ff-ff-ff-ff-ff")},
		{SQL: "macaddr8", Lake: "string", Values: values("08:00:2b:01:02:03:04:05", "00:00:00:00:00:00:00:00")},
		{SQL: "point", Lake: "string", Values: values("(0,0)", "(1e308,-1e-308)", "(NaN,Infinity)", "(0.1,-0)")},
		{SQL: "line", Lake: "string", Values: values("{1,-1,0}", "{0.1,2,-0.3}", "[(0,0),(1,2)]")},
		{SQL: "lseg", Lake: "string", Values: values("[(0,0),(1,1)]", "[(0.1,-1),(1e20,2)]")},
		{SQL: "box", Lake: "string", ArrayText: true, Values: values("(1,1),(0,0)", "(0.1,2),(-3,-4)")},
		{SQL: "path", Lake: "string", Values: values("[(0,0),(1,1),(2,0)]", "((0,0),(1,1))", "[(0.1,1e-7)]")},
		{SQL: "polygon", Lake: "string", Values: values("((0,0),(1,1),(2,0))", "((0,0))")},
		{SQL: "circle", Lake: "string", Values: values("<(0,0),1>", "<(0.1,-2),0>", "<(1,1),Infinity>")},
		{SQL: "int4range", Lake: "string", Values: values("empty", "[1,10)", "(,5]", "[-2147483648,)", "(,)")},
		{SQL: "int8range", Lake: "string", Values: values("empty", "[1,9223372036854775807)")},
		{SQL: "numrange", Lake: "string", Values: values("empty", "[1.50,2.5]", "(,NaN]", "[-Infinity,Infinity]")},
		{SQL: "daterange", Lake: "string", Values: values("empty", "[0044-03-15 BC,2026-01-01]", "[-infinity,infinity]")},
		{SQL: "tsrange", Lake: "string", Values: values("empty", `["2026-01-01 00:00:00","infinity")`, "(,2026-01-01]")},
		{SQL: "tstzrange", Lake: "string", Values: values("empty", `["2026-01-01 00:00:00+02","2026-06-01 00:00:00-07"]`)},
		{SQL: "int4multirange", Lake: "string", Values: values("{}", "{[1,3),[5,9)}", "{(,)}")},
		{SQL: "int8multirange", Lake: "string", Values: values("{}", "{[1,3]}")},
		{SQL: "nummultirange", Lake: "string", Values: values("{}", "{[1.5,2.50),(7,)}")},
		{SQL: "datemultirange", Lake: "string", Values: values("{}", "{[2026-01-01,2026-02-01)}")},
		{SQL: "tsmultirange", Lake: "string", Values: values("{}", `{["2026-01-01 00:00:00","2026-01-02 00:00:00")}`)},
		{SQL: "tstzmultirange", Lake: "string", Values: values("{}", `{["2026-01-01 00:00:00+02",)}`)},
	}
}

// internals are the types of Postgres's own catalogs that a table may use.
func internals() []Type {
	return []Type{
		{SQL: "oid", Lake: "string", Values: values("0", "4294967295")},
		{SQL: "xid", Lake: "string", Values: values("3", "4294967295")},
		{SQL: "cid", Lake: "string", Values: values("0", "7")},
		{SQL: "xid8", Lake: "string", Values: values("0", "18446744073709551615")},
		{SQL: "tid", Lake: "string", Values: values("(0,1)", "(4294967295,65535)")},
		{SQL: "pg_lsn", Lake: "string", Values: values("0/0", "FFFFFFFF/FFFFFFFF", "16/B374D848")},
		{SQL: "txid_snapshot", Lake: "string", Values: values("10:20:10,14,15", "1:1:")},
		{SQL: "pg_snapshot", Lake: "string", Values: values("10:20:10,14,15", "1:1:")},
		{SQL: "int2vector", Lake: "string", Values: values("", "1 2 -3")},
		{SQL: "oidvector", Lake: "string", Values: values("", "1 2 4294967295")},
		{SQL: "refcursor", Lake: "string", Values: values("", "my cursor")},
		{SQL: "aclitem", Lake: "string", Values: values("postgres=r/postgres", "=rw*/postgres")},
		{SQL: "regclass", Lake: "string", Values: values("-", "pg_class", "information_schema.tables", "4294967295")},
		{SQL: "regtype", Lake: "string", Values: values("-", "integer", "text[]", "timestamp with time zone")},
		{SQL: "regproc", Lake: "string", Values: values("-", "now")},
		{SQL: "regprocedure", Lake: "string", Values: values("-", "sum(integer)")},
		{SQL: "regoper", Lake: "string", Values: values("0", "||/")},
		{SQL: "regoperator", Lake: "string", Values: values("0", "+(integer,integer)")},
		{SQL: "regnamespace", Lake: "string", Values: values("-", "pg_catalog")},
		{SQL: "regrole", Lake: "string", Values: values("-", "postgres")},
		{SQL: "regconfig", Lake: "string", Values: values("-", "english")},
		{SQL: "regdictionary", Lake: "string", Values: values("-", "simple")},
		{SQL: "regcollation", Lake: "string", Values: values("-", `"C"`)},
	}
}

// made are types that somebody made: with CREATE TYPE, CREATE DOMAIN or an
// extension.
func made() []Type {
	return []Type{
		{
			SQL: "mood", Lake: "string", Setup: `CREATE TYPE mood AS ENUM ('sad', 'très "content"', 'a,b{}', 'null')`,
			Values: values("sad", `très "content"`, "a,b{}", "null"),
		},
		{SQL: "empty_enum", Lake: "string", Setup: "CREATE TYPE empty_enum AS ENUM ()"},
		{SQL: "pair", Lake: "string", Setup: "CREATE TYPE pair AS (a int, b text, c numeric(5,2)[])", Values: values("(,,)", `(1,"x y","{1.5,NULL}")`, `(-1,"a""b\\c",{})`)},
		{SQL: "nested", Lake: "string", Setup: "CREATE TYPE nested AS (p pair, q pair[], at timestamptz, r real)", Values: values("(,,,)", `("(1,x,)","{""(2,y,{})"",NULL}","2026-01-01 00:00:00+02",-0)`)},
		{SQL: "floatrange", Lake: "string", Setup: "CREATE TYPE floatrange AS RANGE (subtype = float8)", Values: values("empty", "[0.1,1e23)", "(,NaN]")},
		{SQL: "floatmultirange", Lake: "string", Values: values("{}", "{[-0,0.1),(1,Infinity)}")},
		{SQL: "moodrange", Lake: "string", Setup: "CREATE TYPE moodrange AS RANGE (subtype = mood)", Values: values("empty", `[sad,"a,b{}"]`)},
		{SQL: "cents", Lake: "decimal(12, 2)", Setup: "CREATE DOMAIN cents AS numeric(12,2)", Values: values("0", "-9999999999.99", "NaN")},
		{SQL: "paid", Lake: "decimal(12, 2)", Setup: "CREATE DOMAIN paid AS cents CHECK (value <> 1)", Values: values("0", "9999999999.99", "NaN")},
		{SQL: "grid", Lake: "list<int>", Setup: "CREATE DOMAIN grid AS int[]", Values: values("{}", "{1,NULL}", "{{1,2},{3,4}}", "[0:1]={1,2}", "[1:2]={3,4}")},
		{SQL: "matrix", Lake: "string", Setup: "CREATE DOMAIN matrix AS real[][]", Values: values("{}", "{1,NULL}", "{{0.1,-0},{NaN,4}}", "[0:1]={1,2}")},
		{SQL: "prices", Lake: "list<decimal(12, 2)>", Setup: "CREATE DOMAIN prices AS numeric(12,2)[]", Values: values("{}", "{1.5,NULL}", "{NaN}")},
		{SQL: "colons", Lake: "string", ArrayText: true, Setup: `CREATE TYPE colons;
CREATE FUNCTION colons_in(cstring) RETURNS colons LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION colons_out(colons) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
CREATE TYPE colons (INPUT = colons_in, OUTPUT = colons_out, LIKE = text, DELIMITER = ':')`, Values: values("", "a", "a,b", "a:b", "NULL")},
		{SQL: "hstore", Lake: "string", Extension: "hstore", Values: values("", `"a"=>"1", "b"=>NULL`, `"q\"q"=>"x, y", ""=>""`)},
		{SQL: "citext", Lake: "string", Extension: "citext", Values: values("", "Mixed Case", "ÜÜ")},
		{SQL: "ltree", Lake: "string", Extension: "ltree", Values: values("", "Top.Science.Astronomy")},
		{SQL: "lquery", Lake: "string", Extension: "ltree", Values: values("Top.*{1,2}.a|b", "*")},
		{SQL: "cube", Lake: "string", Extension: "cube", Values: values("(1,2,3)", "(0,0),(1e-7,-1)")},
		{SQL: "seg", Lake: "string", Extension: "seg", Values: values("1.50 .. 2", "<3", "6.25e-7")},
		{SQL: "isbn", Lake: "string", Extension: "isn", Values: values("978-0-393-04002-9")},
		{SQL: "lo", Lake: "string", Extension: "lo", Values: values("0", "4294967295")},
		{SQL: "query_int", Lake: "string", Extension: "intarray", Values: values("1&(2|!3)")},
	}
}
