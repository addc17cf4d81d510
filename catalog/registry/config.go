package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
)

// sourceConfig is what is kept of a source's file. The connection and the token key
// are left out: even as references they are nobody's business here.
type sourceConfig struct {
	Kind          catalog.SourceKind `json:"kind"`
	Capture       catalog.Capture    `json:"capture"`
	Slot          string             `json:"slot"`
	Publication   string             `json:"publication"`
	CreateSlot    bool               `json:"createSlot"`
	Heartbeat     string             `json:"heartbeat"`
	HeartbeatRow  catalog.TableName  `json:"heartbeatTable"`
	WALBudget     int64              `json:"walBudget"`
	NearBudget    int                `json:"walBudgetNear,omitempty"`
	OnBudget      catalog.OnBudget   `json:"onWalBudget,omitempty"`
	ChunkRows     int                `json:"snapshotChunkRows"`
	Parallel      int                `json:"snapshotParallel"`
	Bronze        []string           `json:"bronzeNamespace"`
	Silver        []string           `json:"silverNamespace"`
	FormatVersion int                `json:"formatVersion"`
	Connector     *connectorConfig   `json:"connector,omitempty"`
}

// connectorConfig is what is kept of a connector's settings; its properties and URLs are
// left out, as the connection is.
type connectorConfig struct {
	Name        string                `json:"name"`
	TopicPrefix string                `json:"topicPrefix"`
	Format      catalog.MessageFormat `json:"format"`
	SignalTable *catalog.TableName    `json:"signalTable,omitempty"`
}

func connectorOf(s *catalog.Source) *connectorConfig {
	if s.Connector == nil {
		return nil
	}
	c := &connectorConfig{Name: s.Connector.Name, TopicPrefix: s.Connector.TopicPrefix, Format: s.Connector.Format}
	if t := s.Connector.SignalTable; t != (catalog.TableName{}) {
		c.SignalTable = &t
	}
	return c
}

// TableConfig is what is kept of a table's file, with every default filled in.
type TableConfig struct {
	PrimaryKey     []string                      `json:"primaryKey"`
	Current        bool                          `json:"current"`
	History        bool                          `json:"history"`
	Owner          string                        `json:"owner"`
	Tier           catalog.Tier                  `json:"freshnessTier"`
	TrackColumns   []string                      `json:"trackHistoryColumns,omitempty"`
	TrackExcept    []string                      `json:"trackHistoryExceptColumns,omitempty"`
	PII            map[string]catalog.Protection `json:"pii,omitempty"`
	SoftDelete     bool                          `json:"softDelete"`
	ApplyTruncates bool                          `json:"applyTruncates"`
	// BronzeTable, CurrentTable and HistoryTable are the table's names in the lake,
	// dotted; empty for a layer that is not kept.
	BronzeTable  string `json:"bronzeTable"`
	CurrentTable string `json:"currentTable,omitempty"`
	HistoryTable string `json:"historyTable,omitempty"`
}

// SyncConfig makes the registry know these sources and tables as their files now
// are. It may be repeated: a config version is counted only when what the file says
// has changed. A table of one of these sources that is not among the tables stays,
// marked as not in files; other sources are left alone.
func (r *Registry) SyncConfig(ctx context.Context, sources []catalog.Source, tables []catalog.Table) error {
	return r.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		for i := range sources {
			s := &sources[i]
			if err := syncSource(ctx, tx, s); err != nil {
				return fmt.Errorf("store source %s: %w", s.Name, err)
			}
			if err := syncTables(ctx, tx, s, tables); err != nil {
				return err
			}
		}
		return nil
	})
}

func syncSource(ctx context.Context, tx pgx.Tx, s *catalog.Source) error {
	_, err := tx.Exec(ctx, `
		insert into lakeweir.sources as o (name, kind, capture, config, wal_budget, file)
		values ($1, $2, $3, $4, $5, $6)
		on conflict (name) do update set kind = excluded.kind, capture = excluded.capture, config = excluded.config,
			wal_budget = excluded.wal_budget, file = excluded.file, updated_at = now(),
			config_version = o.config_version + (o.config is distinct from excluded.config)::int
		where (o.config, o.file) is distinct from (excluded.config, excluded.file)`,
		s.Name, string(s.Kind), string(s.Capture), sourceConfig{
			Kind: s.Kind, Capture: s.Capture, Slot: s.Slot, Publication: s.Publication, CreateSlot: s.CreateSlot,
			Heartbeat: s.Heartbeat.Interval.String(), HeartbeatRow: s.Heartbeat.Table, WALBudget: s.WALBudget, NearBudget: s.NearBudget, OnBudget: s.OnBudget,
			ChunkRows: s.Snapshot.ChunkRows, Parallel: s.Snapshot.Parallel,
			Bronze: s.Namespaces.Bronze, Silver: s.Namespaces.Silver, FormatVersion: s.FormatVersion,
			Connector: connectorOf(s),
		}, s.WALBudget, s.File)
	return err
}

type knownTable struct {
	id      int64
	version int
	config  []byte
	file    string
	inFiles bool
}

