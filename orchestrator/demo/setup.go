package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lakeweir/lakeweir/catalog"
)

//go:embed schema.sql
var schemaSQL string

//go:embed audit.sql
var auditSQL string

//go:embed seed.sql
var seedSQL string

// Setup makes the shop in the database: tables, audit, then some rows of each
// table, as many orders as asked for and the others in proportion; none when
// orders is 0. What is there already is left alone, so it may be called at each
// start, and it goes on where an earlier call was cut off. It refuses a database
// that has other tables of the same names.
func Setup(ctx context.Context, dsn string, orders int) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return unreachable(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := makeSchema(ctx, conn); err != nil {
		return err
	}
	if orders <= 0 {
		return nil
	}
	for _, step := range strings.Split(seedSQL, "\n-- ")[1:] {
		name, sql, _ := strings.Cut(step, "\n")
		sql = strings.ReplaceAll(sql, ":orders", strconv.Itoa(orders))
		if err := once(ctx, conn, "seed "+name, sql); err != nil {
			return err
		}
	}
	return nil
}

// makeSchema creates tables and audit, both or nothing.
func makeSchema(ctx context.Context, conn *pgx.Conn) error {
	var audited, taken bool
	err := conn.QueryRow(ctx, `select to_regclass('demo_audit.changes') is not null,
		exists (select from pg_class where relnamespace = 'public'::regnamespace and relname = any($1))`, Tables()).Scan(&audited, &taken)
	if err != nil {
		return fmt.Errorf("look for the shop's tables: %w", err)
	}
	if audited {
		return nil
	}
	if taken {
		return catalog.Errorf(catalog.Conflict, catalog.CodeUsage,
			"give the demo a database of its own: create one, and name it in --dsn",
			"the database has tables named like the example shop's that the demo did not make")
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "set local search_path = public;\n"+schemaSQL+auditSQL)
		return err
	})
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42501" { // insufficient_privilege
		c := conn.Config()
		return catalog.Errorf(catalog.Denied, catalog.CodeSourceGrant,
			"ALTER DATABASE "+pgx.Identifier{c.Database}.Sanitize()+" OWNER TO "+pgx.Identifier{c.User}.Sanitize()+";",
			"role %s may not make the shop's tables in database %s: %w", c.User, c.Database, err)
	}
	if err != nil {
		return fmt.Errorf("make the shop's tables: %w", err)
	}
	return nil
}

// once runs a step in a transaction that also records that it was done.
func once(ctx context.Context, conn *pgx.Conn, step, sql string) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "insert into demo_audit.setup (step) values ($1) on conflict do nothing", step)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		_, err = tx.Exec(ctx, "set local search_path = public;\n"+sql)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	return nil
}

// unreachable turns a connection error into one for a person. The driver's text
// names user and database, never the password.
func unreachable(err error) error {
	return catalog.Errorf(catalog.Unavailable, catalog.CodeSourceUnreachable,
		"check the connection string, and that the server runs and lets this role in",
		"the shop's database cannot be reached: %w", err)
}
