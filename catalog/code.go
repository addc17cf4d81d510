package catalog

// Code names one failure for good, such as "tableconfig.unknown_field". Codes
// are part of the API: add and deprecate them, but never reuse one.
type Code string

// Every code, with its line for the docs (docs/reference/errors.md is generated
// from this list).
const (
	CodeInternal Code = "internal" // a bug in Lakeweir

	// Table configurations: catalog/tableconfig.
	CodeConfigSyntax         Code = "tableconfig.syntax"          // the file is not YAML
	CodeConfigUnknownField   Code = "tableconfig.unknown_field"   // a key that no configuration has
	CodeConfigDuplicateField Code = "tableconfig.duplicate_field" // a key twice in one mapping
	CodeConfigType           Code = "tableconfig.wrong_type"      // a value of another type than the field's
	CodeConfigValue          Code = "tableconfig.bad_value"       // a value outside what the field allows
	CodeConfigMissing        Code = "tableconfig.missing_field"   // a required field is absent
	CodeConfigNotAvailable   Code = "tableconfig.not_available"   // a key whose feature is not built yet
	CodeConfigConflict       Code = "tableconfig.conflict"        // two settings that exclude each other
	CodeConfigCollision      Code = "tableconfig.collision"       // two tables that would be one in the lake
	CodeConfigSecret         Code = "tableconfig.secret_in_clear" // a secret written into the file
	CodeConfigFile           Code = "tableconfig.file"            // a file that is missing, misnamed or unreadable
	CodeConfigReference      Code = "tableconfig.bad_reference"   // ${env:NAME} or ${file:PATH} that cannot be resolved

	// Findings at a source: worker/postgres.
	CodeSourceUnreachable Code = "source.unreachable"      // no connection to the source
	CodeSourceWALLevel    Code = "source.wal_level"        // wal_level is not logical
	CodeSourceGrant       Code = "source.missing_grant"    // the role lacks a right
	CodeSourcePublication Code = "source.publication"      // the publication is missing, partial or leaves tables out
	CodeSourceSlot        Code = "source.slot"             // the slot is missing, in use, lost or of another plugin
	CodeSourceTable       Code = "source.no_table"         // the table does not exist, or is not a table
	CodeSourceColumn      Code = "source.no_column"        // a configured column does not exist
	CodeSourceIdentity    Code = "source.replica_identity" // the replica identity does not carry the configured key
	CodeSourceNoKey       Code = "source.no_key"           // the table has no key: bronze only
	CodeSourceKey         Code = "source.bad_key"          // the configured key is not unique or may be NULL
	CodeSourceGenerated   Code = "source.generated_column" // generated columns are not replicated
	CodeSourceLimits      Code = "source.limits"           // too few slots or senders, or a setting that endangers capture
	CodeSourceBudget      Code = "source.wal_budget"       // the slot was dropped at its WAL budget, as on_wal_budget: drop says
	CodeSourceDDLLog      Code = "source.ddl_log"          // the source's log of its DDL is missing, old or disabled: schema changes are seen late
	CodeSourceInherited   Code = "source.inherited"        // the table inherits from another, or others from it, outside of partitioning

	CodeSourcePartition Code = "source.partition"          // a partition that cannot be replicated as part of its table
	CodeSourceAttached  Code = "source.partition_attached" // rows came with a partition and cannot be read
	CodeSourceDetached  Code = "source.partition_detached" // rows went with a partition that was detached, dropped or truncated

	CodeSourceDebezium Code = "source.debezium" // a type that Debezium does not send, does not send right, or stops at

	// Reading topics: worker/kafka.
	CodeKafkaUnreachable Code = "kafka.unreachable" // no connection to the brokers, or to the registry of schemas
	CodeKafkaDenied      Code = "kafka.denied"      // the brokers refuse the client, or a certificate is not trusted

	// What stops a table: worker/pipeline and below it.
	CodeGap            Code = "gap"                     // changes are missing between the lake's cursor and what the source still has
	CodeSchemaChanged  Code = "schema.changed"          // the table's columns are not those the lake has
	CodeDecode         Code = "change.undecodable"      // a value or message that cannot be read
	CodeKeyMissing     Code = "change.key_missing"      // a change does not carry the configured key
	CodeKeyNull        Code = "change.key_null"         // a change has NULL in the configured key
	CodeKeyUnfit       Code = "change.key_unfit"        // a change has a value in the configured key that the lake's type cannot hold
	CodeIdentityChange Code = "change.replica_identity" // the replica identity no longer carries the key
	CodeTruncate       Code = "change.truncate_refused" // a TRUNCATE on a table with apply_truncates: false
	CodeSnapshot       Code = "snapshot.failed"         // a snapshot cannot go on

	// The lake: worker/lake.
	CodeLakeUnavailable Code = "lake.unavailable"   // the catalog or the warehouse cannot be reached
	CodeLakeConflict    Code = "lake.conflict"      // another writer keeps committing to the table
	CodeLakeForeign     Code = "lake.foreign_table" // a table of that name exists and is not ours
	CodeLakeSchema      Code = "lake.schema"        // the lake's table has other columns than expected
	CodeLakeCursor      Code = "lake.cursor_lost"   // the layer's cursor cannot be found or proved
	CodeLakeConfig      Code = "lake.config"        // the catalog or warehouse setting is wrong
	CodeLakeNoTable     Code = "lake.no_table"      // the lake has no table of that name

	// What a stopped table misses, parked: worker/park.
	CodeParkMissing Code = "park.missing"   // a file with parked changes is gone, or one between others was never there
	CodeParkDamaged Code = "park.damaged"   // a file with parked changes was cut short or changed, or is another's
	CodeParkKey     Code = "park.key"       // parked changes cannot be opened: another key, or one that was destroyed
	CodeParkVersion Code = "park.version"   // parked changes were sealed by a newer Lakeweir
	CodeParkSize    Code = "park.too_large" // more changes than can be parked as one

	// The connector of a source: orchestrator/connect.
	CodeConnectorConfig      Code = "connector.config"      // Kafka Connect refuses the connector's configuration
	CodeConnectorSetting     Code = "connector.setting"     // a setting that loses or changes data, or is of another source
	CodeConnectorNotFound    Code = "connector.not_found"   // Kafka Connect has no connector of that name
	CodeConnectorFailed      Code = "connector.failed"      // the connector or its task has failed
	CodeConnectorBusy        Code = "connector.busy"        // Kafka Connect is rebalancing and takes no request
	CodeConnectorUnreachable Code = "connector.unreachable" // Kafka Connect cannot be reached, or answers with an error of its own
	CodeConnectorUnmanaged   Code = "connector.unmanaged"   // source.yaml names no Kafka Connect, or the source has no connector

	// Further findings in Kafka: orchestrator/preflight.
	CodeTopicMissing     Code = "topic.missing"       // a table has no topic
	CodeTopicPartitions  Code = "topic.partitions"    // a table's topic has several partitions
	CodeTopicCompacted   Code = "topic.compacted"     // a table's topic is compacted: history is lost
	CodeTopicRetention   Code = "topic.retention"     // a table's topic forgets changes too soon
	CodeTopicMessageSize Code = "topic.message_bytes" // a table's topic takes no large rows

	// Schema changes and quarantines as they are kept: catalog/registry.
	CodeNoSchemaChange    Code = "schema_change.not_found" // no schema change of that number
	CodeSchemaChangeState Code = "schema_change.state"     // the schema change is past what was asked of it
	CodeNoQuarantine      Code = "quarantine.not_found"    // no quarantine of that number
	CodeQuarantineState   Code = "quarantine.state"        // the quarantine is past what was asked of it, or not yet there

	// Policies, and what they find: policies.
	CodePolicyFile     Code = "policy.file"        // a file or folder of policies that cannot be read
	CodePolicySyntax   Code = "policy.syntax"      // the file is not Rego v1
	CodePolicyCompile  Code = "policy.compile"     // a rule that cannot be compiled: an unknown function, field or variable
	CodePolicyContract Code = "policy.contract"    // a package or rule that nobody reads, or of another form than is read
	CodePolicyFailed   Code = "policy.failed"      // a policy that fails, takes too long, or answers what nobody understands
	CodePolicyFinding  Code = "policy.finding"     // a configuration that a policy objects to
	CodePolicyTest     Code = "policy.test_failed" // a case or test of a policy fails
	CodePolicyInput    Code = "policy.bad_input"   // what a policy is to be asked is not of the form that it sees
	CodePolicyReview   Code = "policy.review"      // a schema change that a person has to look at

	// Registry and commands.
	CodeRegistryUnavailable Code = "registry.unavailable" // the registry's database cannot be reached
	CodeRegistryVersion     Code = "registry.version"     // the registry was migrated by a newer, incompatible Lakeweir
	CodeNoTable             Code = "table.not_found"      // no table of that name is configured
	CodeNoSource            Code = "source.not_found"     // no source of that name is configured
	CodeUsage               Code = "usage"                // a flag or argument is wrong
	CodeUnequal             Code = "reconcile.unequal"    // source and lake differ
	CodeReconcile           Code = "reconcile.failed"     // the comparison could not be made
	CodeWorkerEnded         Code = "worker.ended"         // a worker process ends again and again
	CodePrivacyKey          Code = "privacy.key"          // the tokenisation key is missing or too short
)
