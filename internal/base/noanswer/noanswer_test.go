package noanswer_test

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/base/noanswer"
)

func get(t *testing.T, url string) noanswer.Reason {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"?key=secret", nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	_, err = (&http.Client{Transport: transport}).Do(request)
	if err == nil {
		t.Fatal("there is an answer")
	}
	return noanswer.Of(err)
}

func TestReasons(t *testing.T) {
	t.Parallel()
	if r := get(t, "http://"+netguardtest.ReservedAddress()); !r.NotSent || r.Hint != "" || strings.Contains(r.Err.Error(), "secret") {
		t.Errorf("a closed port: %+v", r)
	}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	if r := get(t, secure.URL); !r.NotSent || r.Hint == "" {
		t.Errorf("an unknown authority: %+v", r)
	}
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			conn.Close()
		}
	}))
	defer silent.Close()
	if r := get(t, silent.URL); r.NotSent || strings.Contains(r.Err.Error(), "secret") {
		t.Errorf("a closed connection: %+v", r)
	}
	if plain := errors.New("other"); !errors.Is(noanswer.Of(plain).Err, plain) {
		t.Error("another error is changed")
	}
}
