package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// scenario is something large that happens at a source.
type scenario struct {
	name   string
	tables []string
	play   func(ctx context.Context, b *stage) error
	scans  []scan
}

// scan reads the lake afterwards and looks at the answer.
type scan struct {
	name  string
	table string
	args  []string
	check func(*countingHash) error
}

// valueSize is that of a value of 60 MB; with its multiples of 64 KiB it is not a
// round number of any buffer.
const valueSize = 60 << 20

// scaled is a part of a number of rows or bytes.
func (b *stage) scaled(n int) int { return max(1, int(float64(n)*b.o.scale)) }

func scenarios() []scenario {
	return []scenario{
		{name: "C46", tables: []string{"bt"}, play: bigTransactions, scans: []scan{
			{name: "of the large value", table: "silver.bt", args: []string{"--columns", "v", "--where", "id = 0"}, check: wholeValue},
			{name: "of the rolled-back rows", table: "silver.bt", args: []string{"--where", "id > 2000000"}, check: noRows},
			{name: "of the rolled-back events", table: "bronze.bt_cdc", args: []string{"--where", "pk.id > 2000000"}, check: noRows},
		}},
		{name: "value", tables: []string{"bt"}, play: streamedValue, scans: []scan{
			{name: "of the large value", table: "silver.bt", args: []string{"--columns", "v", "--where", "id = 0"}, check: wholeValue},
		}},
		{name: "read-value", tables: []string{"bt"}, play: readValue, scans: []scan{
			{name: "of the large value", table: "silver.bt", args: []string{"--columns", "v", "--where", "id = 0"}, check: wholeValue},
		}},
		{name: "several-values", tables: []string{"v1", "v2", "v3", "v4"}, play: severalValues},
		{name: "values", tables: []string{"bt"}, play: manyValues},
		{name: "rollback", tables: []string{"bt"}, play: rolledBack},
		{name: "snapshot", tables: []string{"bt"}, play: snapshotAndTruncate},
		{name: "wide", tables: []string{"w500", "w1600"}, play: wideTables},
	}
}

const createBT = "CREATE TABLE bt (id int PRIMARY KEY, v text, note text)"

func insertRows(table string, from, to int) string {
	return fmt.Sprintf("INSERT INTO %s SELECT g, repeat('a', 100) FROM generate_series(%d, %d) g", table, from, to)
}

func insertValue(table string, id, size int) string {
	return fmt.Sprintf("INSERT INTO %s VALUES (%d, repeat('z', %d))", table, id, size)
}

// bigTransactions is case C46.
func bigTransactions(ctx context.Context, b *stage) error {
	return inOrder(
		func() error { return b.exec(ctx, createBT) },
		func() error { return b.start(ctx) },
		func() error { return b.step(ctx, "start", func() error { return nil }) },
		b.does(ctx, "insert of 1,000,000 rows in a transaction", insertRows("bt", 1, b.scaled(1_000_000))),
		b.does(ctx, "update of 500,000 rows in a transaction", fmt.Sprintf("UPDATE bt SET v = 'b' WHERE id <= %d", b.scaled(500_000))),
		b.does(ctx, "insert of a value of 60 MB", insertValue("bt", 0, valueSize)),
		b.does(ctx, "update beside it", "UPDATE bt SET note = 'n' WHERE id = 0"),
		func() error {
			return b.step(ctx, "rolled-back load of 300,000 rows", func() error {
				return b.exec(ctx, "BEGIN; "+insertRows("bt", 2_000_001, 2_000_000+b.scaled(300_000))+"; ROLLBACK")
			})
		},
	)
}

func streamedValue(ctx context.Context, b *stage) error {
	return inOrder(
		func() error { return b.exec(ctx, createBT) },
		func() error { return b.start(ctx) },
		func() error { return b.step(ctx, "start", func() error { return nil }) },
		b.does(ctx, "insert of a value of 60 MB", insertValue("bt", 0, valueSize)),
		b.does(ctx, "update beside it", "UPDATE bt SET note = 'n' WHERE id = 0"),
		b.does(ctx, "update of its key", "UPDATE bt SET id = 1 WHERE id = 0"),
		b.does(ctx, "and back", "UPDATE bt SET id = 0 WHERE id = 1"),
		b.does(ctx, "identity full", "ALTER TABLE bt REPLICA IDENTITY FULL"),
		b.does(ctx, "update beside it, sent whole twice", "UPDATE bt SET note = 'm' WHERE id = 0"),
	)
}

func readValue(ctx context.Context, b *stage) error {
	return inOrder(
		func() error { return b.exec(ctx, createBT+"; "+insertRows("bt", 1, b.scaled(50_000))) },
		func() error { return b.exec(ctx, insertValue("bt", 0, valueSize)) },
		func() error { return b.start(ctx) },
		func() error { return b.step(ctx, "snapshot with a value of 60 MB", func() error { return nil }) },
	)
}

// severalValues has a large value in each of four tables at the same time.
func severalValues(ctx context.Context, b *stage) error {
	all := func(sql string) string {
		var out []string
		for _, t := range []string{"v1", "v2", "v3", "v4"} {
			out = append(out, strings.ReplaceAll(sql, "bt", t))
		}
		return strings.Join(out, "; ")
	}
	return inOrder(
		func() error { return b.exec(ctx, all(createBT)) },
		func() error { return b.start(ctx) },
		func() error { return b.step(ctx, "start", func() error { return nil }) },
		b.does(ctx, "insert of 60 MB into each of four tables", "BEGIN; "+all(insertValue("bt", 0, valueSize))+"; COMMIT"),
		b.does(ctx, "update beside each", all("UPDATE bt SET note = 'n' WHERE id = 0")),
	)
}

