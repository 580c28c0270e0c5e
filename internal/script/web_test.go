package script

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	webmodule "github.com/luanette/luanette/internal/module/http"
)

// newWeb starts a web server for a story and returns its address.
func newWeb(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", echo)
	mux.HandleFunc("/bytes", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte{0, 255, 128}) })
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 5000)) })
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.Handle("/redirect", http.RedirectHandler("/bytes", http.StatusFound))
	mux.Handle("/away", http.RedirectHandler("http://169.254.169.254/latest", http.StatusFound))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]string{
		"method": r.Method, "query": r.URL.RawQuery, "name": r.Header.Get("X-Name"),
		"agent": r.UserAgent(), "type": r.Header.Get("Content-Type"), "body": string(body),
	})
}

// webClient may ask that server and nobody else, for at most 4 KB.
func webClient(t *testing.T, server string) *http.Client {
	t.Helper()
	client, err := webmodule.NewClient(webmodule.ClientOptions{Hosts: []string{strings.TrimPrefix(server, "http://")}, Limit: 4096})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}
