// Package demo is the example shop: its tables, the rows it starts with, the life
// that goes on in it, and an independent record of that life.
//
// Setup makes the shop in a Postgres database and Workload keeps it busy, with
// everything that makes replication hard. Triggers note each change in
// demo_audit.changes; History folds that record, in SQL alone, into the history
// that the lake must show, and Compare tells where it does not. The package knows
// nothing of replication and reads no lake: the caller brings the lake's rows.
package demo

// Tables names the shop's tables, in schema public. The last has no key.
func Tables() []string {
	return []string{"customers", "orders", "order_items", "payments", "refunds", "documents", "event_log"}
}
