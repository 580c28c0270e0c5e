package httpserver

import (
	"crypto/tls"
	"net"
	"os"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/httpserver/httpservertest"
)

// TestCertificateIsReadAgain checks that a new certificate replaces the old one, and
// that a broken one does not.
func TestCertificateIsReadAgain(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	certFile, keyFile, _ := httpservertest.WritePair(t, folder, 1)
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
	httpservertest.WritePair(t, folder, 2)
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

// TestConnectionsAreLimited checks that a connection beyond the limit waits until
// another one ends.
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