func syncTables(ctx context.Context, tx pgx.Tx, s *catalog.Source, tables []catalog.Table) error {
	known, err := knownTables(ctx, tx, s.Name)
	if err != nil {
		return fmt.Errorf("read the tables of source %s: %w", s.Name, err)
	}
	for i := range tables {
		t := &tables[i]
		if t.Source != s.Name {
			continue
		}
		k, ok := known[t.Name]
		delete(known, t.Name)
		if err := syncTable(ctx, tx, s, t, k, ok); err != nil {
			return fmt.Errorf("store table %s: %w", t.ID(), err)
		}
	}
	for name, k := range known {
		if !k.inFiles {
			continue
		}
		if _, err := tx.Exec(ctx, `update lakeweir.tables set in_files = false, updated_at = now() where id = $1`, k.id); err != nil {
			return fmt.Errorf("mark table %s/%s: %w", s.Name, name, err)
		}
		if err := addEvent(ctx, tx, k.id, LeftFiles, map[string]any{"file": k.file}); err != nil {
			return err
		}
	}
	return nil
}

func knownTables(ctx context.Context, tx pgx.Tx, source string) (map[catalog.TableName]knownTable, error) {
	known := map[catalog.TableName]knownTable{}
	rows, err := tx.Query(ctx, `select id, schema_name, table_name, config_version, config::text, file, in_files
		from lakeweir.tables where source = $1 order by id for update`, source)
	if err != nil {
		return nil, err
	}
	var k knownTable
	var n catalog.TableName
	var config string
	_, err = pgx.ForEachRow(rows, []any{&k.id, &n.Schema, &n.Name, &k.version, &config, &k.file, &k.inFiles}, func() error {
		k.config = []byte(config)
		known[n] = k
		return nil
	})
	return known, err
}

func syncTable(ctx context.Context, tx pgx.Tx, s *catalog.Source, t *catalog.Table, k knownTable, exists bool) error {
	config := configOf(s, t)
	if !exists {
		err := tx.QueryRow(ctx, `insert into lakeweir.tables (source, schema_name, table_name, owner, tier, config, file)
			values ($1, $2, $3, $4, $5, $6, $7) returning id`,
			t.Source, t.Name.Schema, t.Name.Name, t.Owner, string(t.Tier), config, t.File).Scan(&k.id)
		if err != nil {
			return err
		}
		return addConfig(ctx, tx, k.id, 1, config)
	}
	same, err := sameJSON(k.config, config)
	if err != nil {
		return err
	}
	if same && k.inFiles && k.file == t.File {
		return nil
	}
	version := k.version
	if !same {
		version++
	}
	_, err = tx.Exec(ctx, `update lakeweir.tables set owner = $2, tier = $3, config = $4, config_version = $5, file = $6,
		in_files = true, updated_at = now() where id = $1`, k.id, t.Owner, string(t.Tier), config, version, t.File)
	if err != nil {
		return err
	}
	if !k.inFiles {
		if err := addEvent(ctx, tx, k.id, CameBack, map[string]any{"file": t.File}); err != nil {
			return err
		}
	}
	if same {
		return nil
	}
	return addConfig(ctx, tx, k.id, version, config)
}

func addConfig(ctx context.Context, tx pgx.Tx, table int64, version int, config TableConfig) error {
	if _, err := tx.Exec(ctx, `insert into lakeweir.table_configs (table_id, version, config) values ($1, $2, $3)`, table, version, config); err != nil {
		return err
	}
	return addEvent(ctx, tx, table, ConfigChanged, map[string]any{"version": version})
}

func configOf(s *catalog.Source, t *catalog.Table) TableConfig {
	c := TableConfig{
		PrimaryKey: slices.Clone(t.PrimaryKey), Current: t.Current, History: t.History, Owner: t.Owner, Tier: t.Tier,
		TrackColumns: t.TrackColumns, TrackExcept: t.TrackExcept, PII: t.PII, SoftDelete: t.SoftDelete,
		ApplyTruncates: t.ApplyTruncates, BronzeTable: dotted(s.LakeName(t.Name, catalog.Bronze)),
	}
	if c.PrimaryKey == nil {
		c.PrimaryKey = []string{}
	}
	if t.Current {
		c.CurrentTable = dotted(s.LakeName(t.Name, catalog.Current))
	}
	if t.History {
		c.HistoryTable = dotted(s.LakeName(t.Name, catalog.History))
	}
	return c
}

// sameJSON compares a stored document, whose keys Postgres reordered, with a value.
func sameJSON(stored []byte, value any) (bool, error) {
	b, err := json.Marshal(value)
	if err != nil {
		return false, err
	}
	var docs [2]any
	for i, doc := range [][]byte{stored, b} {
		d := json.NewDecoder(bytes.NewReader(doc))
		d.UseNumber()
		if err := d.Decode(&docs[i]); err != nil {
			return false, err
		}
	}
	one, err1 := json.Marshal(docs[0])
	two, err2 := json.Marshal(docs[1])
	return err1 == nil && err2 == nil && bytes.Equal(one, two), nil
}
