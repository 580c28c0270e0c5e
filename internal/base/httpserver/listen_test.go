package httpserver

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
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

// lines are the writes of a log.
type lines chan string

func (l lines) Write(p []byte) (int, error) { l <- string(p); return len(p), nil }

// TestFailedHandshakesAreLogged checks that they are in the log's own format.
func TestFailedHandshakesAreLogged(t *testing.T) {
	t.Parallel()
	certFile, keyFile, _ := httpservertest.WritePair(t, t.TempDir(), 1)
	written := make(lines, 1)
	log := slog.New(slog.NewJSONHandler(written, nil))
	listener, err := Listen(t.Context(), Options{Address: "127.0.0.1:0", CertFile: certFile, KeyFile: keyFile, MaxConnections: 1, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	web := New(t.Context(), log, http.NotFoundHandler(), func() bool { return false })
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("not TLS at all\r\n\r\n")); err != nil {
		t.Error(err)
	}
	var line struct{ Level, Msg string }
	if err := json.Unmarshal([]byte(<-written), &line); err != nil || line.Level != "WARN" || !strings.Contains(line.Msg, "TLS handshake error") {
		t.Errorf("logged %+v (%v)", line, err)
	}
	_ = conn.Close() // the server has closed it
	if err := web.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
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
