package postgres

import (
	"context"
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
)

// Description is what a source says of itself to whoever reads its changes elsewhere.
type Description struct {
	// Epoch is the life of the source's log; System is empty when the role may not see it.
	Epoch    catalog.Epoch
	Monetary string                      // the database's lc_monetary
	Tables   map[string]TableDescription // by catalog.TableName.String(); without those that do not exist
}

// TableDescription is what a source says of a table.
type TableDescription struct {
	// Schema has the columns whose changes are in the log, with the configured key.
	Schema       *catalog.Schema
	Generated    []string // the columns that are computed from others, or that the publication leaves out
	FullIdentity bool     // REPLICA IDENTITY FULL: what a row held before is in the log
	Err          error    // why there is no schema: the table lacks a column of its configured key
}

const describeSQL = `SELECT current_setting('server_version_num')::int, current_setting('lc_monetary'),
 has_function_privilege('pg_control_system()', 'EXECUTE') AND has_function_privilege('pg_control_checkpoint()', 'EXECUTE')`

// Describe reads the columns and the replica identity of tables. It needs no right but
// to connect, and fails when the source cannot be reached.
func Describe(ctx context.Context, cfg Config, tables []*catalog.Table) (Description, error) {
	cfg = cfg.withDefaults()
	d := Description{Tables: map[string]TableDescription{}}
	pool, err := openPool(ctx, cfg.DSN, cfg.Source.Name, cfg.Limits.ConnectTimeout, 1)
	if err != nil {
		return d, err
	}
	defer pool.Close()
	var version int
	var mayControl bool
	if err := pool.QueryRow(ctx, describeSQL).Scan(&version, &d.Monetary, &mayControl); err != nil {
		return d, unreachable(cfg.Source.Name, err)
	}
	if mayControl {
		err := pool.QueryRow(ctx, "SELECT s.system_identifier::text, c.timeline_id FROM pg_control_system() s, pg_control_checkpoint() c").Scan(&d.Epoch.System, &d.Epoch.Timeline)
		if err != nil {
			return d, unreachable(cfg.Source.Name, err)
		}
	}
	have, err := gatherTables(ctx, pool, cfg.Source, tables, version)
	if err != nil {
		return d, unreachable(cfg.Source.Name, err)
	}
	for i, t := range tables {
		if have[i].oid != 0 {
			d.Tables[t.Name.String()] = describeTable(t, have[i])
		}
	}
	return d, nil
}

func describeTable(t *catalog.Table, have tableFacts) TableDescription {
	d := TableDescription{FullIdentity: have.identity == "f"}
	var types []columnType
	for i, a := range have.attributes {
		if a.generated || have.only != nil && !slices.Contains(have.only, a.name) {
			d.Generated = append(d.Generated, a.name)
			continue
		}
		types = append(types, columnType{source: have.types[i], field: a.wireColumn})
	}
	d.Schema, d.Err = buildSchema(t, types, have.attributes)
	return d
}
