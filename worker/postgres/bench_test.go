package postgres

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// BenchmarkDecode decodes inserts of eight columns, as they come over the wire.
func BenchmarkDecode(b *testing.B) {
	kinds := []catalog.ValueKind{catalog.Int64, catalog.Int64, catalog.Text, catalog.Text, catalog.TimestampTZ, catalog.Bool, catalog.Int32}
	schema := &catalog.Schema{Key: []int{0}}
	for i, k := range kinds {
		schema.Columns = append(schema.Columns, catalog.Column{Name: "c" + strconv.Itoa(i), Type: catalog.Type{Kind: k}})
	}
	schema.Columns = append(schema.Columns, catalog.Column{Name: "n", Type: catalog.Type{Kind: catalog.Decimal, Precision: 12, Scale: 2}})
	m := u16(append(u32(nil, 1), 'N'), 8)
	for _, v := range []string{"123456789", "42", "paid", "7c9e6679-7425-40de-944b-e07fc1f90ae7", "2026-03-01 12:34:56.789012+00", "t", "17", "1234.50"} {
		m = textCell(m, v)
	}
	r := &relation{covers: true, bound: true}
	for i, c := range schema.Columns {
		r.columns = append(r.columns, i)
		r.relationMessage.columns = append(r.relationMessage.columns, wireColumn{name: c.Name})
	}
	t := &table{cfg: &catalog.Table{Name: catalog.ParseTableName("t"), PrimaryKey: []string{"c0"}}, schema: schema}
	b.SetBytes(int64(len(m)))
	b.ReportAllocs()
	for i := range b.N {
		row, err := parseRow('I', m)
		if err != nil {
			b.Fatal(err)
		}
		if fault := t.decodeRow(r, 'I', row, change.Change{}); fault != nil {
			b.Fatal(fault)
		}
		if i%50_000 == 0 {
			t.batch = nil
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "changes/s")
}

const benchRows = 300_000

func benchLab(b *testing.B) *lab {
	b.Helper()
	l := newLab(b, `create table o (id bigint primary key, customer bigint, status text, ref uuid, at timestamptz, paid bool, qty int, amount numeric(12,2));
insert into o select g, g % 1000, 'paid', gen_random_uuid(), clock_timestamp(), true, 17, 1234.5 from generate_series(1, `+strconv.Itoa(benchRows)+`) g;
analyze o;`)
	l.table("o", "id")
	return l
}

// BenchmarkSnapshot reads a table's rows by chunks.
func BenchmarkSnapshot(b *testing.B) {
	l := benchLab(b)
	for range b.N {
		l.store["public.o"] = &stored{}
		l.begin()
		began := time.Now()
		done := false
		for n := 0; !done; {
			slice, err := l.source.Next(b.Context())
			require.NoError(b, err)
			for _, batch := range slice.Batches {
				n += len(batch.Changes)
				done = done || batch.Snapshot != nil && batch.Snapshot.Done
			}
		}
		b.ReportMetric(benchRows/time.Since(began).Seconds(), "rows/s")
		l.crash()
	}
}

// BenchmarkStream reads inserts that were written before, without their writer.
func BenchmarkStream(b *testing.B) {
	l := benchLab(b)
	l.exec("truncate o")
	l.begin()
	l.snapshotted()
	l.crash()
	l.exec("insert into o select g, g % 1000, 'paid', gen_random_uuid(), clock_timestamp(), true, 17, 1234.5 from generate_series(1, $1::int) g", benchRows)
	for range b.N {
		l.begin()
		began := time.Now()
		for n := 0; n < benchRows; {
			slice, err := l.source.Next(b.Context())
			require.NoError(b, err)
			for _, batch := range slice.Batches {
				n += len(batch.Changes)
			}
		}
		b.ReportMetric(benchRows/time.Since(began).Seconds(), "changes/s")
		l.crash()
	}
}
