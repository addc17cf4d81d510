package stack

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/e2e/install"
)

// kafkaJars is Kafka 4.4.0.
//
//go:embed kafka.jars
var kafkaJars string

// Kafka is a single broker that is its own controller.
type Kafka struct {
	*Process
	Address string // host:port
	Version string
}

func newKafka(ctx context.Context, dir string, told func(string, ...any)) (*Kafka, error) {
	jars, err := install.Jars(ctx, kafkaJars)
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	controller, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	k := &Kafka{Address: address(port), Version: install.Version(jars, "kafka_2.13")}
	data := filepath.Join(dir, "kafka")
	if err := os.MkdirAll(data, 0o750); err != nil {
		return nil, err
	}
	// One node, so every internal topic has one replica. The broker is not to wait
	// for its own lost session, or for more members of a group, when it or a client
	// was killed and comes back.
	config := fmt.Sprintf(`process.roles=broker,controller
node.id=1
controller.quorum.voters=1@%[2]s
listeners=PLAINTEXT://%[1]s,CONTROLLER://%[2]s
advertised.listeners=PLAINTEXT://%[1]s
controller.listener.names=CONTROLLER
log.dirs=%[3]s
num.partitions=1
auto.create.topics.enable=true
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
log.cleaner.dedupe.buffer.size=16777216
`, k.Address, address(controller), filepath.Join(data, "logs"))
	file := filepath.Join(data, "server.properties")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	format := java("128m", jars, "kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", strings.TrimRight(base64.URLEncoding.EncodeToString(id[:]), "="), "-c", file)
	if err := install.Run(ctx, format[0], format[1:]...); err != nil {
		return nil, err
	}
	k.Process = &Process{
		Name: "kafka", Log: filepath.Join(dir, "log", "kafka.log"), told: told, ready: k.ping,
		argv: java("512m", jars, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "kafka.Kafka", file),
	}
	return k, nil
}

func (k *Kafka) ping(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(k.Address))
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Ping(ctx)
}
