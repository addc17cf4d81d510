package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/migrations"
)

// fault turns what a driver says into what a person can act on. An error that only
// a bug explains keeps its own text and is no catalog.Error. The caller's ended
// context is returned as it is.
func (r *Registry) fault(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if _, ok := errors.AsType[*catalog.Error](err); ok {
		return err
	}
	if v, ok := errors.AsType[*migrations.IncompatibleError](err); ok {
		return catalog.Errorf(catalog.Denied, catalog.CodeRegistryVersion, "use the Lakeweir version that the others use",
			"the registry at %s was migrated to need version %d or newer; this binary has %d: %w", r.where, v.MinReader, v.Own, err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	down := func(kind catalog.Kind, hint, why string) error {
		return &catalog.Error{
			Kind: kind, Code: catalog.CodeRegistryUnavailable, Hint: hint, Err: err,
			Message: fmt.Sprintf("the registry at %s %s", r.where, why),
		}
	}
	const check = "check that this Postgres runs and that --registry or LAKEWEIR_REGISTRY names it"
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch class := pg.Code[:min(2, len(pg.Code))]; {
		case pg.Code == "3D000":
			return down(catalog.Invalid, "create the database, or name another in --registry", "does not exist")
		case class == "28":
			return down(catalog.Denied, "check user and password of the registry's connection string", "refuses the login")
		case pg.Code == "42501":
			return down(catalog.Denied, "grant the role CREATE on the database, or let its owner create schema lakeweir for it", "lacks a right: "+pg.Message)
		case pg.Code == "57014":
			return down(catalog.Unavailable, check, "took too long to answer")
		case class == "08", class == "53", class == "57", class == "58", pg.Code == "25006", pg.Code == "55P03", class == "40":
			return down(catalog.Unavailable, check, "cannot serve now: "+pg.Message)
		}
		return fmt.Errorf("registry at %s: %w", r.where, err)
	}
	if errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) {
		return down(catalog.Unavailable, check, "does not answer")
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return down(catalog.Unavailable, check, "cannot be found: "+dns.Err)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return down(catalog.Unavailable, check, "cannot be reached: "+reason(op))
	}
	return down(catalog.Unavailable, check, "cannot be reached")
}

// reason is the last word of a network error, without addresses: "connection refused".
func reason(op *net.OpError) string {
	s := op.Err.Error()
	return strings.TrimSpace(s[strings.LastIndex(s, ":")+1:])
}

// whereIs names the database for messages, without user or password.
func whereIs(cfg *pgx.ConnConfig) string {
	if strings.HasPrefix(cfg.Host, "/") {
		return cfg.Host + "/" + cfg.Database
	}
	return net.JoinHostPort(cfg.Host, strconv.FormatUint(uint64(cfg.Port), 10)) + "/" + cfg.Database
}
