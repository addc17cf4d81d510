package lake

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/columnar"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// View is one snapshot of a lake table, for reading it as any other engine would:
// through Iceberg's own scan, not through what a layer knows of its files. It
// stays as it is while others commit.
type View struct {
	lake     *Lake
	tbl      *table.Table
	snapshot *table.Snapshot // nil: the table is empty
	// at names the snapshot when it was asked for. The newest is read without that: by
	// the table's columns as they are now, which it may not have known yet.
	at      []table.ScanOption
	schema  *iceberg.Schema
	name    string
	columns []viewColumn
}

// viewColumn is a column by its dotted path: fields of a struct are columns of
// their own.
type viewColumn struct {
	catalog.Column
	top   string // the top-level column
	field string // of a struct, the field in it
}

// View loads a table at a snapshot, at its newest when the id is 0. It fails with
// lake.no_table when there is no such table or snapshot.
func (l *Lake) View(ctx context.Context, ident []string, snapshotID int64) (*View, error) {
	v := &View{lake: l, name: dotted(ident)}
	tbl, err := l.cat.LoadTable(ctx, ident)
	switch {
	case errors.Is(err, icecat.ErrNoSuchTable), errors.Is(err, icecat.ErrNoSuchNamespace):
		return nil, catalog.Errorf(catalog.NotFound, catalog.CodeLakeNoTable, "names are <namespace>.<table>, such as silver.orders or bronze.orders_cdc",
			"the lake has no table %s", v.name)
	case err != nil:
		return nil, l.unavailable(err, "the lake's table "+v.name+" cannot be read")
	}
	v.tbl, v.snapshot, v.schema = tbl, tbl.CurrentSnapshot(), tbl.Schema()
	if snapshotID != 0 {
		v.at = []table.ScanOption{table.WithSnapshotID(snapshotID)}
		if v.snapshot = tbl.Metadata().SnapshotByID(snapshotID); v.snapshot == nil {
			return nil, catalog.Errorf(catalog.NotFound, catalog.CodeLakeNoTable, "its newest snapshot is "+strconv.FormatInt(head(tbl.Metadata()), 10),
				"the lake's table %s has no snapshot %d, or it has expired", v.name, snapshotID)
		}
		if id := v.snapshot.SchemaID; id != nil {
			for _, s := range tbl.Metadata().Schemas() {
				if s.ID == *id {
					v.schema = s
				}
			}
		}
	}
	for _, f := range v.schema.Fields() {
		st, ok := f.Type.(*iceberg.StructType)
		if !ok {
			v.columns = append(v.columns, newViewColumn(f, f.Name, "", !f.Required))
			continue
		}
		for _, inner := range st.FieldList {
			v.columns = append(v.columns, newViewColumn(inner, f.Name, inner.Name, true))
		}
	}
	if snapshotID == 0 {
		v.addLineage()
	}
	return v, nil
}

// addLineage tells which of the source's columns were dropped or had other names.
func (v *View) addLineage() {
	lineage := readLineage(v.tbl.Properties())
	if lineage == nil {
		return
	}
	for i := range v.columns {
		c := &v.columns[i]
		name := c.top
		if c.field != "" {
			name = c.field
		}
		if n := lineage.index(name); n >= 0 {
			c.Dropped, c.Was = lineage.Columns[n].Dropped, lineage.Columns[n].Was
		}
	}
}

func newViewColumn(f iceberg.NestedField, top, field string, nullable bool) viewColumn {
	name := top
	if field != "" {
		name += "." + field
	}
	return viewColumn{Column: catalog.Column{Name: name, Number: f.ID, Type: typeOf(f.Type), Nullable: nullable}, top: top, field: field}
}

// typeOf is the inverse of icebergType; types that Lakeweir does not write are not
// read (Kind 0).
func typeOf(t iceberg.Type) catalog.Type {
	switch t := t.(type) {
	case iceberg.StringType:
		return catalog.Type{Kind: catalog.Text}
	case iceberg.BooleanType:
		return catalog.Type{Kind: catalog.Bool}
	case iceberg.Int32Type:
		return catalog.Type{Kind: catalog.Int32}
	case iceberg.Int64Type:
		return catalog.Type{Kind: catalog.Int64}
	case iceberg.Float32Type:
		return catalog.Type{Kind: catalog.Float32}
	case iceberg.Float64Type:
		return catalog.Type{Kind: catalog.Float64}
	case iceberg.DecimalType:
		return catalog.Type{Kind: catalog.Decimal, Precision: t.Precision(), Scale: t.Scale()}
	case iceberg.DateType:
		return catalog.Type{Kind: catalog.Date}
	case iceberg.TimeType:
		return catalog.Type{Kind: catalog.Time}
	case iceberg.TimestampType:
		return catalog.Type{Kind: catalog.Timestamp}
	case iceberg.TimestampTzType:
		return catalog.Type{Kind: catalog.TimestampTZ}
	case iceberg.UUIDType:
		return catalog.Type{Kind: catalog.UUID}
	case iceberg.BinaryType:
		return catalog.Type{Kind: catalog.Binary}
	case *iceberg.ListType:
		elem := typeOf(t.Element)
		if elem.Kind == 0 {
			return elem
		}
		return catalog.Type{Kind: catalog.List, Elem: &elem}
	}
	return catalog.Type{}
}

