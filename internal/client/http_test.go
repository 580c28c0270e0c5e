package client

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/base/serverapi"
)

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
	if fault.CodeOf(err) != fault.Unavailable || !strings.HasPrefix(err.Error(), "connect to http://127.0.0.1:1: dial") || fault.HintOf(err) != serverapi.StartHint {
		t.Errorf("error %v, hint %q", err, fault.HintOf(err))
	}
}
