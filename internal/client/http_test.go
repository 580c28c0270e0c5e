package client

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
)

func TestServerAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1:8081":                "http://127.0.0.1:8081",
		"http://127.0.0.1:8081/":        "http://127.0.0.1:8081",
		"https://hub.example/mcp":       "https://hub.example",
		"https://hub.example/mcp/notes": "https://hub.example",
		"https://hub.example/tools/":    "https://hub.example/tools",
		"https://hub.example/tools/mcp": "https://hub.example/tools",
		"zmq+tcp://127.0.0.1:5570":      "",
		"http://":                       "",
		"http://a b/":                   "",
	} {
		api, err := connectHTTP(address, Access{})
		if api.base != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v, want %q", address, api.base, err, want)
		}
		if err != nil && (fault.CodeOf(err) != fault.InvalidParams || fault.HintOf(err) == "") {
			t.Errorf("%s: error %v, hint %q", address, err, fault.HintOf(err))
		}
	}
}

// TestResponseErrors checks the error of each form in which our APIs report one.
func TestResponseErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status     int
		body       string
		code       fault.Code
		text, hint string
	}{
		"admin":        {409, `{"error":"Conflict","code":"conflict","message":"it exists","hint":"choose another"}`, fault.Conflict, "it exists", "choose another"},
		"login":        {404, `{"error":{"code":"not_found","message":"no upstream x","hint":"there are: y"}}`, fault.NotFound, "no upstream x", "there are: y"},
		"chat":         {429, `{"error":"RateLimitError","code":"RATE_LIMIT_EXCEEDED","message":"too many"}`, fault.Unavailable, "too many", ""},
		"chat model":   {413, `{"error":"X","code":"CLAUDE_REQUEST_BODY_TOO_LARGE","message":"too large"}`, fault.Upstream, "too large", ""},
		"no key":       {401, `{"error":"AuthenticationError","code":"AUTHENTICATION_ERROR","message":"Bearer token required"}`, fault.NeedsAuth, "the server requires a key: Bearer token required", keyHint},
		"wrong key":    {403, `{"error":"AuthorizationError","code":"AUTHORIZATION_ERROR","message":"Invalid API key"}`, fault.NeedsAuth, "Invalid API key", keyHint},
		"other server": {502, `<html>bad gateway</html>`, fault.Unavailable, "status 502", "check that it is a luanette"},
		"empty":        {500, ``, fault.Upstream, "status 500", "check that it is a luanette"},
	} {
		err := responseError(c.status, []byte(c.body))
		if fault.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) || !strings.Contains(fault.HintOf(err), c.hint) {
			t.Errorf("%s: %s %q, hint %q", name, fault.CodeOf(err), err, fault.HintOf(err))
		}
	}
}

// TestRemoteKeys checks the requests of a client of the keys of a running server.
func TestRemoteKeys(t *testing.T) {
	t.Parallel()
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.Method+" "+r.URL.EscapedPath()+" "+r.Header.Get("Authorization"))
		body := `{"name":"ci","token":"lnt_X"}`
		if r.Method == http.MethodGet {
			body = `{"keys":[` + body + `]}`
		}
		_, _ = w.Write([]byte(body)) // the client checks what it received
	}))
	defer server.Close()
	keys, err := ConnectKeys(server.URL+"/mcp", Access{Key: secret.New("root")})
	if err != nil {
		t.Fatal(err)
	}
	if created, err := keys.Create(t.Context(), httpauth.NewKey{Name: "ci"}); err != nil || created.Token != "lnt_X" {
		t.Errorf("created %+v, %v", created, err)
	}
	if list, err := keys.List(t.Context()); err != nil || len(list) != 1 || list[0].Name != "ci" {
		t.Errorf("list %+v, %v", list, err)
	}
	if revoked, err := keys.Revoke(t.Context(), "a/b"); err != nil || revoked.Name != "ci" {
		t.Errorf("revoked %+v, %v", revoked, err)
	}
	want := "POST /api/v1/keys Bearer root\nGET /api/v1/keys Bearer root\nDELETE /api/v1/keys/a%2Fb Bearer root"
	if got := strings.Join(requests, "\n"); got != want {
		t.Errorf("requests\n%s\nwant\n%s", got, want)
	}
}

func TestRequestToAnUnreachableServer(t *testing.T) {
	t.Parallel()
	_, err := Request(t.Context(), "127.0.0.1:1", Access{}, http.MethodGet, "/api/v1/traces", nil)
	if fault.CodeOf(err) != fault.Unavailable || !strings.HasPrefix(err.Error(), "connect to http://127.0.0.1:1: dial") || fault.HintOf(err) != startHint {
		t.Errorf("error %v, hint %q", err, fault.HintOf(err))
	}
}
