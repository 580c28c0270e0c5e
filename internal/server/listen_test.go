package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/config"
)

// writePair writes a certificate and its key for this machine.
func writePair(t *testing.T, folder string, serial int64) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	wanted := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, wanted, wanted, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	if err := os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(certFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return certFile, keyFile, pool
}

func TestTLS(t *testing.T) {
	t.Parallel()
	certFile, keyFile, pool := writePair(t, t.TempDir(), 1)
	url, _ := start(t, config.Sources{Flags: map[string]string{"tls_cert": certFile, "tls_key": keyFile}, Env: config.Environment{"ENGINE_API_KEY": "sesame"}})
	if !strings.HasPrefix(url, "https://") {
		t.Fatal(url)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	t.Cleanup(client.CloseIdleConnections)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v1/login", strings.NewReader(`{"key":"sesame"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	if answer.StatusCode != 200 || !strings.Contains(answer.Header.Get("Set-Cookie"), "Secure") {
		t.Errorf("%d %s", answer.StatusCode, answer.Header.Get("Set-Cookie"))
	}
	for name, want := range map[string]string{"Strict-Transport-Security": "max-age", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff"} {
		if !strings.Contains(answer.Header.Get(name), want) {
			t.Errorf("%s: %q", name, answer.Header.Get(name))
		}
	}
}

// A new certificate replaces the old one; a broken one does not.
func TestCertificateIsReadAgain(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	certFile, keyFile, _ := writePair(t, folder, 1)
	warned := 0
	pair := &certificate{certFile: certFile, keyFile: keyFile, warn: func(error) { warned++ }}
	first, err := pair.current(nil)
	if err != nil {
		t.Fatal(err)
	}
	again := func() *tls.Certificate {
		pair.checked = time.Time{}
		got, err := pair.current(nil)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if again() != first {
		t.Error("the certificate was read again without a change")
	}
	writePair(t, folder, 2)
	if err := os.Chtimes(certFile, time.Now(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	second := again()
	if second == first {
		t.Error("the new certificate is not used")
	}
	if err := os.WriteFile(certFile, []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again() != second || warned == 0 {
		t.Error("a broken certificate was used, or there was no warning")
	}
}

// A connection beyond the limit waits until another one ends.
func TestConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := limitConnections(inner, 1, time.Minute)
	for range 2 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	first, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn)
	go func() {
		conn, _ := listener.Accept()
		accepted <- conn
	}()
	select {
	case <-accepted:
		t.Error("two connections were accepted")
	default:
	}
	_ = first.Close()
	_ = first.Close() // frees its slot only once
	if second := <-accepted; second == nil {
		t.Error("the second connection was not accepted")
	} else {
		_ = second.Close()
	}
	_ = listener.Close()
	if _, err := listener.Accept(); err == nil {
		t.Error("a closed listener accepts")
	}
}
