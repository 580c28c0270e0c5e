package serverapi

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
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
		api, err := Connect(address, Access{})
		if api.Base != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v, want %q", address, api.Base, err, want)
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
		"no route":     {404, `{"error":"not_found","error_description":"nothing is at /x"}`, fault.NotFound, "status 404", ""},
		"no right":     {403, `{"error":"Forbidden","code":"permission_denied","message":"Invalid API key"}`, fault.Denied, "Invalid API key", KeyHint},
		"chat":         {429, `{"error":"RateLimitError","code":"RATE_LIMIT_EXCEEDED","message":"too many"}`, fault.Unavailable, "too many", ""},
		"chat model":   {413, `{"error":"X","code":"CLAUDE_REQUEST_BODY_TOO_LARGE","message":"too large"}`, fault.Upstream, "too large", ""},
		"a guest":      {401, `{"code":"needs_auth","message":"this is for the owner","hint":"with --data X"}`, fault.NeedsAuth, "the server requires a key: this is for the owner", "with --data X"},
		"no key":       {401, `{"error":"AuthenticationError","code":"AUTHENTICATION_ERROR","message":"Bearer token required"}`, fault.NeedsAuth, "the server requires a key: Bearer token required", KeyHint},
		"wrong key":    {403, `{"error":"AuthorizationError","code":"AUTHORIZATION_ERROR","message":"Invalid API key"}`, fault.NeedsAuth, "Invalid API key", KeyHint},
		"other server": {502, `<html>bad gateway</html>`, fault.Unavailable, "status 502", "check that it is a luanette"},
		"empty":        {500, ``, fault.Upstream, "status 500", "check that it is a luanette"},
	} {
		err := ErrorOf(c.status, []byte(c.body))
		if fault.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) || !strings.Contains(fault.HintOf(err), c.hint) {
			t.Errorf("%s: %s %q, hint %q", name, fault.CodeOf(err), err, fault.HintOf(err))
		}
	}
}
