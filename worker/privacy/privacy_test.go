package privacy_test

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/privacy"
)

var key = []byte("0123456789abcdef0123456789abcdef")

const (
	colID = iota
	colEmail
	colNote
	colBorn
	colPlain
)

func customers() (*catalog.Table, *catalog.Schema) {
	table := &catalog.Table{
		Source: "shop", Name: catalog.TableName{Schema: "public", Name: "customers"}, PrimaryKey: []string{"id"},
		PII: map[string]catalog.Protection{"id": catalog.Tokenize, "email": catalog.Tokenize, "note": catalog.Redact, "born": catalog.Tokenize},
	}
	column := func(name string, k catalog.ValueKind) catalog.Column {
		return catalog.Column{Name: name, Type: catalog.Type{Kind: k}, Nullable: true}
	}
	return table, &catalog.Schema{Version: 1, Key: []int{colID}, Columns: []catalog.Column{
		column("id", catalog.Int64), column("email", catalog.Text), column("note", catalog.Text),
		column("born", catalog.Date), column("plain", catalog.Text),
	}}
}

const secretID = 0x5ec2e7a11ce5

func addRow(r *change.Rows, id int64, email, note string) int {
	row := r.Add()
	r.SetFixed(row, colID, id)
	r.SetBytes(row, colEmail, []byte(email))
	r.SetBytes(row, colNote, []byte(note))
	r.SetFixed(row, colBorn, 8_888_888)
	r.SetBytes(row, colPlain, []byte("in clear"))
	return row
}

// moveBatch is an update that moves the key, with images on both sides, then a
// change with NULL and a value that was not sent.
func moveBatch(t *testing.T, table *catalog.Table, schema *catalog.Schema) *change.Batch {
	t.Helper()
	r := change.NewRows(schema)
	before := addRow(r, secretID, "anna@secret.example", "allergic to secrets")
	after := addRow(r, secretID+1, "anna@secret.example", "no secrets")
	update := addRow(r, secretID+1, "gone", "gone")
	r.SetMark(update, colEmail, change.Null)
	r.SetMark(update, colNote, change.Unavailable)
	encode := func(row int) []byte {
		k, err := r.AppendKey(nil, row)
		require.NoError(t, err)
		return k
	}
	return &change.Batch{Table: table, Rows: r, Changes: []change.Change{
		{Op: change.Delete, Before: before, After: -1, Other: after, Key: encode(before), OtherKey: encode(after)},
		{Op: change.Create, Before: -1, After: after, Other: before, Key: encode(after), OtherKey: encode(before)},
		{Op: change.Update, Before: -1, After: update, Other: -1, Key: encode(update)},
		{Op: change.Truncate, Before: -1, After: -1, Other: -1},
	}}
}

func TestNothingPlainRemainsInAnyByteOfTheBatch(t *testing.T) {
	t.Parallel()
	table, schema := customers()
	b := moveBatch(t, table, schema)
	var id [8]byte
	binary.BigEndian.PutUint64(id[:], secretID)
	secrets := [][]byte{[]byte("secret"), []byte("anna"), []byte("gone"), id[:]}
	before := everything(b)
	for _, s := range secrets {
		require.True(t, before.holds(s), "the test must be able to see %q", s)
	}
	require.Contains(t, before.ints, int64(8_888_888))

	m, err := privacy.New(table, schema, key)
	require.NoError(t, err)
	require.NoError(t, m.Apply(b))

	after := everything(b)
	for _, s := range secrets {
		require.False(t, after.holds(s), "%q remains", s)
	}
	for _, n := range []int64{secretID, secretID + 1, 8_888_888} {
		require.NotContains(t, after.ints, n)
	}
	require.True(t, after.holds([]byte("in clear")))
}

func TestNullAndUnavailableStayWhatTheyAre(t *testing.T) {
	t.Parallel()
	table, schema := customers()
	b := moveBatch(t, table, schema)
	m, err := privacy.New(table, schema, key)
	require.NoError(t, err)
	require.NoError(t, m.Apply(b))
	require.Equal(t, change.Null, b.Rows.Mark(2, colEmail))
	require.Equal(t, change.Unavailable, b.Rows.Mark(2, colNote))
	require.Equal(t, change.Present, b.Rows.Mark(2, colBorn))
	require.Equal(t, privacy.Redacted, string(b.Rows.Bytes(0, colNote)))
	require.Equal(t, "in clear", string(b.Rows.Bytes(2, colPlain)))
}

