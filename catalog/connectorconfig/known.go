package connectorconfig

import (
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// known are the properties of the connector for Postgres, of Debezium 3.6, and of
// source connectors in general, that no rule or setting names.
var known = strings.Fields(`
advanced.metrics.enable column.propagate.source.type config.action.reload connection.validation.timeout.ms
create.slot.command.timeout custom.metric.tags custom.retriable.exception custom.sanitize.pattern
datatype.propagate.source.type errors.log.enable errors.log.include.messages errors.max.retries errors.retry.delay.max.ms
errors.retry.timeout exactly.once.support executor.shutdown.timeout.ms extended.headers.enabled
guardrail.collections.limit.action guardrail.collections.max header.converter include.schema.comments
incremental.snapshot.allow.schema.changes incremental.snapshot.watermarking.strategy legacy.snapshot.max.threads
log.position.check.enable lsn.flush.timeout.action lsn.flush.timeout.ms message.prefix.exclude.list
message.prefix.include.list money.fraction.digits offsets.storage.topic provide.transaction.metadata
publish.via.partition.root query.fetch.size read.only replica.identity.autoset.values
retriable.restart.connector.wait.ms schema.name.adjustment.mode signal.enabled.channels slot.failover
slot.max.retries slot.retry.delay.ms slot.stream.params snapshot.delay.ms snapshot.fetch.size
snapshot.lock.timeout.ms snapshot.locking.mode snapshot.max.threads.multiplier snapshot.scan.all.columns.force
snapshot.tables.order.by.row.count statistics.metrics.enabled status.update.interval.ms streaming.delay.ms
table.ignore.builtin topic.cache.size topic.creation.enable topic.creation.groups topic.heartbeat.prefix
topic.transaction transaction.boundary transaction.boundary.interval.ms xmin.fetch.interval.ms`)

// prefixes begin the names of properties that are handed on to something else, which
// knows them.
var prefixes = []string{
	"database.", "driver.", "header.converter.", "key.converter.", "value.converter.", "notification.", "openlineage.",
	"producer.override.", "signal.", "topic.creation.", "admin.override.", "schema.history.",
}

// unknown objects to a property that nothing knows, since Connect would ignore it.
func unknown(name string) *Objection {
	isKnown := func(n string) bool {
		return setting(n) != nil || slices.Contains(known, n) || slices.ContainsFunc(rules, func(r rule) bool { return r.name == n })
	}
	if isKnown(name) || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
		return nil
	}
	names := slices.Clone(known)
	for _, s := range settings {
		names = append(names, s.Name)
	}
	for _, r := range rules {
		names = append(names, r.name)
	}
	for _, n := range names {
		if plain(n) == plain(name) || off(n, name) <= 2 {
			return &Objection{catalog.Blocks, "the connector knows no property " + name + " and would ignore it", "did you mean " + n + "?"}
		}
	}
	return &Objection{catalog.Limits, "Debezium 3.6 knows no property " + name + ", and ignores what it does not know", "remove it, unless your Debezium is newer and knows it"}
}

func plain(s string) string {
	return strings.ToLower(strings.NewReplacer(".", "", "_", "", "-", "").Replace(s))
}

// off counts the characters to insert, delete or replace between two names.
func off(a, b string) int {
	if len(a)-len(b) > 2 || len(b)-len(a) > 2 {
		return 3
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}
