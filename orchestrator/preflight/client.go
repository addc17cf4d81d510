package preflight

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/lakeweir/lakeweir/catalog"
)

// NewClient makes a client for a source's brokers. It sends nothing; the caller closes
// it. The error is a file or a reference that cannot be read.
func NewClient(source *catalog.Source) (*kgo.Client, error) {
	k := source.Kafka
	options := []kgo.Opt{kgo.SeedBrokers(k.Brokers...), kgo.ClientID("lakeweir-" + source.Name), kgo.DialTimeout(10 * time.Second), kgo.RequestRetries(2)}
	if k.TLS != nil {
		config, err := tlsConfig(k.TLS)
		if err != nil {
			return nil, catalog.Invalidf(catalog.CodeConfigValue, source.File+": kafka.tls", "name PEM files that can be read", "%w", err)
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	if s := k.SASL; s != nil {
		password, err := s.Password.Resolve()
		if err != nil {
			return nil, catalog.Invalidf(catalog.CodeConfigReference, source.File+": kafka.sasl.password", "set what it refers to, or correct the reference", "%w", err)
		}
		switch s.Mechanism {
		case catalog.SASLPlain:
			options = append(options, kgo.SASL(plain.Auth{User: s.Username, Pass: password.Reveal()}.AsMechanism()))
		case catalog.SASLSHA256:
			options = append(options, kgo.SASL(scram.Auth{User: s.Username, Pass: password.Reveal()}.AsSha256Mechanism()))
		case catalog.SASLSHA512:
			options = append(options, kgo.SASL(scram.Auth{User: s.Username, Pass: password.Reveal()}.AsSha512Mechanism()))
		}
	}
	return kgo.NewClient(options...)
}

func tlsConfig(t *catalog.KafkaTLS) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.Insecure} //nolint:gosec // only where source.yaml says so
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", t.CAFile)
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func isUnknown(err error) bool { return errors.Is(err, kerr.UnknownTopicOrPartition) }
