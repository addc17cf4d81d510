// Package postgres reads a Postgres database's changes by logical replication,
// and its existing rows in chunks beside them.
//
// It owns the connection to the source, the slot, the publication and the
// heartbeat, and promises what pipeline.Source says: each table's changes once
// and in commit order after its cursor, values as the server prints them, and a
// slot that is never told to forget what was not confirmed. One table that
// cannot go on is a fault of that table; the others go on. It leaves the types to
// typemap, what is done with the changes to its caller, and masks nothing: its
// messages and logs therefore show no values.
//
// # Order
//
// The server sends each transaction whole, when it commits, in commit order. A
// change stands at (generation, LSN of the commit record, place in the
// transaction), which is the same however often the transaction is sent.
//
// # Snapshots
//
// A table's existing rows are read in chunks by key, each in a transaction of its
// own, so that a crash costs at most a chunk and nothing holds back the server's
// vacuum. While a chunk is read the table's changes are held back; then the chunk
// is put among them at the point of the log where it was read, without the rows
// that changes unseen by the chunk have already overtaken. A chunk waits for room:
// while the log is far behind, or more happens to the table than Limits hold back,
// it is given up, and tried again smaller and later.
//
// A row that moves out of a range not yet read into one that was is read again by
// its key when the stream does not carry all of it.
//
// # Tables without a key
//
// They are read in one transaction, which stays open as long as that takes; so do
// not start with a huge one. Meanwhile the table's changes are held back, and when
// they are more than Limits.HeldRows the whole log waits for the reading. A reading
// that is cut short begins anew as the next generation; rows of the earlier ones
// stay in bronze.
//
// # Limits of what the log tells
//
// Generated columns before Postgres 18 and what an ALTER TABLE changes by rewriting
// a table are not in it. Rows that come and go with a whole partition are not either:
// the leaves are looked at, new ones are read by key, and those that went are left to
// Config.Partitions.
// A table that is dropped and made again, renamed, or given other columns stops
// with a fault at that place.
//
// # Parking
//
// With Config.Park a stopped table's messages are kept as runs (run.go) from the first
// change that was not handed over on, and a replay (replay.go) decodes them as if they
// came then, at their own places. What is told of a table's declaration comes from the DDL
// log, entries of which are logical messages in the transactions that altered it, or else
// from relation messages and the catalog. The columns of a relation are bound to the lake's
// by attribute number. Entries do not count in ordinals; several with no row of the table
// in between are judged as one, at the next row or the end of the transaction, also when
// they are parked and replayed.
package postgres
