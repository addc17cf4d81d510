package connectorconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// hidden stands for a secret that has no reference of its own.
const hidden = "***"

// Config is what one connector is to be told.
type Config struct {
	Name string
	// Properties are for people to read: secrets are references, or ***.
	Properties map[string]string
	// Notes say what a person who deploys it has to know or put right.
	Notes []catalog.Finding

	source *catalog.Source
	fixed  map[string]bool // given by connector.properties
}

// Render makes the configuration of a source's connector: the recommended settings,
// what the files say, and connector.properties over both. Properties that Objects to
// are left as they are: tableconfig has refused them, or they are noted. The error is a
// connection that cannot be taken apart, or a reference in it that cannot be resolved
// where it is one reference as a whole.
func Render(source *catalog.Source, tables []*catalog.Table) (*Config, error) {
	c := &Config{Name: source.Connector.Name, Properties: map[string]string{}, source: source, fixed: map[string]bool{}}
	where, err := c.endpoint()
	if err != nil {
		return nil, err
	}
	sub := &subject{source: source, tables: tables, where: where}
	for i := range settings {
		if v := settings[i].of(sub); v != "" {
			c.Properties[settings[i].Name] = v
		}
	}
	for _, name := range slices.Sorted(maps.Keys(source.Connector.Properties)) {
		value := source.Connector.Properties[name]
		c.Properties[name], c.fixed[name] = value, true
		if o := Object(source, name, value); o != nil {
			c.note(o.Severity, o.Code(), o.Instead, "connector.properties: %s", o.Message)
		}
	}
	if c.Properties["database.password"] == hidden {
		c.note(catalog.Notes, catalog.CodeConnectorConfig, "put the password, or a reference of a config provider of Connect, in place of ***; or write connection as postgres://user:${env:PASSWORD}@host/database",
			"the password of %s stands inside %s and is not shown", source.Name, source.Connection)
	}
	return c, nil
}

func (c *Config) note(severity catalog.Severity, code catalog.Code, fix, format string, args ...any) {
	c.Notes = append(c.Notes, catalog.Finding{Severity: severity, Code: code, Source: c.source.Name, Message: fmt.Sprintf(format, args...), Fix: fix})
}

// endpoint is the connection in parts that may be shown.
func (c *Config) endpoint() (endpoint, error) {
	if !opaque(c.source.Connection) {
		e, err := splitConnection(string(c.source.Connection))
		return e, c.badConnection(err)
	}
	e, err := c.resolvedEndpoint()
	if err == nil && e.password != "" {
		e.password = hidden
	}
	return e, err
}

func (c *Config) resolvedEndpoint() (endpoint, error) {
	dsn, err := c.source.Connection.Resolve()
	if err != nil {
		return endpoint{}, catalog.Invalidf(catalog.CodeConfigReference, c.source.File+": connection", "set what it refers to, or correct the reference", "%w", err)
	}
	e, err := splitConnection(dsn.Reveal())
	return e, c.badConnection(err)
}

func (c *Config) badConnection(err error) error {
	if err == nil {
		return nil
	}
	return catalog.Invalidf(catalog.CodeConfigValue, c.source.File+": connection", "write postgres://user:${env:PASSWORD}@host:5432/database", "the connection cannot be told to a connector: %w", err)
}

// Resolve returns the configuration with its secrets, for the one request that needs
// it. The error names references, never values.
func (c *Config) Resolve() (map[string]string, error) {
	where, err := c.resolvedEndpoint()
	if err != nil {
		return nil, err
	}
	sub := &subject{source: c.source, where: where}
	out := make(map[string]string, len(c.Properties))
	for _, name := range slices.Sorted(maps.Keys(c.Properties)) {
		if s := setting(name); s != nil && s.Key == "connection" && !c.fixed[name] {
			out[name] = s.of(sub)
			continue
		}
		if s := setting(name); s != nil && s.Key != "connector.schema_registry" && !c.fixed[name] {
			out[name] = c.Properties[name]
			continue
		}
		v, err := catalog.SecretRef(c.Properties[name]).Resolve()
		if err != nil {
			return nil, catalog.Invalidf(catalog.CodeConfigReference, c.source.File+": connector.properties."+name, "set what it refers to, or correct the reference", "%w", err)
		}
		out[name] = v.Reveal()
	}
	return out, nil
}

// JSON is what a person posts to Kafka Connect: the name and the configuration, in the
// order of Settings, then of names.
func (c *Config) JSON() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "{\n  \"name\": %s,\n  \"config\": {\n", quoteJSON(c.Name))
	names := c.Names()
	for i, name := range names {
		comma := ","
		if i == len(names)-1 {
			comma = ""
		}
		fmt.Fprintf(&b, "    %s: %s%s\n", quoteJSON(name), quoteJSON(c.Properties[name]), comma)
	}
	b.WriteString("  }\n}\n")
	return []byte(b.String())
}

// Names are the properties in the order of Settings, then of names.
func (c *Config) Names() []string {
	out := make([]string, 0, len(c.Properties))
	for _, s := range settings {
		if _, ok := c.Properties[s.Name]; ok {
			out = append(out, s.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Properties)) {
		if setting(name) == nil {
			out = append(out, name)
		}
	}
	return out
}

func quoteJSON(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // text cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}
