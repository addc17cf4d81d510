package postgres

import (
	"context"

	"github.com/lakeweir/lakeweir/catalog"
)

// publish makes the publication, or adds to it what is missing, as far as the role
// may. It is given only tables that nothing else keeps from starting: publishing a
// table without a replica identity would make the server refuse its updates. What
// it cannot do, it returns as an error for the tables concerned.
func (s *Source) publish(ctx context.Context, f facts, tables []*catalog.Table) map[string]*catalog.Error {
	denied := map[string]*catalog.Error{}
	source := s.cfg.Source
	if f.publication == nil {
		return s.makePublication(ctx, f, tables)
	}
	if f.publication.allTables {
		return denied
	}
	for i, t := range tables {
		if f.tables[i].published {
			continue
		}
		sql := "ALTER PUBLICATION " + quoteIdent(source.Publication) + " ADD TABLE " + quoteName(t.Name)
		if _, err := s.pool.Exec(ctx, sql); err != nil && sqlState(err) != stateDuplicateObject {
			denied[t.Name.String()] = publicationDenied(source, sql, err)
		}
	}
	return denied
}

func publicationDenied(source *catalog.Source, sql string, err error) *catalog.Error {
	e := catalog.Errorf(catalog.Denied, catalog.CodeSourcePublication, "let an owner run: "+sql,
		"source %s: publication %s cannot be changed: %s", source.Name, source.Publication, serverMessage(err))
	e.Err = err
	return e
}

// makePublication makes the publication with the tables that the role owns.
func (s *Source) makePublication(ctx context.Context, f facts, tables []*catalog.Table) map[string]*catalog.Error {
	source := s.cfg.Source
	denied := map[string]*catalog.Error{}
	var mine []*catalog.Table
	for i, t := range tables {
		if f.tables[i].owned {
			mine = append(mine, t)
			continue
		}
		e := catalog.Errorf(catalog.Denied, catalog.CodeSourcePublication,
			"let an owner run: ALTER PUBLICATION "+quoteIdent(source.Publication)+" ADD TABLE "+quoteName(t.Name),
			"source %s: table %s cannot be published: role %s does not own it", source.Name, t.Name, f.role)
		denied[t.Name.String()] = e
	}
	if len(mine) == 0 {
		return denied
	}
	sql := createPublicationSQL(source.Publication, mine)
	if _, err := s.pool.Exec(ctx, sql); err != nil && sqlState(err) != stateDuplicateObject {
		for _, t := range mine {
			denied[t.Name.String()] = publicationDenied(source, sql, err)
		}
	}
	return denied
}

// publishHeartbeat adds the heartbeat's table, so that a beat is seen in the
// stream. Without it the slot moves too, by what the server tells when it is idle.
func (s *Source) publishHeartbeat(ctx context.Context) {
	h := s.cfg.Source.Heartbeat
	if h.Interval <= 0 || h.Table.Name == "" || !s.cfg.Source.CreateSlot {
		return
	}
	_, err := s.pool.Exec(ctx, "ALTER PUBLICATION "+quoteIdent(s.cfg.Source.Publication)+" ADD TABLE "+quoteName(h.Table))
	if err != nil && sqlState(err) != stateDuplicateObject {
		s.log.DebugContext(ctx, "heartbeat table not published", "source", s.cfg.Source.Name, "error", serverMessage(err))
	}
}