func TestKeysFollowTheMaskedRowsThroughAMove(t *testing.T) {
	t.Parallel()
	table, schema := customers()
	b := moveBatch(t, table, schema)
	m, err := privacy.New(table, schema, key)
	require.NoError(t, err)
	require.NoError(t, m.Apply(b))
	from, to, later := b.Changes[0], b.Changes[1], b.Changes[2]
	require.Equal(t, from.Key, to.OtherKey)
	require.Equal(t, to.Key, from.OtherKey)
	require.Equal(t, to.Key, later.Key)
	require.NotEqual(t, from.Key, to.Key)
	require.Empty(t, b.Changes[3].Key)
	encoded, err := b.Rows.AppendKey(nil, from.Before)
	require.NoError(t, err)
	require.Equal(t, encoded, from.Key)
	require.True(t, from.MovedAway() && to.MovedIn())
}

func TestKeyOfAnUnsentLargeValueComesFromTheBeforeImage(t *testing.T) {
	t.Parallel()
	table, schema := customers()
	r := change.NewRows(schema)
	before := addRow(r, 1, "a", "b")
	after := addRow(r, 1, "a", "b")
	r.SetMark(after, colID, change.Unavailable)
	b := &change.Batch{Table: table, Rows: r, Changes: []change.Change{{Op: change.Update, Before: before, After: after, Other: -1, Key: []byte("some key")}}}
	m, err := privacy.New(table, schema, key)
	require.NoError(t, err)
	require.NoError(t, m.Apply(b))
	encoded, err := b.Rows.AppendKey(nil, before)
	require.NoError(t, err)
	require.Equal(t, encoded, b.Changes[0].Key)
}

func TestTokensAreTheSameEverywhereAndDifferByKey(t *testing.T) {
	t.Parallel()
	table, schema := customers()
	one, two := moveBatch(t, table, schema), moveBatch(t, table, schema)
	m, err := privacy.New(table, schema, key)
	require.NoError(t, err)
	again, err := privacy.New(table, schema, bytes.Clone(key))
	require.NoError(t, err)
	other, err := privacy.New(table, schema, append([]byte("x"), key...))
	require.NoError(t, err)
	foreign := moveBatch(t, table, schema)
	require.NoError(t, m.Apply(one))
	require.NoError(t, again.Apply(two))
	require.NoError(t, other.Apply(foreign))
	for row := range 2 {
		require.Equal(t, one.Rows.Bytes(row, colEmail), two.Rows.Bytes(row, colEmail))
		require.NotEqual(t, one.Rows.Bytes(row, colEmail), foreign.Rows.Bytes(row, colEmail))
	}
	require.Equal(t, one.Rows.Bytes(0, colEmail), one.Rows.Bytes(1, colEmail), "before and after image agree")
	require.Regexp(t, `^tok_[A-Za-z0-9_-]{22}$`, string(one.Rows.Bytes(0, colEmail)))

	// The source's text, as a reconciliation sees it, gives the same tokens.
	text, err := privacy.NewText(key)
	require.NoError(t, err)
	for col, source := range map[int]string{colID: string(typemap.AppendText(nil, catalog.Type{Kind: catalog.Int64}, secretID, nil)), colEmail: "anna@secret.example", colBorn: string(typemap.AppendText(nil, catalog.Type{Kind: catalog.Date}, 8_888_888, nil))} {
		token, err := text.Append(nil, catalog.Tokenize, []byte(source))
		require.NoError(t, err)
		require.Equal(t, string(one.Rows.Bytes(0, col)), string(token), source)
	}
}

func TestMaskedColumnsAreText(t *testing.T) {
	t.Parallel()
	table, schema := customers()
	masked := privacy.MaskedSchema(table, schema)
	require.Equal(t, catalog.Int64, schema.Columns[colID].Type.Kind, "the source's schema is left alone")
	for col, c := range masked.Columns {
		require.Equal(t, catalog.Text, c.Type.Kind, col)
	}
	require.Equal(t, schema.Key, masked.Key)
	table.PII = nil
	require.Same(t, schema, privacy.MaskedSchema(table, schema))
	m, err := privacy.New(table, schema, nil)
	require.NoError(t, err, "no personal column needs no key")
	b := moveBatch(t, table, schema)
	rows := b.Rows
	require.NoError(t, m.Apply(b))
	require.Same(t, rows, b.Rows)
}

