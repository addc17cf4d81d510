// Package stack runs the real services that Lakeweir works with, on this machine
// alone: Postgres, Kafka, Kafka Connect with Debezium, an Iceberg REST catalog, and
// an S3 gateway.
//
// They are installed, once, by package install, listen on free ports of 127.0.0.1
// with small heaps, and keep their data and logs in one folder. Each can be killed
// and started again on the same port and data. None outlives this process, even when
// it is killed. What is asked of them is left to the callers.
package stack
