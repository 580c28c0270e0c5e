package server

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
)

// TestUpstreamThroughAProxy checks that upstreams of the configuration are reached through the
// proxy of the environment, and those that NO_PROXY names are not.
func TestUpstreamThroughAProxy(t *testing.T) {
	t.Parallel()
	direct := serveTools(t, "direct", echoTool{})
	behind, err := url.Parse(serveTools(t, "far", echoTool{}))
	if err != nil {
		t.Fatal(err)
	}
	proxy := netguardtest.NewProxy(t, behind.Host)
	_, srv := start(t, config.Sources{
		File: configtest.WriteFile(t, "[upstreams.far]\nurl = \"http://far.example"+behind.Path+"\"\n[upstreams.direct]\nurl = \""+direct+"\"\n"),
		Env:  config.Environment{"HTTP_PROXY": proxy.URL},
	})
	for _, name := range []string{"far", "direct"} {
		srv.upstreams.Await(t.Context(), name)
		if status, _ := srv.upstreams.Manager.Status(name); status.State != "connected" {
			t.Errorf("%s: %+v", name, status)
		}
	}
	asked := proxy.Asked()
	if len(asked) == 0 || slices.ContainsFunc(asked, func(request string) bool { return !strings.HasSuffix(request, " far.example") }) {
		t.Errorf("the proxy was asked %q", asked)
	}
}

// TestReferencesAreNotSent checks that a client who adds an upstream cannot let a header refer
// to a secret: it would be sent as it stands.
func TestReferencesAreNotSent(t *testing.T) {
	t.Parallel()
	url, _ := start(t, config.Sources{Env: config.Environment{"TOKEN": "of the server"}})
	answer, text := httpjsontest.Read(t, http.MethodPost, url+"/tools/mcp_connect", `{"namespace":"mine","url":"http://127.0.0.1:1/mcp","headers":{"Authorization":"Bearer ${env:TOKEN}"},"wait_ms":0}`)
	if answer.StatusCode != http.StatusBadRequest || !strings.Contains(text, "refers to a secret") {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
}
