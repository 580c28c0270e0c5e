package server

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/config"
)

// noJSONBody are routes that take no JSON of ours, with the reason.
var noJSONBody = map[string]string{
	"POST /cas":                             "takes any bytes",
	"POST /api/v1/logout":                   "reads no body",
	"POST /api/v1/upstreams/{name}/restore": "reads no body",
	"POST /api/v1/upstreams/{name}/retry":   "reads no body",
}

var placeholder = regexp.MustCompile(`\{[^}]*\}`)

// A misspelt field of a request to our own API is refused by its name. What the MCP
// standard defines, at /mcp, is another matter: there it is ignored.
func TestUnknownFieldsAreRefused(t *testing.T) {
	t.Parallel()
	url, srv := start(t, config.Sources{})
	walked := 0
	for _, route := range srv.routes() {
		method, path, ok := strings.Cut(route.Pattern, " ")
		if !ok || method != http.MethodPost && method != http.MethodPut && method != http.MethodPatch || strings.HasPrefix(path, "/mcp") {
			continue
		}
		if why := noJSONBody[route.Pattern]; why != "" {
			continue
		}
		walked++
		path = placeholder.ReplaceAllString(path, "some")
		refused := false
		var last string
		for _, body := range []string{`{"no_such_field":null}`, `[{"no_such_field":null}]`} {
			status, text := requestAs(t, "", method, url+path, body)
			refused = refused || status == http.StatusBadRequest && strings.Contains(text, "no_such_field")
			last += " " + text
		}
		if !refused {
			t.Errorf("%s takes a field that is none:%s", route.Pattern, last)
		}
	}
	if walked < 10 {
		t.Errorf("only %d routes were looked at", walked)
	}
	if status, text := requestAs(t, "", http.MethodPost, url+"/api/v1/chat", `{"client_id":"c","user_id":"u","mesage":"hi"}`); status != http.StatusBadRequest || !strings.Contains(text, `did you mean \"message\"?`) {
		t.Errorf("%d %s", status, text)
	}
}
