// Package debezium reads what Debezium's Postgres connector writes into topics: an
// envelope of JSON, of JSON with its schema or of Avro becomes cells of change.Rows,
// and its source block the change's position.
//
// It is pure: no Kafka, no clock, no I/O but the SchemaRegistry that it is given. A
// value comes out just as worker/postgres would have made it of the text that the
// server prints, or it is refused with a reason, or, where Debezium itself destroyed
// it, it is change.Unfit and counted: docs/debezium-values.md lists which. Who reads
// topics, forms keys and marks what is late is worker/kafka.
package debezium