// SnapshotID returns the snapshot that is read, or 0 for a table without one.
func (v *View) SnapshotID() int64 {
	if v.snapshot == nil {
		return 0
	}
	return v.snapshot.SnapshotID
}

// State returns what the newest snapshot says of the layer; only for a view of the
// newest.
func (v *View) State() (pipeline.LayerState, error) { return stateOf(v.tbl.Metadata(), v.name) }

// Columns returns the table's columns; a field of a struct is one of its own:
// "before.status". Their numbers are those of Iceberg's fields. A column whose type
// Lakeweir never writes has Kind 0 and cannot be scanned.
func (v *View) Columns() []catalog.Column {
	out := make([]catalog.Column, len(v.columns))
	for i, c := range v.columns {
		out[i] = c.Column
	}
	return out
}

// ScanOptions are what a scan reads.
type ScanOptions struct {
	Columns []string // names as Columns has them, or a struct's name for all of its fields; nil: all
	Where   []Condition
	Limit   int64 // 0: no limit
}

// Scan reads rows, in no particular order, and returns their schema: the columns
// asked for in that order. Rows belong to the caller.
func (v *View) Scan(ctx context.Context, opts ScanOptions) (*catalog.Schema, iter.Seq2[*change.Rows, error], error) {
	picked, err := v.pick(opts.Columns)
	if err != nil {
		return nil, nil, err
	}
	schema := &catalog.Schema{Version: 1}
	tops := []string{}
	for _, c := range picked {
		schema.Columns = append(schema.Columns, c.Column)
		if !slices.Contains(tops, c.top) {
			tops = append(tops, c.top)
		}
	}
	pushed, own, err := v.filter(opts.Where)
	if err != nil {
		return nil, nil, err
	}
	read := schema // what is asked for, then what is only compared
	if len(own) > 0 {
		read = &catalog.Schema{Version: 1, Columns: slices.Clone(schema.Columns)}
		for i := range own {
			own[i].at = len(read.Columns)
			read.Columns = append(read.Columns, own[i].column.Column)
			picked = append(picked, own[i].column)
			if !slices.Contains(tops, own[i].column.top) {
				tops = append(tops, own[i].column.top)
			}
		}
	}
	if v.snapshot == nil {
		return schema, func(func(*change.Rows, error) bool) {}, nil
	}
	limit := opts.Limit
	if len(own) > 0 {
		limit = 0
	}
	records, err := v.records(ctx, tops, pushed, limit)
	if err != nil {
		return nil, nil, v.lake.unavailable(err, "the lake's table "+v.name+" cannot be read")
	}
	return schema, func(yield func(*change.Rows, error) bool) {
		left := opts.Limit
		for rec, err := range records {
			var rows *change.Rows
			if err != nil {
				err = v.lake.unavailable(err, "the lake's table "+v.name+" cannot be read")
			} else {
				rows, err = rowsOf(rec, read, picked, int(rec.NumRows()))
				rec.Release()
			}
			if err == nil && (len(own) > 0 || opts.Limit > 0) {
				rows = keep(rows, schema, own, opts.Limit > 0, &left)
			}
			if !yield(rows, err) || err != nil || opts.Limit > 0 && left == 0 {
				return
			}
		}
	}, nil
}

// records reads columns with Iceberg's scan. limit 0 is none.
func (v *View) records(ctx context.Context, columns []string, filter iceberg.BooleanExpression, limit int64) (iter.Seq2[arrow.RecordBatch, error], error) {
	opts := append(slices.Clone(v.at), table.WithSelectedFields(columns...))
	if limit > 0 {
		opts = append(opts, table.WithLimit(limit))
	}
	if !v.misreadsFilters() {
		_, records, err := v.tbl.Scan(append(opts, table.WithRowFilter(filter))...).ToArrowRecords(ctx)
		return records, err
	}
	files, err := v.tbl.Scan(append(slices.Clone(v.at), table.WithRowFilter(filter))...).PlanFiles(ctx)
	if err != nil {
		return nil, err
	}
	for i := range files {
		files[i].Residual = nil
	}
	_, records, err := v.tbl.Scan(opts...).ReadTasks(ctx, files)
	return records, err
}

