// Package connect keeps the Debezium connectors of sources on Kafka Connect, through its
// REST interface: it makes and changes them as the files say, pauses, restarts what has
// failed, resets them for good, and watches them while a source runs. What a connector is
// told is catalog/connectorconfig's; this package sends it, and resolves secrets only
// then. It promises that a request that is refused while Connect rebalances is sent again,
// that no secret is in an error, a log line or a difference, and that a change which
// would make the connector forget where it stood is refused.
package connect