// manyValues has values that are large each, and many.
func manyValues(ctx context.Context, b *stage) error {
	return inOrder(
		func() error { return b.exec(ctx, createBT) },
		func() error { return b.start(ctx) },
		func() error { return b.step(ctx, "start", func() error { return nil }) },
		b.does(ctx, "insert of 20 values of 20 MB", fmt.Sprintf("INSERT INTO bt SELECT g, repeat(md5(g::text), %d) FROM generate_series(1, 20) g", 20<<20/32)),
		b.does(ctx, "insert of 200 values of 1 MB", fmt.Sprintf("INSERT INTO bt SELECT g, repeat(md5(g::text), %d) FROM generate_series(101, 300) g", 1<<20/32)),
		b.does(ctx, "update beside all", "UPDATE bt SET note = 'n'"),
	)
}

func rolledBack(ctx context.Context, b *stage) error {
	savepoints := `DO $$ BEGIN FOR i IN 1..10000 LOOP BEGIN INSERT INTO bt VALUES (1000 + i, 's');
IF i % 2 = 0 THEN RAISE EXCEPTION 'no'; END IF; EXCEPTION WHEN raise_exception THEN NULL; END; END LOOP; END $$`
	return inOrder(
		func() error { return b.exec(ctx, createBT) },
		func() error { return b.start(ctx) },
		func() error { return b.step(ctx, "start", func() error { return nil }) },
		b.does(ctx, "insert of 1,000 rows", insertRows("bt", 1, 1000)),
		func() error {
			return b.step(ctx, "rolled-back load of 300,000 rows", func() error {
				return b.exec(ctx, "BEGIN; "+insertRows("bt", 2_000_001, 2_000_000+b.scaled(300_000))+"; ROLLBACK")
			})
		},
		b.does(ctx, "10,000 subtransactions, half rolled back", savepoints),
	)
}

func snapshotAndTruncate(ctx context.Context, b *stage) error {
	return inOrder(
		func() error { return b.exec(ctx, createBT+"; "+insertRows("bt", 1, b.scaled(1_000_000))) },
		func() error { return b.start(ctx) },
		func() error { return b.step(ctx, "snapshot of 1,000,000 rows", func() error { return nil }) },
		b.does(ctx, "truncate of 1,000,000 rows", "TRUNCATE bt"),
		b.does(ctx, "insert of 1,000 rows", insertRows("bt", 1, 1000)),
	)
}

func wideTables(ctx context.Context, b *stage) error {
	create := func(table string, columns int) string {
		var sql strings.Builder
		sql.WriteString("CREATE TABLE " + table + " (id int PRIMARY KEY")
		for i := 1; i < columns; i++ {
			typ := []string{"smallint", "boolean", "int", "text"}[i%4]
			fmt.Fprintf(&sql, ", column_%d %s", i, typ)
		}
		return sql.String() + ")"
	}
	fill := func(table string, columns, from, to int) string {
		values := []string{"g"}
		for i := 1; i < columns; i++ {
			values = append(values, []string{fmt.Sprintf("(g+%d) %% 1000", i), "g % 2 = 0", fmt.Sprintf("g + %d", i), "chr((65 + g % 26)::int)"}[i%4])
		}
		return fmt.Sprintf("INSERT INTO %s SELECT %s FROM generate_series(%d, %d) g", table, strings.Join(values, ", "), from, to)
	}
	return inOrder(
		func() error { return b.exec(ctx, create("w500", 500)+"; "+create("w1600", 1600)) },
		func() error {
			return b.exec(ctx, fill("w500", 500, 1, b.scaled(5000))+"; "+fill("w1600", 1600, 1, b.scaled(1500)))
		},
		func() error { return b.start(ctx) },
		func() error { return b.step(ctx, "snapshot of 500 and 1,600 columns", func() error { return nil }) },
		b.does(ctx, "insert into both", fill("w500", 500, 5001, 5000+b.scaled(5000))+"; "+fill("w1600", 1600, 1501, 1500+b.scaled(1500))),
		b.does(ctx, "update of both", "UPDATE w500 SET column_2 = 7; UPDATE w1600 SET column_2 = 7"),
	)
}

// does is a step that runs a statement.
func (b *stage) does(ctx context.Context, name, sql string) func() error {
	return func() error { return b.step(ctx, name, func() error { return b.exec(ctx, sql) }) }
}

func inOrder(steps ...func() error) error {
	for _, s := range steps {
		if err := s(); err != nil {
			return err
		}
	}
	return nil
}

// countingHash takes in what a scan prints without keeping it.
type countingHash struct {
	lines, zs, other int64
}

func (c *countingHash) Write(p []byte) (int, error) {
	for _, b := range p {
		switch b {
		case '\n':
			c.lines++
		case 'z':
			c.zs++
		default:
			c.other++
		}
	}
	return len(p), nil
}

func wholeValue(c *countingHash) error {
	if c.zs != valueSize || c.lines != 2 {
		return fmt.Errorf("the value has %d z in %d lines, not %d in 2", c.zs, c.lines, valueSize)
	}
	return nil
}

func noRows(c *countingHash) error {
	if c.lines > 1 {
		return errors.New("rows of the rolled-back transaction are visible")
	}
	return nil
}
