package kafkaclient

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ca is an authority that issues certificates.
type ca struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its certificate
}

func authority(t *testing.T, dir, name string) *ca {
	t.Helper()
	key := newKey(t)
	template := templateOf(name)
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	out := &ca{cert: cert, key: key, file: filepath.Join(dir, name+".pem")}
	writePEM(t, out.file, "CERTIFICATE", der)
	return out
}

// issue makes a certificate for a name, of this machine.
func (c *ca) issue(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key := newKey(t)
	template := templateOf(name)
	template.KeyUsage, template.IPAddresses = x509.KeyUsageDigitalSignature, []net.IP{net.IPv4(127, 0, 0, 1)}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, c.cert, &key.PublicKey, c.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// write is issue into files.
func (c *ca) write(t *testing.T, dir, name string) (certFile, keyFile string) {
	t.Helper()
	pair := c.issue(t, name)
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	stem := filepath.Join(dir, c.cert.Subject.CommonName+"-"+name)
	writePEM(t, stem+".pem", "CERTIFICATE", pair.Certificate[0])
	writePEM(t, stem+".key", "PRIVATE KEY", key)
	return stem + ".pem", stem + ".key"
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

func templateOf(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)}
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}