// misreadsFilters reports whether iceberg-go must not filter rows of the table, only
// choose its files: whether it has structs.
//
// In iceberg-go 0.7.0, pruneParquetSchema.Struct (table/internal/parquet_files.go)
// keeps the fields of a struct that are not selected, where it should leave them out,
// so a struct that nobody reads stays in the file's schema. The filter counts columns
// in that schema but is evaluated on the record that was read, which lacks the
// struct: it compares a column too far right, which fails with "invalid" or, where
// the types agree, returns the wrong rows. We found no report of it upstream;
// TestIcebergGoFiltersTheWrongColumn tells when it is mended.
func (v *View) misreadsFilters() bool {
	return slices.ContainsFunc(v.columns, func(c viewColumn) bool { return c.field != "" })
}

// keep returns the rows that meet the conditions, with the columns of the schema;
// at most as many as are left, when limited.
func keep(rows *change.Rows, schema *catalog.Schema, conditions []rowCondition, limited bool, left *int64) *change.Rows {
	out := change.NewRows(schema)
	for row := range rows.Len() {
		if limited && *left == 0 {
			break
		}
		if slices.ContainsFunc(conditions, func(c rowCondition) bool { return !c.met(rows, row) }) {
			continue
		}
		*left--
		to := out.Add()
		for col := range schema.Columns {
			out.Copy(to, col, rows, row, col)
		}
	}
	return out
}

func (v *View) pick(names []string) ([]viewColumn, error) {
	var out []viewColumn
	if names == nil {
		for _, c := range v.columns {
			if c.Type.Kind != 0 {
				out = append(out, c)
			}
		}
		return out, nil
	}
	for _, name := range names {
		n := len(out)
		for _, c := range v.columns {
			if c.Name == name || c.top == name && c.field != "" {
				out = append(out, c)
			}
		}
		if len(out) == n {
			return nil, v.noColumn(name)
		}
		for _, c := range out[n:] {
			if c.Type.Kind == 0 {
				return nil, catalog.Errorf(catalog.Invalid, catalog.CodeUsage, "leave it out", "column %q of %s has a type that Lakeweir cannot read", c.Name, v.name)
			}
		}
	}
	return out, nil
}

func (v *View) noColumn(name string) *catalog.Error {
	var names []string
	for _, c := range v.columns {
		names = append(names, c.Name)
	}
	return catalog.Errorf(catalog.Invalid, catalog.CodeUsage, "it has "+strings.Join(names, ", "), "%s has no column %q", v.name, name)
}

// fieldsOf returns the names of a struct's fields.
func (v *View) fieldsOf(top string) []string {
	var out []string
	for _, c := range v.columns {
		if c.top == top && c.field != "" {
			out = append(out, c.Name)
		}
	}
	return out
}

// rowsOf copies the first n rows of a record.
func rowsOf(rec arrow.RecordBatch, schema *catalog.Schema, picked []viewColumn, n int) (*change.Rows, error) {
	rows := change.NewRows(schema)
	rows.AddMany(n)
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	places := make(map[string]int, rec.NumCols())
	for i, f := range rec.Schema().Fields() {
		places[f.Name] = i
	}
	for col, c := range picked {
		at, ok := places[c.top]
		if !ok {
			return nil, fmt.Errorf("the scan left out column %q", c.top)
		}
		arr := rec.Column(at)
		if c.field == "" {
			if err := columnar.Fill(rows, 0, col, arr, all); err != nil {
				return nil, err
			}
			continue
		}
		if err := fillField(rows, col, arr, c.field, all); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// fillField copies a field of a struct column; it is NULL where the struct is.
func fillField(rows *change.Rows, col int, arr arrow.Array, field string, all []int) error {
	st, ok := arr.(*array.Struct)
	if !ok {
		return fmt.Errorf("the scan gave %s for a struct", arr.DataType())
	}
	structType, ok := st.DataType().(*arrow.StructType)
	if !ok {
		return fmt.Errorf("the scan gave %s for a struct", arr.DataType())
	}
	at, ok := structType.FieldIdx(field)
	if !ok {
		return fmt.Errorf("the scan left out field %q", field)
	}
	if err := columnar.Fill(rows, 0, col, st.Field(at), all); err != nil {
		return err
	}
	for i := range all {
		if st.IsNull(i) {
			rows.SetMark(i, col, change.Null)
		}
	}
	return nil
}
