package kafka

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/catalog"
)

// TestAnotherShapeStopsTheTable where the topic shows it, and before anything is read by
// a type that is not the column's any more.
func TestAnotherShapeStopsTheTable(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("orders", true, 1)
	s.table("other", true, 1)
	s.write(creates("orders", 1, 2)...)
	added := creates("orders", 3, 1)
	added[0].after["fresh"] = "x"
	s.write(added...)
	s.write(creates("other", 1, 1)...)
	r := s.reader()
	require.Empty(t, r.start())
	r.until("the fault", r.faulted("orders"))
	r.until("the other", r.has("other", 1))
	f := r.faults["public.orders"]
	require.Equal(t, catalog.CodeSchemaChanged, f.Err.Code)
	require.Equal(t, catalog.Quarantined, f.State)
	require.Contains(t, f.Err.Message, "offset 2")
	require.Len(t, r.saved["public.orders"].changes, 2)
	r.stop()

	wider := *s.columns["public.other"].Schema
	wider.Columns = append([]catalog.Column(nil), wider.Columns...)
	wider.Columns[1] = column("a", "text")
	s.columns["public.other"] = TableDescription{Schema: &wider}
	r.start()
	r.until("the fault", r.faulted("other"))
	require.Equal(t, catalog.CodeSchemaChanged, r.faults["public.other"].Err.Code)
	require.Equal(t, "column a is text now and was int8", r.faults["public.other"].Err.Message)
	r.stop()
}

// TestTheConnectionMayBeEncrypted, and a certificate that nobody vouches for is refused.
func TestTheConnectionMayBeEncrypted(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	authority, trusted := filepath.Join(t.TempDir(), "ca.pem"), x509.NewCertPool()
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(authority, bundle, 0o600))
	require.True(t, trusted.AppendCertsFromPEM(bundle))
	s := newShopOf(t, []kgo.Opt{kgo.DialTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trusted})},
		kfake.TLS(&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}))
	s.table("orders", true, 1)
	s.write(creates("orders", 1, 2)...)
	s.source.Kafka.TLS = &catalog.KafkaTLS{CAFile: authority}
	r := s.reader()
	require.Empty(t, r.start())
	r.until("all", r.has("orders", 2))
	r.stop()

	s.source.Kafka.TLS = &catalog.KafkaTLS{}
	source := New(s.config())
	_, err = source.Start(t.Context(), nil)
	require.NoError(t, err, "nothing to read")
	require.NoError(t, source.Close(t.Context()))
	r = s.reader()
	err = r.refusal()
	require.Equal(t, catalog.CodeKafkaDenied, catalog.Public(err).Code)

	s.source.Kafka.TLS = &catalog.KafkaTLS{CAFile: "nowhere.pem"}
	require.Equal(t, catalog.CodeConfigValue, catalog.Public(s.reader().refusal()).Code)
}
