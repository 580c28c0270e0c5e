package egress_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/sandbox/certificates"
)

// signed returns the certificate of a remote server, and the authority that signed it.
func signed(t testing.TB, name string) (*tls.Config, *x509.Certificate) {
	t.Helper()
	authority, err := certificates.New("a remote server", []string{name}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Certificate(name, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(authority.PEM())
	root, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{*pair}, MinVersion: tls.VersionTLS12}, root
}

// trusting is the TLS configuration of a runtime with the program's variables.
func trusting(t testing.TB, p *program) *tls.Config {
	t.Helper()
	pool := x509.NewCertPool()
	if file := p.env["SSL_CERT_FILE"]; file != "" {
		text, err := os.ReadFile(file)
		if err != nil || !pool.AppendCertsFromPEM(text) {
			t.Fatalf("%s is no file of certificates: %v", file, err)
		}
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}