func TestAnotherSchemaVersionIsMaskedToo(t *testing.T) {
	t.Parallel()
	table, schema := customers()
	m, err := privacy.New(table, schema, key)
	require.NoError(t, err)
	next := *schema
	next.Version = 2
	next.Columns = append([]catalog.Column{}, schema.Columns...)
	next.Columns[colEmail], next.Columns[colPlain] = next.Columns[colPlain], next.Columns[colEmail]
	r := change.NewRows(&next)
	addRow(r, 1, "x", "y")
	b := &change.Batch{Table: table, Rows: r}
	require.NoError(t, m.Apply(b))
	require.Regexp(t, "^tok_", string(b.Rows.Bytes(0, colPlain)))
	require.Equal(t, "x", string(b.Rows.Bytes(0, colEmail)))
}

func TestWhatCannotBeMaskedIsRefused(t *testing.T) {
	t.Parallel()
	table, schema := customers()
	code := func(err error) catalog.Code { return catalog.Public(err).Code }
	_, err := privacy.New(table, schema, nil)
	require.Equal(t, catalog.CodePrivacyKey, code(err))
	_, err = privacy.New(table, schema, key[:31])
	require.Equal(t, catalog.CodePrivacyKey, code(err))
	table.PII = map[string]catalog.Protection{"id": catalog.Redact}
	_, err = privacy.New(table, schema, key)
	require.Equal(t, catalog.CodeConfigConflict, code(err))
	table.PII = map[string]catalog.Protection{"emial": catalog.Tokenize}
	_, err = privacy.New(table, schema, key)
	require.Equal(t, catalog.CodeSourceColumn, code(err))
	table.PII = map[string]catalog.Protection{"note": catalog.Redact}
	_, err = privacy.New(table, schema, nil)
	require.NoError(t, err, "redact needs no key")
}

func TestSealedTextOpensWithItsKeyOnly(t *testing.T) {
	t.Parallel()
	s, err := privacy.NewSealer(key)
	require.NoError(t, err)
	sealed := s.Seal([]byte("anna@secret.example"))
	require.NotContains(t, sealed, "anna")
	require.NotEqual(t, sealed, s.Seal([]byte("anna@secret.example")))
	plain, err := s.Open(sealed)
	require.NoError(t, err)
	require.Equal(t, "anna@secret.example", string(plain))

	other, err := privacy.NewSealer(append([]byte("x"), key...))
	require.NoError(t, err)
	_, err = other.Open(sealed)
	require.Equal(t, catalog.CodePrivacyKey, catalog.Public(err).Code)
	for _, bad := range []string{"", "sealed1.", "anna", sealed[:len(sealed)-3], sealed[1:]} {
		_, err = s.Open(bad)
		require.Error(t, err, bad)
	}
	_, err = privacy.NewSealer(nil)
	require.Equal(t, catalog.CodePrivacyKey, catalog.Public(err).Code)
}

// contents is every byte slice, string and integer reachable from a value.
type contents struct {
	bytes [][]byte
	ints  []int64
}

func (c *contents) holds(s []byte) bool {
	for _, b := range c.bytes {
		if bytes.Contains(b, s) {
			return true
		}
	}
	return false
}

func everything(v any) *contents {
	c := &contents{}
	seen := map[uintptr]bool{}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() { //nolint:exhaustive // other kinds hold neither texts nor fixed values
		case reflect.Pointer:
			if !v.IsNil() && !seen[v.Pointer()] {
				seen[v.Pointer()] = true
				walk(v.Elem())
			}
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[catalog.Table]() || v.Type() == reflect.TypeFor[catalog.Schema]() {
				return
			}
			for _, field := range v.Fields() {
				walk(field)
			}
		case reflect.Slice:
			if v.Type().Elem().Kind() == reflect.Uint8 {
				c.bytes = append(c.bytes, v.Bytes()[:v.Cap()])
				return
			}
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.String:
			c.bytes = append(c.bytes, []byte(v.String()))
		case reflect.Int64:
			c.ints = append(c.ints, v.Int())
		default:
		}
	}
	walk(reflect.ValueOf(v))
	return c
}

func BenchmarkApply(b *testing.B) {
	table, schema := customers()
	m, err := privacy.New(table, schema, key)
	require.NoError(b, err)
	r := change.NewRows(schema)
	var changes []change.Change
	for i := range 10_000 {
		row := addRow(r, int64(i), "somebody@example.com", "some note")
		changes = append(changes, change.Change{Op: change.Create, Before: -1, After: row, Other: -1, Key: []byte("12345678")})
	}
	b.ReportAllocs()
	for b.Loop() {
		batch := &change.Batch{Table: table, Rows: r, Changes: changes}
		if err := m.Apply(batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/row")
}
