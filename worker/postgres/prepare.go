package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lakeweir/lakeweir/catalog"
)

// PrepareConnector makes what a source's connector needs and does not make itself: the
// publication with the tables that nothing keeps from being published, the heartbeat
// table and the signal table. It may be repeated. The findings are what the role may not
// do, and the tables left out, each with what to do; the error is a source that cannot be
// asked, or has no publication in the end, without which a connector does not start.
func PrepareConnector(ctx context.Context, cfg Config, tables []*catalog.Table) ([]catalog.Finding, error) {
	cfg = cfg.withDefaults()
	pool, err := openPool(ctx, cfg.DSN, cfg.Source.Name, cfg.Limits.ConnectTimeout, 1)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	s := &Source{cfg: cfg, pool: pool, log: cfg.Logger}
	found, err := s.prepareConnector(ctx, tables)
	if err != nil {
		return found, asError(cfg.Source.Name, err)
	}
	return found, nil
}

func (s *Source) prepareConnector(ctx context.Context, tables []*catalog.Table) ([]catalog.Finding, error) {
	source := s.cfg.Source
	f, err := gather(ctx, s.pool, source, tables)
	if err != nil {
		return nil, err
	}
	found, good := []catalog.Finding{}, []*catalog.Table{}
	stopping := slices.DeleteFunc(blocking(judge(source, tables, f)), func(b catalog.Finding) bool {
		return b.Code == catalog.CodeSourcePublication // which is what is made here
	})
	for _, t := range tables {
		name := t.Name.String()
		if i := slices.IndexFunc(stopping, func(b catalog.Finding) bool { return b.Table == name }); i >= 0 {
			found = append(found, stopping[i])
		} else {
			good = append(good, t)
		}
	}
	if f, err = gather(ctx, s.pool, source, good); err != nil {
		return found, err
	}
	denied := s.publish(ctx, f, good)
	for _, t := range good {
		if e := denied[t.Name.String()]; e != nil {
			found = append(found, catalog.Finding{Severity: catalog.Blocks, Code: e.Code, Source: source.Name, Table: t.Name.String(), Message: e.Message, Fix: e.Hint})
		}
	}
	out := &findings{source: source.Name}
	if source.Heartbeat.Interval > 0 {
		s.heartbeatSQL(ctx) // which makes the table
	}
	if err := s.makeSignalTable(ctx); err != nil {
		out.add(catalog.Limits, catalog.CodeSourceGrant, "", signalTableSQL(source.Connector.SignalTable), "signal table %s cannot be made: %s", source.Connector.SignalTable, serverMessage(err))
	}
	if f.publication, err = gatherPublication(ctx, s.pool, source.Publication); err != nil {
		return found, err
	}
	if f.publication == nil {
		return found, catalog.Errorf(catalog.Denied, catalog.CodeSourcePublication, "let an owner run: "+createPublicationSQL(source.Publication, tables),
			"source %s: publication %s does not exist and cannot be made", source.Name, source.Publication)
	}
	for _, t := range controlTables(source) {
		if in, err := isPublished(ctx, s.pool, source.Publication, t); err != nil {
			return found, err
		} else if in { // who may not alter the publication need not
			continue
		}
		if _, err := s.pool.Exec(ctx, addToPublication(source, t)); err != nil && sqlState(err) != stateDuplicateObject {
			out.add(catalog.Limits, catalog.CodeSourcePublication, "", addToPublication(source, t), "%s cannot be added to publication %s: %s", t, source.Publication, serverMessage(err))
		}
	}
	return append(found, out.list...), nil
}

// controlTables are those that a connector needs in the publication beside the rows'.
func controlTables(source *catalog.Source) []catalog.TableName {
	var out []catalog.TableName
	if source.Heartbeat.Interval > 0 {
		out = append(out, source.Heartbeat.Table)
	}
	if t := source.Connector.SignalTable; t.Name != "" {
		out = append(out, t)
	}
	return out
}

func addToPublication(source *catalog.Source, t catalog.TableName) string {
	return "ALTER PUBLICATION " + quoteIdent(source.Publication) + " ADD TABLE " + quoteName(t)
}

func (s *Source) makeSignalTable(ctx context.Context) error {
	t := s.cfg.Source.Connector.SignalTable
	if t.Name == "" {
		return nil
	}
	var exists bool
	if err := s.pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", quoteName(t)).Scan(&exists); err != nil || exists {
		return err
	}
	for _, sql := range []string{"CREATE SCHEMA IF NOT EXISTS " + quoteIdent(t.Schema), signalTableSQL(t)} {
		if _, err := s.pool.Exec(ctx, sql); err != nil && sqlState(err) != stateDuplicateTable && sqlState(err) != stateUniqueViolation {
			return err
		}
	}
	return nil
}

// signalTableSQL is the table that Debezium's signals want: ids, types and data.
func signalTableSQL(t catalog.TableName) string {
	return "CREATE TABLE IF NOT EXISTS " + quoteName(t) + " (id varchar(64) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(4096))"
}

// DropSlot drops the source's slot, once nobody reads it any more. A slot that is not
// there is nothing to do.
func DropSlot(ctx context.Context, cfg Config) error {
	cfg = cfg.withDefaults()
	pool, err := openPool(ctx, cfg.DSN, cfg.Source.Name, cfg.Limits.ConnectTimeout, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	return dropUnread(ctx, pool, cfg)
}

func dropUnread(ctx context.Context, pool *pgxpool.Pool, cfg Config) error {
	slot := cfg.Source.Slot
	within, cancel := context.WithTimeout(ctx, cfg.Limits.ConnectTimeout)
	defer cancel()
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		_, err := pool.Exec(within, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1", slot)
		if err == nil || sqlState(err) == stateUndefinedObject {
			return nil
		}
		if sqlState(err) != stateObjectInUse {
			return asError(cfg.Source.Name, fmt.Errorf("drop slot %s: %w", slot, err))
		}
		select {
		case <-within.Done():
			return errors.Join(ctx.Err(), catalog.Errorf(catalog.Unavailable, catalog.CodeSourceSlot, "end what reads it, then run the command again", "slot %s is in use", slot))
		case <-time.After(wait):
		}
	}
}
