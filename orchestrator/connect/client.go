package connect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
)

// Limits bound what a client waits for; zero means the default.
type Limits struct {
	Answer time.Duration // for one answer; default 100 s, more than Connect itself takes
	Retry  time.Duration // how long a request that Connect is too busy for is repeated; default 1 min
	First  time.Duration // before the first repetition; then twice as long, at most 5 s; default 500 ms
	Settle time.Duration // for a connector to have stopped; default 1 min
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&l.Answer, 100 * time.Second}, {&l.Retry, time.Minute}, {&l.First, 500 * time.Millisecond}, {&l.Settle, time.Minute}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	return l
}

// Client speaks to one Kafka Connect. It may be used by several goroutines.
type Client struct {
	base   *url.URL // without a user
	user   *url.Userinfo
	http   *http.Client
	limits Limits
}

// NewClient makes a client for the REST interface at a URL, which may hold a user and a
// password. It sends nothing.
func NewClient(at catalog.Secret, limits Limits) (*Client, error) {
	base, err := url.Parse(strings.TrimRight(strings.TrimSpace(at.Reveal()), "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, catalog.Invalidf(catalog.CodeConfigValue, "connector.connect_url", "write http://host:8083", "connect_url is not the http URL of a Kafka Connect")
	}
	limits = limits.withDefaults()
	c := &Client{base: base, user: base.User, limits: limits, http: &http.Client{Timeout: limits.Answer}}
	base.User = nil
	return c, nil
}

// At is where the client sends requests, without a password.
func (c *Client) At() string { return c.base.String() }

// answer is what Connect says when it refuses.
type answer struct {
	Code    int    `json:"error_code"`
	Message string `json:"message"`
}

// largest is the most of an answer that is read.
const largest = 16 << 20

// do sends one request and reads its answer into out, if that is not nil. While Connect
// rebalances it answers 409; then the request is sent again, for Limits.Retry.
func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	until := time.NewTimer(c.limits.Retry)
	defer until.Stop()
	for wait := c.limits.First; ; wait = min(2*wait, 5*time.Second) {
		err := c.once(ctx, method, path, body, out)
		if catalog.KindOf(err) != catalog.Conflict {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-until.C:
			return err
		case <-time.After(wait):
		}
	}
}

func (c *Client) once(ctx context.Context, method, path string, body []byte, out any) error {
	request, err := http.NewRequestWithContext(ctx, method, c.base.String()+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.user != nil {
		password, _ := c.user.Password()
		request.SetBasicAuth(c.user.Username(), password)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, largest))
	if err != nil {
		return c.unreachable(ctx, err)
	}
	if response.StatusCode >= 300 {
		return c.refused(response.StatusCode, text)
	}
	if out == nil || len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return catalog.Errorf(catalog.Unavailable, catalog.CodeConnectorUnreachable, "see that connect_url is that of Kafka Connect's REST interface", "%s does not answer as Kafka Connect does", c.At())
	}
	return nil
}

// unreachable is no answer at all. The transport's error names the URL, which has no
// password any more.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	why := err
	if u, ok := errors.AsType[*url.Error](err); ok {
		why = u.Err
	}
	return catalog.Errorf(catalog.Unavailable, catalog.CodeConnectorUnreachable, "see that Kafka Connect runs and that connect_url is right", "Kafka Connect at %s does not answer: %w", c.At(), why)
}

func (c *Client) refused(status int, text []byte) *catalog.Error {
	var a answer
	_ = json.Unmarshal(text, &a) // a proxy answers with something else
	message := strings.TrimSpace(a.Message)
	if message == "" {
		message = fmt.Sprintf("status %d, %s", status, http.StatusText(status))
	}
	switch {
	case status == http.StatusConflict:
		return catalog.Errorf(catalog.Conflict, catalog.CodeConnectorBusy, "try again in a minute", "Kafka Connect at %s is busy: %s", c.At(), message)
	case status == http.StatusNotFound && a.Code != 0:
		return catalog.Errorf(catalog.NotFound, catalog.CodeConnectorNotFound, "make it: lakeweir connector apply SOURCE", "Kafka Connect at %s: %s", c.At(), message)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return catalog.Errorf(catalog.Denied, catalog.CodeConnectorUnreachable, "correct the user and the password in connect_url", "Kafka Connect at %s does not let us in: %s", c.At(), message)
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		return catalog.Errorf(catalog.Invalid, catalog.CodeConnectorConfig, "correct source.yaml, or what the message names", "Kafka Connect at %s refuses the request: %s", c.At(), message)
	}
	return catalog.Errorf(catalog.Unavailable, catalog.CodeConnectorUnreachable, "see Kafka Connect's log", "Kafka Connect at %s fails: %s", c.At(), message)
}
