package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/config"
)

// noJSONBody lists routes that read no JSON, with the reason.
var noJSONBody = map[string]string{
	"POST /cas":                                        "takes any bytes",
	"POST /v1/chat/completions":                        "ignores fields, as clients of OpenAI expect",
	"POST /api/v1/chat/{message}/stop":                 "reads no body",
	"POST /connect/{namespace}":                        "the body is a form",
	"POST /hooks/{hook}":                               "the body is another service's",
	"POST /tools/{name}":                               "the tool's schema checks its arguments",
	"POST /tools/{space}/{name}":                       "the tool's schema checks its arguments",
	"POST /api/v1/logout":                              "reads no body",
	"POST /api/v1/orgs/{org}/upstreams/{name}/disable": "reads no body",
	"POST /api/v1/orgs/{org}/upstreams/{name}/restart": "reads no body",
	"POST /api/v1/orgs/{org}/upstreams/{name}/restore": "reads no body",
	"POST /api/v1/upstreams/{name}/disable":            "reads no body",
	"POST /api/v1/upstreams/{name}/restart":            "reads no body",
	"POST /api/v1/upstreams/{name}/restore":            "reads no body",
	"POST /api/v1/upstreams/{name}/retry":              "reads no body",

	"POST /api/v1/setup/servers/{name}/restore": "reads no body",
	"POST /api/v1/library/{id}/restore":         "reads no body",
}

// TestUnknownFieldsAreNamed checks that our API names unknown fields when it refuses a
// request. The MCP endpoints ignore them, as the protocol requires.
func TestUnknownFieldsAreNamed(t *testing.T) {
	t.Parallel()
	url, srv := start(t, config.Sources{})
	checked := 0
	for _, route := range srv.routes() {
		method, path, ok := strings.Cut(route.Pattern, " ")
		if !ok || method != http.MethodPost && method != http.MethodPut && method != http.MethodPatch || strings.HasPrefix(path, "/mcp") {
			continue
		}
		if noJSONBody[route.Pattern] != "" {
			continue
		}
		checked++
		path = wildcard.ReplaceAllString(path, "some")
		refused := false
		var last string
		for _, body := range []string{`{"no_such_field":null}`, `[{"no_such_field":null}]`} {
			status, text := requestAs(t, "", method, url+path, body)
			refused = refused || status == http.StatusBadRequest && strings.Contains(text, "no_such_field")
			last += " " + text
		}
		if !refused {
			t.Errorf("%s accepts an unknown field:%s", route.Pattern, last)
		}
	}
	if checked < 10 {
		t.Errorf("only %d routes were checked", checked)
	}
	if status, text := requestAs(t, "", http.MethodPost, url+"/api/v1/chat", `{"client_id":"c","user_id":"u","mesage":"hi"}`); status != http.StatusBadRequest || !strings.Contains(text, `did you mean \"message\"?`) {
		t.Errorf("%d %s", status, text)
	}
}
