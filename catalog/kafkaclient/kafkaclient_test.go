package kafkaclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/lakeweir/lakeweir/catalog"
)

func source(brokers ...string) *catalog.Source {
	return &catalog.Source{Name: "shop", File: "shop/source.yaml", Kafka: &catalog.Kafka{Brokers: brokers}}
}

func cluster(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// ask has a client of the source ask for something; the error is what its user gets.
func ask(t *testing.T, s *catalog.Source, password catalog.Secret) error {
	t.Helper()
	client, err := New(s, password, kgo.RequestRetries(1))
	require.NoError(t, err)
	defer client.Close()
	_, err = kadm.NewClient(client).ListTopics(t.Context())
	return err
}

func requireDenied(t *testing.T, s *catalog.Source, err error, message, hint string) {
	t.Helper()
	e := Refused(s, err)
	require.NotNil(t, e, "%v", err)
	require.Equal(t, catalog.CodeKafkaDenied, e.Code)
	require.Equal(t, catalog.Denied, e.Kind)
	require.Contains(t, e.Message, message)
	require.Contains(t, e.Hint, hint)
	require.Equal(t, "shop/source.yaml", e.At)
}

func TestEveryMechanismLetsTheRightPasswordInAndNoOther(t *testing.T) {
	t.Parallel()
	mechanisms := []catalog.SASLMechanism{catalog.SASLPlain, catalog.SASLSHA256, catalog.SASLSHA512}
	for _, mechanism := range mechanisms {
		t.Run(string(mechanism), func(t *testing.T) {
			t.Parallel()
			c := cluster(t, kfake.EnableSASL(), kfake.Superuser(string(mechanism), "app", "hunter2"))
			s := source(c.ListenAddrs()...)
			s.Kafka.SASL = &catalog.KafkaSASL{Mechanism: mechanism, Username: "app"}
			require.NoError(t, ask(t, s, "hunter2"))

			for _, other := range mechanisms { // which the brokers do not have
				if other != mechanism {
					s.Kafka.SASL.Mechanism = other
					require.Error(t, ask(t, s, "hunter2"))
				}
			}
			s.Kafka.SASL.Mechanism = mechanism

			c.ControlKey(int16(kmsg.SASLAuthenticate), refuse(c)) // as brokers answer; these close the connection
			err := ask(t, s, "a-wrong-one")
			requireDenied(t, s, err, "source shop: the brokers refuse the client: SASL_AUTHENTICATION_FAILED", "kafka.sasl")
			require.NotContains(t, Refused(s, err).Error(), "wrong")
		})
	}
}

// refuse answers as brokers do to a wrong password, with a text that nobody should see.
func refuse(c *kfake.Cluster) func(kmsg.Request) (kmsg.Response, error, bool) {
	return func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp, ok := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		if ok {
			text := "Authentication failed: not a-wrong-one"
			resp.ErrorCode, resp.ErrorMessage = kerr.SaslAuthenticationFailed.Code, &text
		}
		return resp, nil, ok
	}
}

func TestAMechanismThatBrokersDoNotHaveIsSaid(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "app", "hunter2"))
	c.ControlKey(int16(kmsg.SASLHandshake), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp, ok := req.ResponseKind().(*kmsg.SASLHandshakeResponse)
		if ok {
			resp.ErrorCode = kerr.UnsupportedSaslMechanism.Code
		}
		return resp, nil, ok
	})
	s := source(c.ListenAddrs()...)
	s.Kafka.SASL = &catalog.KafkaSASL{Mechanism: catalog.SASLSHA512, Username: "app"}
	requireDenied(t, s, ask(t, s, "hunter2"), "UNSUPPORTED_SASL_MECHANISM", "mechanism")
	_, err := New(&catalog.Source{Kafka: &catalog.Kafka{Brokers: []string{"x:1"}, SASL: &catalog.KafkaSASL{Mechanism: "GSSAPI"}}}, "")
	require.Equal(t, catalog.CodeConfigValue, catalog.Public(err).Code)
	require.ErrorContains(t, err, "GSSAPI")
}

func TestACertificateIsTrustedThroughItsAuthorityAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ours, others := authority(t, dir, "ours"), authority(t, dir, "others")
	c := cluster(t, kfake.TLS(&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{ours.issue(t, "broker")}}))
	s := source(c.ListenAddrs()...)
	s.Kafka.TLS = &catalog.KafkaTLS{CAFile: ours.file}
	require.NoError(t, ask(t, s, ""))
	s.Kafka.TLS = &catalog.KafkaTLS{Insecure: true}
	require.NoError(t, ask(t, s, ""))
	for _, wrong := range []*catalog.KafkaTLS{{}, {CAFile: others.file}} { // the system's authorities, and another one
		s.Kafka.TLS = wrong
		requireDenied(t, s, ask(t, s, ""), "the brokers' certificate is not trusted", "kafka.tls.ca_file")
	}
	s.Kafka.TLS = nil
	require.Nil(t, Refused(s, ask(t, s, "")), "a connection that is closed may be a broker that starts")
}

func TestTheClientsOwnCertificateIsShown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ours, others := authority(t, dir, "ours"), authority(t, dir, "others")
	known := x509.NewCertPool()
	known.AddCert(ours.cert)
	c := cluster(t, kfake.TLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{ours.issue(t, "broker")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known,
	}))
	s := source(c.ListenAddrs()...)
	with := func(by *ca) *catalog.KafkaTLS {
		cert, key := by.write(t, dir, "app")
		return &catalog.KafkaTLS{CAFile: ours.file, CertFile: cert, KeyFile: key}
	}
	s.Kafka.TLS = with(ours)
	require.NoError(t, ask(t, s, ""))
	for _, wrong := range []*catalog.KafkaTLS{{CAFile: ours.file}, with(others)} {
		s.Kafka.TLS = wrong
		requireDenied(t, s, ask(t, s, ""), "the brokers do not take the client's certificate", "kafka.tls.cert_file")
	}
}

func TestWhatSpeaksNoTLSIsSaid(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	s := source(strings.TrimPrefix(server.URL, "http://"))
	s.Kafka.TLS = &catalog.KafkaTLS{}
	requireDenied(t, s, ask(t, s, ""), "what answers does not speak TLS", "kafka.tls")
}

func TestWhatMayPassIsNoRefusal(t *testing.T) {
	t.Parallel()
	s := source("127.0.0.1:1")
	require.Nil(t, Refused(s, nil))
	require.Nil(t, Refused(s, context.DeadlineExceeded))
	require.Nil(t, Refused(s, ask(t, s, "")))
}

func TestFilesThatCannotBeUsedAreSaid(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for at, settings := range map[string]catalog.KafkaTLS{
		"ca_file: " + empty + " holds no certificate":                      {CAFile: empty},
		"ca_file: open " + empty + "x":                                     {CAFile: empty + "x"},
		"cert_file: " + empty + " with " + empty:                           {CertFile: empty, KeyFile: empty},
		"cert_file: " + empty + " with no file: open : no such file or di": {CertFile: empty},
	} {
		s := source("x:1")
		s.Kafka.TLS = &settings
		_, err := New(s, "")
		require.Equal(t, catalog.CodeConfigValue, catalog.Public(err).Code)
		require.Equal(t, catalog.Invalid, catalog.KindOf(err))
		key, what, _ := strings.Cut(at, ": ")
		require.Equal(t, "shop/source.yaml: kafka.tls."+key, catalog.Public(err).At)
		require.Contains(t, err.Error(), what)
	}
	_, err := New(source("no port, no host:x"), "")
	require.Equal(t, "shop/source.yaml: kafka.brokers", catalog.Public(err).At)
}
