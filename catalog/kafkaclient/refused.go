package kafkaclient

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/lakeweir/lakeweir/catalog"
)

// Refused returns what it means that the brokers do not let a client in, with the code
// kafka.denied, or nil when err is of another kind and waiting may help.
func Refused(source *catalog.Source, err error) *catalog.Error {
	if err == nil {
		return nil
	}
	denied := func(hint, what string, cause error) *catalog.Error {
		e := catalog.Errorf(catalog.Denied, catalog.CodeKafkaDenied, hint, "source %s: %s: %w", source.Name, what, cause)
		e.At = source.File
		return e
	}
	if cause := saslError(err); cause != nil {
		return denied("check kafka.sasl: mechanism, username and password", "the brokers refuse the client", cause)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return denied("name the authority of the brokers' certificates under kafka.tls.ca_file", "the brokers' certificate is not trusted", err)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return denied("name the brokers' port for TLS under kafka.brokers, or take kafka.tls away", "what answers does not speak TLS", err)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" && strings.Contains(op.Error(), "certificate") {
		return denied("name a certificate that the brokers trust under kafka.tls.cert_file and key_file", "the brokers do not take the client's certificate", err)
	}
	return nil
}

// saslError is the brokers' answer to a client that does not prove who it is; nil for
// anything else. What they add to it may repeat a name or worse, and is left out.
func saslError(err error) error {
	for _, e := range []*kerr.Error{kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState} {
		if errors.Is(err, e) || strings.Contains(err.Error(), e.Message) {
			return e
		}
	}
	return nil
}
