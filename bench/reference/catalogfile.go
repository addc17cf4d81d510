package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"strings"

	_ "modernc.org/sqlite" // the lake's catalog

	"github.com/lakeweir/lakeweir/catalog"
)

// metadata is the file of a lake table's newest metadata, as the catalog says; empty
// when there is no such table yet.
func (s *stand) metadata(ctx context.Context, layer catalog.Layer, table string) (string, error) {
	if _, err := os.Stat(s.catalog()); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: s.catalog(), RawQuery: "mode=rw&_pragma=busy_timeout(5000)"}).String())
	if err != nil {
		return "", err
	}
	defer db.Close()
	source := catalog.Source{Namespaces: catalog.Namespaces{Bronze: []string{"bronze"}, Silver: []string{"silver"}}}
	name := source.LakeName(catalog.TableName{Schema: "shop", Name: table}, layer)
	var location string
	err = db.QueryRowContext(ctx, "SELECT metadata_location FROM iceberg_tables WHERE table_namespace = ? AND table_name = ?", name[0], name[1]).Scan(&location)
	if errors.Is(err, sql.ErrNoRows) || err != nil && strings.Contains(err.Error(), "no such table") {
		return "", nil
	}
	return strings.TrimPrefix(location, "file://"), err
}

// committed counts the commits with rows to a table's bronze, and the events in it.
func (s *stand) committed(ctx context.Context, table string) (commits, events int64, err error) {
	file, err := s.metadata(ctx, catalog.Bronze, table)
	if err != nil || file == "" {
		return 0, 0, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, err
	}
	return countCommits(text)
}

func countCommits(metadata []byte) (commits, events int64, err error) {
	var m struct {
		Snapshots []struct {
			Summary struct {
				Added int64 `json:"added-records,string"`
			} `json:"summary"`
		} `json:"snapshots"`
	}
	if err := json.Unmarshal(metadata, &m); err != nil {
		return 0, 0, err
	}
	for _, snapshot := range m.Snapshots {
		if n := snapshot.Summary.Added; n > 0 {
			commits++
			events += n
		}
	}
	return commits, events, nil
}
