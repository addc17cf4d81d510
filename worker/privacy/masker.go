package privacy

import (
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

var _ pipeline.Mask = (*Masker)(nil)

// MaskedSchema returns the table's columns as the lake has them: a tokenized or
// redacted column is text, whatever it is at the source. Without such a column it
// is the schema itself.
func MaskedSchema(table *catalog.Table, schema *catalog.Schema) *catalog.Schema {
	cols := maskedColumns(table, schema)
	if len(cols) == 0 {
		return schema
	}
	out := *schema
	out.Columns = slices.Clone(schema.Columns)
	for _, i := range cols {
		out.Columns[i].Type = catalog.Type{Kind: catalog.Text}
	}
	return &out
}

// maskedColumns returns the indexes of the personal columns in the schema's order.
func maskedColumns(table *catalog.Table, schema *catalog.Schema) []int {
	var cols []int
	for i, c := range schema.Columns {
		if _, ok := table.PII[c.Name]; ok {
			cols = append(cols, i)
		}
	}
	return cols
}

// Masker transforms the batches of one table. Not safe for concurrent use.
type Masker struct {
	table *catalog.Table
	text  *Text

	// Of the schema seen last; a table's schema changes rarely.
	schema, masked *catalog.Schema
	columns        []int
	keyMasked      bool

	value, token []byte
}

// New returns a masker for the table. It fails with privacy.key when a column is
// to be tokenized and the key is missing or shorter than 32 bytes, and with
// source.no_column when a personal column is not in the schema: a misspelt name
// must not let a column through in clear.
func New(table *catalog.Table, schema *catalog.Schema, key []byte) (*Masker, error) {
	for name, p := range table.PII {
		i := schema.Index(name)
		switch {
		case i < 0:
			return nil, catalog.Invalidf(catalog.CodeSourceColumn, table.File, "correct the name under pii, or remove it",
				"table %s has no column %q to %s", table.Name, name, p)
		case p == catalog.Tokenize:
			if err := checkKey(key); err != nil {
				return nil, err
			}
		case p != catalog.Redact:
			return nil, catalog.Invalidf(catalog.CodeConfigValue, table.File, "use tokenize or redact",
				"column %q of %s has the unknown protection %q", name, table.Name, p)
		case schema.IsKey(i):
			return nil, catalog.Invalidf(catalog.CodeConfigConflict, table.File, "tokenize it instead: tokens keep rows apart",
				"column %q of %s is part of the key and cannot be redacted", name, table.Name)
		}
	}
	text, err := NewText(key)
	if err != nil && len(table.PII) > 0 {
		return nil, err
	}
	m := &Masker{table: table, text: text}
	m.use(schema)
	return m, nil
}

// Schema returns the columns as Apply leaves them, of the schema seen last.
func (m *Masker) Schema() *catalog.Schema { return m.masked }

// Text returns the same transform for the texts that the source prints.
func (m *Masker) Text() *Text { return m.text }

func (m *Masker) use(schema *catalog.Schema) {
	m.schema, m.masked = schema, MaskedSchema(m.table, schema)
	m.columns = maskedColumns(m.table, schema)
	m.keyMasked = slices.ContainsFunc(m.columns, schema.IsKey)
}

// Apply replaces the batch's rows by masked ones, of the masked schema, and its
// keys by those of the masked rows. Call it once a batch: a second time would make
// tokens of tokens. After an error the batch may be half in clear: drop it.
func (m *Masker) Apply(b *change.Batch) error {
	if b.Rows.Schema() != m.schema {
		m.use(b.Rows.Schema())
	}
	if len(m.columns) == 0 {
		return nil
	}
	plain := b.Rows
	rows := plain.Rebind(m.masked, m.columns)
	for _, col := range m.columns {
		if err := m.column(rows, plain, col); err != nil {
			return err
		}
	}
	for row, texts := range b.Masked {
		for i, col := range m.masked.Key {
			if slices.Contains(m.columns, col) {
				rows.SetBytes(row, col, []byte(texts[i]))
			}
		}
	}
	b.Rows, b.Masked = rows, nil
	if m.keyMasked {
		return rekey(b)
	}
	return nil
}

func (m *Masker) column(to, from *change.Rows, col int) error {
	typ := m.schema.Columns[col].Type
	protection := m.table.PII[m.schema.Columns[col].Name]
	isFixed := typ.Fixed()
	for row := range from.Len() {
		mark := from.Mark(row, col)
		if mark != change.Present && mark != change.Filled {
			continue
		}
		var err error
		switch {
		case typ.Kind == catalog.Text:
			m.token, err = m.text.Append(m.token[:0], protection, from.Bytes(row, col))
		case isFixed:
			m.value = typemap.AppendText(m.value[:0], typ, from.Fixed(row, col), nil)
			m.token, err = m.text.Append(m.token[:0], protection, m.value)
		default:
			m.value = typemap.AppendText(m.value[:0], typ, 0, from.Bytes(row, col))
			m.token, err = m.text.Append(m.token[:0], protection, m.value)
		}
		if err != nil {
			return err
		}
		to.SetBytes(row, col, m.token)
		to.SetMark(row, col, mark)
	}
	clear(m.value[:cap(m.value)])
	return nil
}

// rekey encodes the keys anew: a change's from its images, of which an after image
// may lack a large key that did not change, and a move's other key from Other.
func rekey(b *change.Batch) error {
	arena := make([]byte, 0, 32*len(b.Changes))
	encode := func(rows ...int) (key []byte, err error) {
		for _, row := range rows {
			if row < 0 {
				continue
			}
			start := len(arena)
			if arena, err = b.Rows.AppendKey(arena, row); err == nil {
				return arena[start:len(arena):len(arena)], nil
			}
		}
		if err == nil {
			err = change.ErrKeyAbsent
		}
		return nil, catalog.Errorf(catalog.Internal, catalog.CodeInternal, "", "mask the key of a change of %s: %w", b.Table.Name, err)
	}
	var err error
	for i := range b.Changes {
		c := &b.Changes[i]
		if len(c.Key) > 0 {
			if c.Key, err = encode(c.After, c.Before); err != nil {
				return err
			}
		}
		if len(c.OtherKey) > 0 {
			if c.OtherKey, err = encode(c.Other); err != nil {
				return err
			}
		}
	}
	return nil
}
