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
// that changes unseen by the chunk have already overtaken. Tables without a key
// are read in one transaction.
package postgres
