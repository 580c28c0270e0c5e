package attacks

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/config"
)

// names answers all DNS lookups of this test binary.
var names = netguardtest.InterceptDNS()

var owner = bearing("owners-token")

// withKey adds the key of the owner to a configuration.
func withKey(text string) (string, config.Environment) {
	return "keys.owner = { env = \"OWNER\", scopes = [\"admin\"] }\n" + text, config.Environment{"OWNER": "owners-token"}
}

// TestAttackDNSRebinding uses a name that passes every check and resolves to a private
// address when it is dialled, in every setting and call that takes an address.
func TestAttackDNSRebinding(t *testing.T) {
	t.Parallel()
	ways := map[string]struct {
		text string // with %[1]s for the name and port
		use  func(h *program, at string) (output string)
		want string // in the output or the log
	}{
		"mcp_connect": {`mcp.allowed_hosts = ["*"]`, func(h *program, at string) string {
			return h.call("mcp_connect", map[string]any{"namespace": "n", "url": "https://" + at + "/mcp", "wait_ms": 0}, owner)
		}, "private network"},
		"legacy events": {`mcp.allowed_hosts = ["*"]`, func(h *program, at string) string {
			return h.call("mcp_connect", map[string]any{"namespace": "n", "url": "https://" + at + "/sse", "transport": "sse", "wait_ms": 0}, owner)
		}, "private network"},
		"a script's tool": {`mcp.allowed_hosts = ["*"]`, func(h *program, at string) string {
			return h.call("lua_eval", map[string]any{"code": fmt.Sprintf(`return tools.mcp_add("n", %q)`, "https://"+at+"/mcp")}, owner)
		}, "private network"},
		"servers of a chat": {"", func(h *program, at string) string {
			h.ask(http.MethodPost, "/api/v1/admin/orgs/o/mcp-servers", `{"id":"x","name":"x","url":"https://`+at+`/mcp","enabled":true}`, owner)
			_, output := h.ask(http.MethodGet, "/api/v1/admin/orgs/o/mcp-servers?discover=true", "", owner)
			return output
		}, "private network"},
		"webhooks": {"chat.base_url = \"http://127.0.0.1:1\"\nchat.provider = \"openai\"\nchat.model = \"m\"", func(h *program, at string) string {
			_, output := h.ask(http.MethodPost, "/api/v1/chat/callback", `{"client_id":"o","user_id":"u","message":"hello","progress_callback_url":"http://`+at+`/hook"}`, owner)
			return output
		}, "private network"},
		"keys of an issuer": {"[issuers.x]\nissuer = \"https://%[1]s\"\njwks = \"https://%[1]s/keys\"\naudience = \"a\"", func(h *program, at string) string {
			part := base64.RawURLEncoding.EncodeToString
			token := part([]byte(`{"alg":"RS256","kid":"1"}`)) + "." + part(fmt.Appendf(nil, `{"iss":"https://%s","aud":"a","exp":%d}`, at, time.Now().Add(time.Hour).Unix())) + "." + part([]byte("signed"))
			_, output := h.ask(http.MethodGet, "/api/v1/me", "", map[string]string{"Authorization": "Bearer " + token})
			return output
		}, "private network"},
		"the http module": {`scripts.http_hosts = ["*.rebind.example"]`, func(h *program, at string) string {
			return h.call("lua_eval", map[string]any{"code": fmt.Sprintf(`return http.get(%q)`, "http://"+at)}, owner)
		}, "not a public address"},
		"the http module, in JavaScript": {`scripts.http_hosts = ["*"]`, func(h *program, at string) string {
			return h.call("execute_code", map[string]any{"code": fmt.Sprintf(`return await http.get(%q)`, "http://"+at)}, owner)
		}, "not a public address"},
	}
	for title, way := range ways {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			inside := netguardtest.NewPrivateServer(t)
			at := inside.At(names.Add(func() netip.Addr { return inside.Addr }))
			text, env := withKey(strings.ReplaceAll(way.text, "%[1]s", at))
			h, _ := serve(t, text, env)
			h.log.note(way.use(h, at))
			h.log.await(t, way.want)
			if seen := inside.Requests(); seen != "" {
				t.Errorf("%s was reached: %s", inside.Addr, seen)
			}
		})
	}
}

