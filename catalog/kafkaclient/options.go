package kafkaclient

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/lakeweir/lakeweir/catalog"
)

// New makes a client for a source's brokers, with further options. It sends nothing
// before its first use; the caller closes it. password is that of kafka.sasl, resolved.
// The error is Invalid: a file that cannot be used, or brokers that cannot be named so.
func New(source *catalog.Source, password catalog.Secret, further ...kgo.Opt) (*kgo.Client, error) {
	k := source.Kafka
	opts := []kgo.Opt{kgo.SeedBrokers(k.Brokers...), kgo.ClientID("lakeweir-" + source.Name)}
	if k.TLS != nil {
		config, err := tlsConfig(source, k.TLS)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.DialTLSConfig(config))
	}
	if k.SASL != nil {
		mechanism, err := mechanismOf(source, k.SASL, password)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(mechanism))
	}
	client, err := kgo.NewClient(append(opts, further...)...)
	if err != nil {
		return nil, catalog.Invalidf(catalog.CodeConfigValue, source.File+": kafka.brokers", "name brokers as host:port", "the brokers of source %s cannot be named so: %w", source.Name, err)
	}
	return client, nil
}

func tlsConfig(source *catalog.Source, t *catalog.KafkaTLS) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.Insecure} //nolint:gosec // only where source.yaml says so
	bad := func(key, what string, err error) error {
		return catalog.Invalidf(catalog.CodeConfigValue, source.File+": kafka.tls."+key, "name a PEM file that can be read", "%s cannot be used: %w", what, err)
	}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err == nil {
			if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(pem) {
				err = fmt.Errorf("%s holds no certificate", t.CAFile)
			}
		}
		if err != nil {
			return nil, bad("ca_file", "the authorities' certificates", err)
		}
	}
	if t.CertFile != "" || t.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, bad("cert_file", "the client's certificate", fmt.Errorf("%s with %s: %w", orNone(t.CertFile), orNone(t.KeyFile), err))
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func orNone(file string) string {
	if file == "" {
		return "no file"
	}
	return file
}

func mechanismOf(source *catalog.Source, s *catalog.KafkaSASL, password catalog.Secret) (sasl.Mechanism, error) {
	switch s.Mechanism {
	case catalog.SASLPlain:
		return plain.Auth{User: s.Username, Pass: password.Reveal()}.AsMechanism(), nil
	case catalog.SASLSHA256:
		return scram.Auth{User: s.Username, Pass: password.Reveal()}.AsSha256Mechanism(), nil
	case catalog.SASLSHA512:
		return scram.Auth{User: s.Username, Pass: password.Reveal()}.AsSha512Mechanism(), nil
	}
	return nil, catalog.Invalidf(catalog.CodeConfigValue, source.File+": kafka.sasl.mechanism", "write PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", "%w", errors.New("there is no SASL mechanism "+string(s.Mechanism)))
}
