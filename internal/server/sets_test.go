package server

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// startSets is a server with two servers, a set of one tool of each kind, and a key and a role
// bound to it.
func startSets(t *testing.T) (file, url string, srv *Server) {
	t.Helper()
	file = configtest.WriteFile(t, withPeople+fmt.Sprintf(`
[roles.author]
scopes = ["chat", "mcp", "read"]
set = "reads"
[upstreams.crm]
url = %q
[upstreams.web]
url = %q
[sets.reads]
tools = ["crm.get_*"]
instructions = "Only look."
[sets.listed]
tools = ["crm.get_*", "job_list"]
menu = "direct"
[sets.acme]
tools = ["*"]
org = "acme"
[keys.bound]
env = "BOUND"
scopes = ["mcp"]
set = "reads"
[keys.some]
env = "SOME"
scopes = ["mcp"]
`, serveTools(t, "crm", &recordingTools{}), serveTools(t, "web", &recordingTools{})))
	url, srv = start(t, config.Sources{File: file, Env: config.Environment{"BOUND": "bound-token", "SOME": "some-token"}})
	srv.upstreams.AwaitAttempts(t.Context(), clocktest.Timeout)
	srv.catalog.Refresh(t.Context())
	return file, url, srv
}

// TestSetsNarrowEverything checks that only what is in a set is listed, found, called and read
// within it.
func TestSetsNarrowEverything(t *testing.T) {
	t.Parallel()
	_, url, srv := startSets(t)
	some, ann := keyClient{t, url, "some-token"}, newPerson(t, url, srv, "ann").key("laptop", "mcp")
	for path, want := range map[string]string{
		"/mcp/sets/reads":             `"name":"search_tools"`,
		"/mcp/sets/reads?menu=direct": `"name":"crm__get_customer"`,
		"/mcp/sets/listed":            `"name":"crm__get_customer"`,
	} {
		_, text := some.rpc(path, "tools/list", "")
		isDirect := path != "/mcp/sets/reads"
		if !strings.Contains(text, want) || strings.Contains(text, "crm__post") || strings.Contains(text, "web__") || strings.Contains(text, `"call_tool"`) == isDirect {
			t.Errorf("%s lists %s", path, text)
		}
	}
	if _, text := some.rpc("/mcp/sets/listed", "tools/list", ""); !strings.Contains(text, `"job_list"`) {
		t.Errorf("a tool of ours that the set names is not listed: %s", text)
	}
	for _, within := range []struct{ key, path string }{
		{"some-token", "/mcp/sets/reads"}, {"bound-token", "/mcp"}, {"bound-token", "/mcp/sets/listed"}, {ann, "/mcp"}, {ann, "/mcp/sets/listed"},
	} {
		c := keyClient{t, url, within.key}
		for params, want := range map[string]string{
			`"name":"call_tool","arguments":{"name":"crm.get_customer"}`:                                                               secretCard,
			`"name":"call_tool","arguments":{"name":"crm.post"}`:                                                                       "no tool",
			`"name":"call_tool","arguments":{"name":"job_list"}`:                                                                       "no tool",
			`"name":"web__get_customer","arguments":{}`:                                                                                "Unknown tool",
			`"name":"search_tools","arguments":{"query":"post"}`:                                                                       "",
			`"name":"get_tool_definitions","arguments":{"names":["web.post"]}`:                                                         `no tool`,
			`"name":"execute_code","arguments":{"code":"return String(await mcp.has('web')) + (await mcp.crm.get_customer({})).card"}`: "false" + secretCard,
		} {
			if _, text := c.rpc(within.path, "tools/call", params); !strings.Contains(text, want) || want == "" && strings.Contains(text, "crm.post") {
				t.Errorf("%s at %s: %s: %.600s", within.key, within.path, params, text)
			}
		}
		if _, text := c.rpc(within.path, "resources/read", `"uri":"lua://tools/web"`); !strings.Contains(text, `no namespace`) {
			t.Errorf("%s at %s reads %.600s", within.key, within.path, text)
		}
		if _, text := c.rpc(within.path, "resources/read", `"uri":"lua://sets"`); strings.Contains(text, "acme") || strings.Contains(text, `post`) {
			t.Errorf("%s at %s reads %.600s", within.key, within.path, text)
		}
	}
	for path, want := range map[string]int{"/mcp/web": http.StatusNotFound, "/mcp/crm": http.StatusOK} {
		if status, text := (keyClient{t, url, "bound-token"}).rpc(path, "tools/list", ""); status != want || strings.Contains(text, `"post"`) || strings.Contains(text, "crm, web") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	for _, path := range []string{"/mcp/sets/acme", "/mcp/sets/none"} {
		if status, text := some.rpc(path, "tools/list", ""); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	for path, want := range map[string]string{
		"/mcp": `"instructions":"Luanette`, "/mcp/sets/reads": `"Only look.\n\nLuanette`, "/mcp/sets/reads?menu=direct": `"instructions":"Only look."`,
	} {
		if _, text := some.rpc(path, "server/discover", ""); !strings.Contains(text, want) {
			t.Errorf("the instructions of %s are %s", path, text)
		}
	}
	if _, text := some.rpc("/mcp?menu=direct", "server/discover", ""); strings.Contains(text, "instructions") {
		t.Errorf("who is not shown our tools is told to use them: %s", text)
	}
}

// TestPromptsAndResourcesOfSets checks which of them are in a set.
func TestPromptsAndResourcesOfSets(t *testing.T) {
	t.Parallel()
	file := configtest.WriteFile(t, `
[sets.all]
tools = ["notes.*"]
prompts = ["notes.find*"]
resources = ["notes.note://public/*"]
[sets.tools]
tools = ["notes.*"]
[sets.resources]
tools = ["other.x"]
resources = ["notes.*"]
`)
	_, srv := start(t, config.Sources{File: file, Env: config.Environment{}})
	prompt, resource := tool.GetsPrompt.Ref, tool.ReadsResource.Ref
	for ref, want := range map[tool.Ref]string{
		{Space: "notes", Name: "add"}:         "all tools",
		prompt("notes", "find_all"):           "all",
		prompt("notes", "delete"):             "",
		resource("notes", "note://public/1"):  "all resources",
		resource("notes", "note://private/1"): "resources",
		resource("notes", "ui://notes/page"):  "all resources tools",
		resource("other", "ui://page"):        "resources",
		resource("third", "ui://page"):        "",
		{Space: "notes"}:                      "all resources tools",
		{Space: "other"}:                      "resources",
		{Space: "third"}:                      "",
		{Name: "call_tool"}:                   "all resources tools",
		{Name: "job_list"}:                    "",
	} {
		var in []string
		for _, set := range []string{"all", "none", "resources", "tools"} {
			if srv.inSet(principal.Local().InSet(set), ref) {
				in = append(in, set)
			}
		}
		if got := strings.Join(in, " "); got != want {
			t.Errorf("%s is in %q, want %q", ref, got, want)
		}
	}
}

// TestSetThatIsDeleted checks that nothing is in a set that does not exist any more.
func TestSetThatIsDeleted(t *testing.T) {
	t.Parallel()
	file, url, srv := startSets(t)
	clients := []keyClient{{t, url, "bound-token"}, {t, url, newPerson(t, url, srv, "ann").key("laptop", "mcp")}}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer("[sets.reads]", "[sets.others]", `set = "reads"`, `set = "others"`).Replace(string(text))
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := srv.Reload(t.Context()); err != nil { // keys are read at the start
		t.Fatal(err)
	}
	for _, bound := range clients {
		if _, text := bound.rpc("/mcp", "tools/list", ""); !strings.Contains(text, `"tools":[]`) {
			t.Errorf("%s lists %s", bound.token, text)
		}
		for _, path := range []string{"/mcp/sets/reads", "/mcp/sets/listed", "/mcp/crm"} {
			if status, text := bound.rpc(path, "tools/list", ""); status != http.StatusNotFound {
				t.Errorf("%s at %s: %d %s", bound.token, path, status, text)
			}
		}
		if _, text := bound.rpc("/mcp", "tools/call", `"name":"call_tool","arguments":{"name":"crm.get_customer"}`); strings.Contains(text, secretCard) {
			t.Errorf("%s calls %s", bound.token, text)
		}
	}
}
