// Package kafkaclient says how a client reaches a source's brokers: which they are, TLS
// and SASL, and what it means when they do not let it in. It owns the wording of that;
// what a client reads, and how it waits, is its user's.
package kafkaclient
