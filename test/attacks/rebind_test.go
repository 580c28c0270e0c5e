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

	"github.com/luanette/luanette/internal/access/oauth/oauthtest"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/config"
)

// names are all that this program can look up.
var names = netguardtest.InterceptDNS()

var owner = map[string]string{"Authorization": "Bearer owners-token"}

// withKey is a configuration in which the owner has a key.
func withKey(text string) (string, config.Environment) {
	return "keys.owner = { env = \"OWNER\", scopes = [\"admin\"] }\n" + text, config.Environment{"OWNER": "owners-token"}
}

// TestAttackDNSRebinding has a name that passes every check lead into a private
// network when it is dialled, by every way on which others may have us connect.
func TestAttackDNSRebinding(t *testing.T) {
	t.Parallel()
	ways := map[string]struct {
		text  string // with %[1]s for the name and port
		use   func(h *program, at string) (told string)
		tells string // where it is refused
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
			h.ask(http.MethodPost, "/api/v1/admin/orgs/o/mcp-servers", `{"id":"x","name":"x","url":"http://`+at+`/mcp","enabled":true}`, owner)
			_, told := h.ask(http.MethodGet, "/api/v1/admin/orgs/o/mcp-servers?discover=true", "", owner)
			return told
		}, "private network"},
		"webhooks": {"chat.base_url = \"http://127.0.0.1:1\"\nchat.provider = \"openai\"\nchat.model = \"m\"", func(h *program, at string) string {
			_, told := h.ask(http.MethodPost, "/api/v1/chat/callback", `{"client_id":"o","user_id":"u","message":"hello","progress_callback_url":"http://`+at+`/hook"}`, owner)
			return told
		}, "private network"},
		"keys of an issuer": {"[issuers.x]\nissuer = \"https://%[1]s\"\njwks = \"https://%[1]s/keys\"\naudience = \"a\"", func(h *program, at string) string {
			part := base64.RawURLEncoding.EncodeToString
			token := part([]byte(`{"alg":"RS256","kid":"1"}`)) + "." + part(fmt.Appendf(nil, `{"iss":"https://%s","aud":"a","exp":%d}`, at, time.Now().Add(time.Hour).Unix())) + "." + part([]byte("signed"))
			_, told := h.ask(http.MethodGet, "/api/v1/me", "", map[string]string{"Authorization": "Bearer " + token})
			return told
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
			h.log.await(t, way.tells)
			if seen := inside.Requests(); seen != "" {
				t.Errorf("%s was reached: %s", inside.Addr, seen)
			}
		})
	}
}

// TestAttackDNSRebindingOfLogins has what tool servers say of their authorization
// servers lead into a private network, at each step of a login.
func TestAttackDNSRebindingOfLogins(t *testing.T) {
	t.Parallel()
	for title, lead := range map[string]func(site *oauthtest.Site, inside string){
		"authorization server": func(site *oauthtest.Site, inside string) {
			site.Protected = func(said map[string]any) { said["authorization_servers"] = []string{inside} }
		},
		"token endpoint": func(site *oauthtest.Site, inside string) {
			site.Metadata = func(said map[string]any) { said["token_endpoint"] = inside + "/token" }
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

// TestAttackDNSMoves has a name lead to a server that scripts may reach, until it
// has answered once.
func TestAttackDNSMoves(t *testing.T) {
	t.Parallel()
	inside := netguardtest.NewPrivateServer(t)
	var moved atomic.Bool
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		moved.Store(true)
		w.Header().Set("Connection", "close")
		_, _ = w.Write([]byte("still harmless"))
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
	if text := h.call("lua_eval", get, nil); !strings.Contains(text, "still harmless") {
		t.Fatalf("before it moved: %s", text)
	}
	get["code"] = fmt.Sprintf(`return http.get(%q).body`, "http://"+inside.At(name))
	if text := h.call("lua_eval", get, nil); !strings.Contains(text, "not a public address") || inside.Requests() != "" {
		t.Errorf("after it moved: %s; visited: %s", text, inside.Requests())
	}
}

// TestAttackRedirectInside has servers that may be reached redirect us to where we
// may not go, by an address and by a name.
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
				t.Errorf("the model was at %s: %s", to, text)
			}
			h.ask(http.MethodPost, "/api/v1/chat/callback", `{"client_id":"o","user_id":"u","message":"hello","progress_callback_url":"`+trap+`"}`, owner)
			h.log.await(t, "the callback answered 3")
		}
	}
	if seen := inside.Requests(); seen != "" {
		t.Errorf("%s was reached: %s", inside.Addr, seen)
	}
}