// TestAttackDNSRebindingOfLogins uses tool servers whose metadata names authorization
// servers in a private network, for each step of a login.
func TestAttackDNSRebindingOfLogins(t *testing.T) {
	t.Parallel()
	for title, lead := range map[string]func(site *oauthtest.Site, inside string){
		"authorization server": func(site *oauthtest.Site, inside string) {
			site.Protected = func(metadata map[string]any) { metadata["authorization_servers"] = []string{inside} }
		},
		"token endpoint": func(site *oauthtest.Site, inside string) {
			site.Metadata = func(metadata map[string]any) { metadata["token_endpoint"] = inside + "/token" }
		},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			inside := netguardtest.NewPrivateServer(t)
			site := oauthtest.New(t, http.NotFoundHandler())
			site.Secret = "robots-own-secret"
			lead(site, "https://"+inside.At(names.Add(func() netip.Addr { return inside.Addr })))
			text, env := withKey(fmt.Sprintf("[upstreams.robot]\nurl = %q\noauth = { grant = \"credentials\", client_id = \"robot\", client_secret = \"robots-own-secret\" }\n", site.URL()))
			h, _ := serve(t, text, env)
			h.awaitAs(owner, "mcp_status", map[string]any{"namespace": "robot"}, "not on the public internet")
			if seen := inside.Requests(); seen != "" {
				t.Errorf("%s was reached: %s", inside.Addr, seen)
			}
		})
	}
}

// TestAttackDNSMoves uses a name that resolves to a server that scripts may reach, and
// after its first answer to a private address.
func TestAttackDNSMoves(t *testing.T) {
	t.Parallel()
	inside := netguardtest.NewPrivateServer(t)
	var moved atomic.Bool
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		moved.Store(true)
		w.Header().Set("Connection", "close")
		_, _ = w.Write([]byte("public"))
	}))
	defer good.Close()
	name := names.Add(func() netip.Addr {
		if moved.Load() {
			return inside.Addr
		}
		return netip.MustParseAddr("127.0.0.1")
	})
	h, _ := serve(t, fmt.Sprintf(`scripts.http_hosts = [%q, "localhost"]`, name), nil)
	port := good.URL[strings.LastIndex(good.URL, ":"):]
	get := map[string]any{"code": fmt.Sprintf(`return http.get(%q).body`, "http://"+name+port)}
	if text := h.call("lua_eval", get, nil); !strings.Contains(text, "public") {
		t.Fatalf("before it moved: %s", text)
	}
	get["code"] = fmt.Sprintf(`return http.get(%q).body`, "http://"+inside.At(name))
	if text := h.call("lua_eval", get, nil); !strings.Contains(text, "not a public address") || inside.Requests() != "" {
		t.Errorf("after it moved: %s; visited: %s", text, inside.Requests())
	}
}

// TestAttackRedirectInside uses allowed servers that redirect to a private server, by
// address and by name.
func TestAttackRedirectInside(t *testing.T) {
	t.Parallel()
	inside := netguardtest.NewPrivateServer(t)
	name := names.Add(func() netip.Addr { return inside.Addr })
	for _, to := range []string{"http://" + inside.At(name) + "/", "http://" + inside.At(inside.Addr.String()) + "/"} {
		for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
			trap := newRedirect(t, to, status)
			settings, env := withKey(fmt.Sprintf("scripts.http_hosts = [%q, \"127.0.0.1\"]\nchat.base_url = %q\nchat.provider = \"openai\"\nchat.model = \"m\"\nchat.key = \"models-own-key\"\n", name, trap))
			h, _ := serve(t, settings, env)
			for _, code := range []string{`http.get(%q)`, `http.post(%q, "x")`} {
				text := h.call("lua_eval", map[string]any{"code": "return " + fmt.Sprintf(code, trap)}, owner)
				if !strings.Contains(text, "not a public address") && !strings.Contains(text, "may not reach") {
					t.Errorf("%d to %s: %s", status, to, text)
				}
			}
			_, text := h.ask(http.MethodPost, "/api/v1/chat", `{"client_id":"o","user_id":"u","message":"hello"}`, owner)
			if !strings.Contains(text, "redirect") {
				t.Errorf("redirected to %s: %s", to, text)
			}
			h.ask(http.MethodPost, "/api/v1/chat/callback", `{"client_id":"o","user_id":"u","message":"hello","progress_callback_url":"`+trap+`"}`, owner)
			h.log.await(t, "the webhook answered 3")
		}
	}
	if seen := inside.Requests(); seen != "" {
		t.Errorf("%s was reached: %s", inside.Addr, seen)
	}
}
