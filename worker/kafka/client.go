package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/lakeweir/lakeweir/catalog"
)

// newClient makes the client; nothing is sent before its first use. It consumes what it
// is told to, from exact offsets, and never decides on its own where to go on.
func newClient(cfg Config) (*kgo.Client, error) {
	k := cfg.Source.Kafka
	opts := []kgo.Opt{
		kgo.SeedBrokers(k.Brokers...),
		kgo.ClientID("lakeweir-" + cfg.Source.Name),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		// A connector may write in transactions; what it took back is not read.
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // they have offsets, too
		kgo.FetchMaxBytes(int32(min(cfg.Limits.FetchBytes, math.MaxInt32))),
		kgo.FetchMaxPartitionBytes(int32(min(max(cfg.Limits.FetchBytes/4, 1<<16), math.MaxInt32))),
		kgo.BrokerMaxReadBytes(1 << 30),
		kgo.FetchMaxWait(cfg.Limits.NextWait),
		kgo.MetadataMinAge(250 * time.Millisecond),
		kgo.MetadataMaxAge(30 * time.Second),
		kgo.DisableClientMetrics(),
	}
	if k.TLS != nil {
		config, err := tlsConfig(k.TLS)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.DialTLSConfig(config))
	}
	if k.SASL != nil {
		mechanism, err := mechanismOf(k.SASL, cfg.Password)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(mechanism))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, catalog.Errorf(catalog.Invalid, catalog.CodeKafkaUnreachable, "correct kafka.brokers, as host:port", "source %s: its brokers cannot be named so: %w", cfg.Source.Name, err)
	}
	return client, nil
}

func tlsConfig(t *catalog.KafkaTLS) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.Insecure} //nolint:gosec // only where the configuration says so
	bad := func(what string, err error) error {
		return catalog.Errorf(catalog.Invalid, catalog.CodeKafkaDenied, "name a PEM file that can be read", "%s cannot be used: %w", what, err)
	}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, bad("the authorities' certificates", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, bad("the authorities' certificates", fmt.Errorf("%s holds none", t.CAFile))
		}
	}
	if t.CertFile != "" || t.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, bad("the client's certificate", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func mechanismOf(s *catalog.KafkaSASL, password catalog.Secret) (sasl.Mechanism, error) {
	switch s.Mechanism {
	case catalog.SASLPlain:
		return plain.Auth{User: s.Username, Pass: password.Reveal()}.AsMechanism(), nil
	case catalog.SASLSHA256:
		return scram.Auth{User: s.Username, Pass: password.Reveal()}.AsSha256Mechanism(), nil
	case catalog.SASLSHA512:
		return scram.Auth{User: s.Username, Pass: password.Reveal()}.AsSha512Mechanism(), nil
	}
	return nil, catalog.Errorf(catalog.Invalid, catalog.CodeKafkaDenied, "write PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", "there is no SASL mechanism %q", s.Mechanism)
}

// refused returns the error of a client that the brokers will not let in, or nil when
// waiting may help.
func refused(source string, err error) *catalog.Error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err, kerr.UnsupportedSaslMechanism), errors.Is(err, kerr.IllegalSaslState),
		strings.Contains(err.Error(), "SASL_AUTHENTICATION_FAILED"):
		return catalog.Errorf(catalog.Denied, catalog.CodeKafkaDenied, "check kafka.sasl: mechanism, username and password",
			"source %s: the brokers refuse the client: %w", source, kerr.SaslAuthenticationFailed)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return catalog.Errorf(catalog.Denied, catalog.CodeKafkaDenied, "name the authority of the brokers' certificates under kafka.tls.ca_file",
			"source %s: the brokers' certificate is not trusted: %w", source, err)
	}
	return nil
}

// within bounds a request to the brokers.
func (s *Source) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.cfg.Limits.Request)
}
