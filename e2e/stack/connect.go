package stack

import (
	"archive/zip"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/lakeweir/lakeweir/e2e/install"
)

var (
	// connectJars is Connect 4.3.1: Debezium 3.6.1 does not run on 4.4.
	//
	//go:embed connect.jars
	connectJars string
	// debeziumJars is Debezium's Postgres connector 3.6.1, without what Connect has.
	//
	//go:embed debezium-postgres.jars
	debeziumJars string
	// avroJars is Apicurio's converter 2.6.13, without what Connect has.
	//
	//go:embed avro.jars
	avroJars string
)

// Connect is a worker of Kafka Connect that has Debezium's Postgres connector and
// Apicurio's converter for Avro.
type Connect struct {
	*Process
	URL string
}

func newConnect(ctx context.Context, dir string, kafka *Kafka, told func(string, ...any)) (*Connect, error) {
	jars, err := install.Jars(ctx, connectJars)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(dir, "connect")
	plugins := filepath.Join(folder, "plugins")
	for name, list := range map[string]string{"debezium-postgres": debeziumJars, "avro": avroJars} {
		if err := plugin(ctx, filepath.Join(plugins, name), list); err != nil {
			return nil, err
		}
	}
	if err := announce(filepath.Join(plugins, "avro", "services.jar"), "org.apache.kafka.connect.storage.Converter", avroConverter); err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	c := &Connect{URL: "http://" + address(port)}
	// A worker that was killed is missed for as long as its session lasts, which is
	// how long the next one waits for its tasks.
	config := fmt.Sprintf(`bootstrap.servers=%s
group.id=lakeweir-connect
listeners=%s
rest.advertised.host.name=127.0.0.1
plugin.path=%s
plugin.discovery=service_load
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=false
value.converter.schemas.enable=false
config.storage.topic=_connect_configs
offset.storage.topic=_connect_offsets
status.storage.topic=_connect_status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
offset.storage.partitions=1
status.storage.partitions=1
offset.flush.interval.ms=1000
scheduled.rebalance.max.delay.ms=0
session.timeout.ms=3000
heartbeat.interval.ms=500
`, kafka.Address, c.URL, plugins)
	file := filepath.Join(folder, "connect.properties")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	c.Process = &Process{
		Name: "connect", Log: filepath.Join(dir, "log", "connect.log"), told: told,
		// Its first page answers before the worker has joined its group.
		ready: func(ctx context.Context) error { return c.call(ctx, http.MethodGet, "/connectors", nil, nil) },
		argv: java("640m", jars, "-Duser.timezone=UTC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
			"-Dorg.slf4j.simpleLogger.log.org.apache.kafka.clients=warn", "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config=warn",
			"-Dorg.slf4j.simpleLogger.log.org.apache.kafka.connect.runtime.rest=warn",
			"org.apache.kafka.connect.cli.ConnectDistributed", file),
	}
	return c, nil
}

// plugin makes a folder of links to the libraries of one plugin, anew when it is there.
func plugin(ctx context.Context, folder, list string) error {
	jars, err := install.Jars(ctx, list)
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o750)); err != nil {
		return err
	}
	for _, jar := range jars {
		if err := os.Symlink(jar, filepath.Join(folder, path.Base(jar))); err != nil {
			return err
		}
	}
	return nil
}

// announce writes a library that names a class as a service, for a plugin whose own
// libraries do not: Connect finds it by that without looking through every class.
func announce(file, service, class string) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	jar := zip.NewWriter(f)
	w, err := jar.Create("META-INF/services/" + service)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, class+"\n"); err != nil {
		return err
	}
	return jar.Close()
}

// Put creates or changes a connector and returns when it and its task run.
func (c *Connect) Put(ctx context.Context, name string, config map[string]string) error {
	if err := c.Create(ctx, name, config); err != nil {
		return err
	}
	return c.Running(ctx, name)
}

// Create creates or changes a connector and does not wait for it.
func (c *Connect) Create(ctx context.Context, name string, config map[string]string) error {
	return c.call(ctx, http.MethodPut, "/connectors/"+name+"/config", config, nil)
}

// Running waits until a connector and its task run.
func (c *Connect) Running(ctx context.Context, name string) error {
	return c.await(ctx, name, func(all []connectorState) (bool, error) {
		running := len(all) > 1
		for _, s := range all {
			if s.State == failed {
				return false, fmt.Errorf("connector %s has failed: %s", name, s.Trace)
			}
			running = running && s.State == "RUNNING"
		}
		return running, nil
	})
}

// Failed waits until a connector or its task has failed, and returns what it says.
func (c *Connect) Failed(ctx context.Context, name string) (trace string, err error) {
	err = c.await(ctx, name, func(all []connectorState) (bool, error) {
		i := slices.IndexFunc(all, func(s connectorState) bool { return s.State == failed })
		if i >= 0 {
			trace = all[i].Trace
		}
		return i >= 0, nil
	})
	return trace, err
}

// connectorState is how a connector, or a task of it, is.
type connectorState struct {
	State string `json:"state"`
	Trace string `json:"trace"`
}

const failed = "FAILED"

// await waits for a minute until a connector's state and those of its tasks are as done
// says.
func (c *Connect) await(ctx context.Context, name string, done func([]connectorState) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		var status struct {
			Connector connectorState   `json:"connector"`
			Tasks     []connectorState `json:"tasks"`
		}
		err := c.call(ctx, http.MethodGet, "/connectors/"+name+"/status", nil, &status)
		if err == nil {
			if ok, err := done(append(status.Tasks, status.Connector)); ok || err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("connector %s is not as it was to be: %+v: %w", name, status, errors.Join(ctx.Err(), err))
		}
	}
}

// RestartTask restarts a connector's task, as an operator would.
func (c *Connect) RestartTask(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodPost, "/connectors/"+name+"/tasks/0/restart", nil, nil)
}

// Delete removes a connector; its offsets stay.
func (c *Connect) Delete(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, "/connectors/"+name, nil, nil)
}

func (c *Connect) call(ctx context.Context, method, path string, body, answer any) error {
	var sent io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, sent)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
