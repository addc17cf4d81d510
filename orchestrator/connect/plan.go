package connect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/connectorconfig"
)

// Change is one property that differs. Secrets in it are ***.
type Change struct {
	Property string `json:"property"`
	From     string `json:"from,omitempty"` // empty: it was not there
	To       string `json:"to,omitempty"`   // empty: it will not be there
}

// Plan is what applying would do.
type Plan struct {
	Name    string   `json:"name"`
	Create  bool     `json:"create"`
	Changes []Change `json:"changes"` // of a connector that is there, by name
	// send is what to put, with secrets; nil when nothing is to be done.
	send map[string]string
	// secrets are the values that references stand for.
	secrets []string
}

// Caution is what to say when a connector's task ends that may be under way: with a
// changed configuration, a restart, a stop.
const Caution = "a task that ends in the midst of a COPY or of key moves can lose rows of it for good: do this while nothing loads the source; docs/debezium-order.md"

// EndsTask reports whether applying it ends the connector's task, to start it anew.
func (p *Plan) EndsTask() bool { return !p.Create && len(p.Changes) > 0 }

// Nothing reports whether the connector is as it should be.
func (p *Plan) Nothing() bool { return !p.Create && len(p.Changes) == 0 }

// identity are the properties that say whose stream a connector is: with another value
// it is another stream, without the offsets it had.
var identity = []string{"connector.class", "database.dbname", "topic.prefix", "slot.name"}

// plan compares what a connector is to be told with what it was told. A deployed value
// that is the reference itself stays: Connect resolves it by a config provider.
func plan(want *connectorconfig.Config, sent, deployed map[string]string) (*Plan, error) {
	p := &Plan{Name: want.Name, Changes: []Change{}, send: maps.Clone(sent), secrets: secretsOf(want, sent)}
	p.send["name"] = want.Name
	for _, name := range slices.Sorted(maps.Keys(union(sent, deployed))) {
		from, was := deployed[name]
		to, is := sent[name]
		switch {
		case name == "name":
			continue
		case was && is && from == want.Properties[name]:
			p.send[name] = from
			continue
		case was == is && from == to:
			continue
		}
		if slices.Contains(identity, name) && was {
			return nil, catalog.Errorf(catalog.Denied, catalog.CodeConnectorConfig,
				"give the new one another connector.name, or let the old one go first: lakeweir connector reset SOURCE",
				"connector %s has %s %s, source.yaml says %s: it would be another stream, and the changes since the old one's offsets would be missing", want.Name, name, from, to)
		}
		p.Changes = append(p.Changes, Change{Property: name, From: shown(name, from), To: shownAs(want, name, to, is)})
	}
	if p.Nothing() {
		p.send = nil
	}
	return p, nil
}

func union(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func shown(name, value string) string {
	if value == "" {
		return ""
	}
	if connectorconfig.IsSecret(name) { // also one that holds a reference beside the secret
		return "***"
	}
	return connectorconfig.Show(name, value)
}

// shownAs is the new value for people: the reference where there is one.
func shownAs(want *connectorconfig.Config, name, value string, is bool) string {
	if !is {
		return ""
	}
	if ref := want.Properties[name]; ref != "" {
		return connectorconfig.Show(name, ref)
	}
	return shown(name, value)
}

// Plan compares a source's connector with what it should be told, and sends nothing but
// questions.
func (c *Client) Plan(ctx context.Context, want *connectorconfig.Config) (*Plan, error) {
	sent, err := want.Resolve()
	if err != nil {
		return nil, err
	}
	deployed, err := c.Config(ctx, want.Name)
	switch {
	case err == nil:
		return plan(want, sent, deployed)
	case catalog.KindOf(err) == catalog.NotFound:
		p := &Plan{Name: want.Name, Create: true, Changes: []Change{}, send: maps.Clone(sent), secrets: secretsOf(want, sent)}
		p.send["name"] = want.Name
		return p, nil
	}
	return nil, err
}

// Apply does what a plan of this client says. What Connect says of a value that it
// refuses is shown without the plan's secrets.
func (c *Client) Apply(ctx context.Context, p *Plan) error {
	if p.Nothing() {
		return nil
	}
	err := c.put(ctx, p.Name, p.send)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if why := c.validate(ctx, p.send); why != nil { // says it better, and Connect may fail over saying it at all
		err = why
	}
	if e, ok := asCoded(err); ok {
		e.Message = withoutSecrets(e.Message, p.secrets)
		e.Err = nil // its text may hold them
		return e
	}
	return err
}

func asCoded(err error) (*catalog.Error, bool) {
	if err == nil || catalog.KindOf(err) == catalog.Internal {
		return nil, false
	}
	e := *catalog.Public(err)
	return &e, true
}

// secretsOf are the values that are not what people are shown, the longest first.
func secretsOf(want *connectorconfig.Config, sent map[string]string) []string {
	var out []string
	for name, v := range sent {
		if len(v) > 2 && (connectorconfig.IsSecret(name) || want.Properties[name] != v) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return out
}

// withoutSecrets hides secrets in a text.
func withoutSecrets(text string, secrets []string) string {
	for _, v := range secrets {
		text = strings.ReplaceAll(text, v, "***")
	}
	return text
}

// Text says in one line what a plan does: "create connector x", "change 2 properties of
// connector x", "connector x is as it should be".
func (p *Plan) Text() string {
	switch {
	case p.Create:
		return "create connector " + p.Name
	case len(p.Changes) == 1:
		return "change 1 property of connector " + p.Name
	case len(p.Changes) > 1:
		return fmt.Sprintf("change %d properties of connector %s", len(p.Changes), p.Name)
	}
	return "connector " + p.Name + " is as it should be"
}
