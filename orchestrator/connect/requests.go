package connect

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

func path(name, rest string) string { return "/connectors/" + url.PathEscape(name) + rest }

// Config returns the configuration of a connector as it is deployed, with its secrets;
// it fails with connector.not_found.
func (c *Client) Config(ctx context.Context, name string) (map[string]string, error) {
	out := map[string]string{}
	err := c.do(ctx, http.MethodGet, path(name, "/config"), nil, &out)
	return out, err
}

// put makes the connector, or gives it another configuration.
func (c *Client) put(ctx context.Context, name string, config map[string]string) error {
	return c.do(ctx, http.MethodPut, path(name, "/config"), config, nil)
}

// validate asks the connector's own code what is wrong with a configuration, which tries
// to connect to the database. It returns nil when nothing is, or when it cannot be asked.
func (c *Client) validate(ctx context.Context, config map[string]string) error {
	var a struct {
		Configs []struct {
			Value *struct {
				Name   string   `json:"name"`
				Errors []string `json:"errors"`
			} `json:"value"`
		} `json:"configs"`
	}
	class := config["connector.class"]
	if err := c.do(ctx, http.MethodPut, "/connector-plugins/"+url.PathEscape(class)+"/config/validate", config, &a); err != nil {
		return nil //nolint:nilerr // the first error is told then
	}
	var problems []string
	for _, p := range a.Configs {
		if p.Value == nil {
			continue
		}
		for _, e := range p.Value.Errors {
			if line := p.Value.Name + ": " + e; !slices.Contains(problems, line) { // Debezium repeats itself
				problems = append(problems, line)
			}
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return catalog.Errorf(catalog.Invalid, catalog.CodeConnectorConfig, "correct source.yaml, or what the message names", "Kafka Connect at %s refuses the configuration: %s", c.At(), strings.Join(problems, "; "))
}

// Status asks how a connector is; it fails with connector.not_found.
func (c *Client) Status(ctx context.Context, name string) (*catalog.ConnectorStatus, error) {
	var a struct {
		Connector struct {
			State catalog.ConnectorState `json:"state"`
			Trace string                 `json:"trace"`
		} `json:"connector"`
		Tasks []struct {
			ID     int                    `json:"id"`
			State  catalog.ConnectorState `json:"state"`
			Worker string                 `json:"worker_id"`
			Trace  string                 `json:"trace"`
		} `json:"tasks"`
	}
	if err := c.do(ctx, http.MethodGet, path(name, "/status"), nil, &a); err != nil {
		return nil, err
	}
	s := &catalog.ConnectorStatus{Name: name, State: a.Connector.State, Trace: withoutValues(a.Connector.Trace)}
	for _, t := range a.Tasks {
		s.Tasks = append(s.Tasks, catalog.ConnectorTask{ID: t.ID, State: t.State, Worker: t.Worker, Trace: withoutValues(t.Trace)})
	}
	slices.SortFunc(s.Tasks, func(a, b catalog.ConnectorTask) int { return cmp.Compare(a.ID, b.ID) })
	return s, nil
}

// Pause lets the connector's task idle; it keeps its connections. Connect answers before
// it is done.
func (c *Client) Pause(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodPut, path(name, "/pause"), nil, nil)
}

// Resume ends a pause or a stop.
func (c *Client) Resume(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodPut, path(name, "/resume"), nil, nil)
}

// Stop ends the connector's task; the connector and its offsets stay.
func (c *Client) Stop(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodPut, path(name, "/stop"), nil, nil)
}

// RestartFailed restarts what of the connector has failed, and nothing else.
func (c *Client) RestartFailed(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodPost, path(name, "/restart?includeTasks=true&onlyFailed=true"), nil, nil)
}

// forget deletes the offsets of a connector that is stopped.
func (c *Client) forget(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, path(name, "/offsets"), nil, nil)
}

func (c *Client) delete(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, path(name, ""), nil, nil)
}
