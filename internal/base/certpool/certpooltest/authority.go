// Package certpooltest makes a private certificate authority for tests.
package certpooltest

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
)

// New makes an authority that no system knows. file is its certificate as PEM; server is
// a certificate for 127.0.0.1 that it has signed.
func New(t testing.TB) (file string, server tls.Certificate) {
	t.Helper()
	authority := template("private authority")
	authority.IsCA, authority.KeyUsage = true, x509.KeyUsageCertSign
	caKey, leafKey := newKey(t), newKey(t)
	ca := sign(t, authority, authority, caKey, caKey)
	leaf := template("127.0.0.1")
	leaf.IPAddresses, leaf.ExtKeyUsage = []net.IP{net.IPv4(127, 0, 0, 1)}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	signed := sign(t, leaf, authority, leafKey, caKey)
	file = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: leafKey}
}

// WritePair writes a certificate and its key as PEM files.
func WritePair(t testing.TB, pair tls.Certificate) (certFile, keyFile string) {
	t.Helper()
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	certFile, keyFile = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for name, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true,
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, wanted, by *x509.Certificate, key, with *ecdsa.PrivateKey) []byte {
	t.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, wanted, by, key.Public(), with)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
