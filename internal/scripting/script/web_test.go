package script

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/scripting/host"
	webmodule "github.com/luanette/luanette/internal/scripting/module/http"
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
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusFound))
	mux.Handle("/elsewhere", http.RedirectHandler("http://169.254.169.254/latest", http.StatusFound))
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

// webClient may send requests to that server only, of at most 4 KB.
func webClient(t *testing.T, server string) *http.Client {
	t.Helper()
	client, err := webmodule.NewClient(webmodule.ClientOptions{Hosts: []string{strings.TrimPrefix(server, "http://")}, Limit: 4096})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// TestPreviewsOfRequests checks the setting for GET requests: previews send them, or plan
// them like other effects.
func TestPreviewsOfRequests(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method
		io.WriteString(w, "real")
	}))
	t.Cleanup(server.Close)
	for language, source := range map[string]string{
		JavaScript: `const { body } = await http.get("$HTTP"); await http.post("$HTTP", "x"); return body`,
		Lua:        `local body = http.get("$HTTP").body; http.post("$HTTP", "x"); return body`,
	} {
		for _, planned := range []bool{false, true} {
			r := newRunner(t, func(o *Options) { o.HTTP, o.GetWrites = webClient(t, server.URL), planned })
			handler := host.NewRehearsal(nil, nil, nil)
			got, err := r.Run(t.Context(), Request{Source: strings.ReplaceAll(source, "$HTTP", server.URL), Language: language, Handler: handler})
			if err != nil {
				t.Fatal(err)
			}
			result, requests := `"real"`, 1
			if planned {
				result, requests = `""`, 0
			}
			if string(got.Result) != result || len(handler.Plan()) != 2-requests || len(handler.Reads()) != requests || len(asked) != requests {
				t.Errorf("%s, planned %v: %s, plan %v, reads %v, %d requests", language, planned, got.Result, handler.Plan(), handler.Reads(), len(asked))
			}
			for len(asked) > 0 {
				<-asked
			}
		}
	}
}
