package server

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
)

// wiki is a server of a person: it answers with whose it is.
type wiki struct{ whose string }

func (wiki) Tools(context.Context) ([]tool.Info, error) {
	return []tool.Info{{Ref: tool.Ref{Name: "find_page"}, Description: "Finds a page of the wiki.", Input: []byte(`{"type":"object"}`)}}, nil
}

func (w wiki) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Output("a page of "+w.whose, nil)
}

// TestServersOfPeopleHaveTheirIDs checks that the model, its scripts and people know the
// servers of two people by the ids that they chose, that each gets their own, and that the
// names stay when URL and token change.
func TestServersOfPeopleHaveTheirIDs(t *testing.T) {
	t.Parallel()
	model := llmtest.Start(t, func(r llmtest.Request) llmtest.Step {
		if r.Last() != "look it up" {
			return llmtest.Step{Echo: true}
		}
		return llmtest.Step{Offer: []string{"my-wiki__find_page"}, Use: []llmtest.Use{
			{Name: "my-wiki__find_page"},
			{Name: "lua_eval", Input: `{"code":"return mcp['my-wiki'].find_page{}"}`},
			{Name: "execute_code", Input: `{"code":"return await mcp['my-wiki'].find_page({})"}`},
			{Name: "search_tools", Input: `{"query":"find a page","namespace":"my-wiki"}`},
			{Name: "get_tool_definitions", Input: `{"names":["my-wiki.find_page"],"format":"lua"}`},
			{Name: "lua_eval", Input: `{"code":"return mcp['my-wiki'].find_pages{}"}`},
			{Name: "lua_eval", Input: `{"code":"return mcp.my-wiki.find_page{}"}`},
			{Name: "execute_code", Input: `{"code":"return await mcp.my-wiki.find_page({})"}`},
		}}
	})
	file := configtest.WriteFile(t, "[chat]\nbase_url = \""+model.URL+"\"\ndebug_events = true\n")
	url, _ := start(t, config.Sources{File: file, Env: config.Environment{"HOME": t.TempDir(), "ANTHROPIC_API_KEY": llmtest.Key}})
	set := func(user, address, token string) {
		path := fmt.Sprintf("%s/api/v1/admin/orgs/default/users/%s/mcp-servers/my-wiki", url, user)
		if answer, text := httpjsontest.Read(t, "PUT", path, fmt.Sprintf(`{"name":"Wiki","url":%q,"authToken":%q}`, address, token)); answer.StatusCode != 200 {
			t.Fatalf("%d %s", answer.StatusCode, text)
		}
	}
	ask := func(user string) string {
		_, text := httpjsontest.Read(t, "POST", url+"/api/v1/chat/stream", fmt.Sprintf(`{"client_id":"t","user_id":%q,"message":"look it up"}`, user))
		return text
	}
	for _, user := range []string{"ann", "bob"} {
		set(user, serveTools(t, "wiki", wiki{user})+"/mcp", "one")
	}
	for _, user := range []string{"ann", "bob"} {
		answer := ask(user)
		if n := strings.Count(answer, "a page of "+user); n < 3 || strings.Contains(answer, "own-") {
			t.Errorf("%d answers: %s", n, answer)
		}
		const written = `mcp[\"my-wiki\"]`
		for _, want := range []string{
			`"tool":"my-wiki.find_page"`, `"result":"my-wiki.find_page()`, written + ".find_page = function(args) end",
			"Available tools: " + written + ".find_page", "Write " + written + ": ",
		} {
			if !strings.Contains(answer, want) {
				t.Errorf("there is no %s in %s", want, answer)
			}
		}
	}
	set("ann", serveTools(t, "wiki", wiki{"ann at home"})+"/mcp", "two")
	if answer := ask("ann"); !strings.Contains(answer, "a page of ann at home") {
		t.Errorf("with another address: %s", answer)
	}
}

// TestServersOfPeopleArePrivate checks that a person's server is in no list of the program, in
// no script of a client and in nobody else's chats, whatever they name.
func TestServersOfPeopleArePrivate(t *testing.T) {
	t.Parallel()
	space := ""
	model := llmtest.Start(t, func(r llmtest.Request) llmtest.Step {
		if r.Last() != "look it up" {
			return llmtest.Step{Echo: true}
		}
		return llmtest.Step{Use: []llmtest.Use{
			{Name: "lua_eval", Input: `{"code":"return mcp['my-wiki'].find_page{}"}`},
			{Name: "lua_eval", Input: fmt.Sprintf(`{"code":"return mcp['%s'].find_page{}"}`, space)},
			{Name: "execute_code", Input: fmt.Sprintf(`{"code":"return await mcp['%s'].find_page({})"}`, space)},
			{Name: "search_tools", Input: `{"query":"find a page"}`},
		}}
	})
	file := configtest.WriteFile(t, "[chat]\nbase_url = \""+model.URL+"\"\ndebug_events = true\n")
	url, srv := start(t, config.Sources{File: file, Env: config.Environment{"HOME": t.TempDir(), "ANTHROPIC_API_KEY": llmtest.Key}})
	servers := func(org, user string) string {
		return fmt.Sprintf("%s/api/v1/admin/orgs/%s/users/%s/mcp-servers", url, org, user)
	}
	ask := func(org, user string) string {
		_, text := httpjsontest.Read(t, "POST", url+"/api/v1/chat/stream", fmt.Sprintf(`{"client_id":"t","org":%q,"user_id":%q,"message":"look it up"}`, org, user))
		return text
	}
	body := fmt.Sprintf(`{"url":%q,"authToken":"one"}`, serveTools(t, "wiki", wiki{"ann"})+"/mcp")
	if answer, text := httpjsontest.Read(t, "PUT", servers("default", "ann")+"/my-wiki", body); answer.StatusCode != 200 {
		t.Fatalf("%d %s", answer.StatusCode, text)
	}
	if answer := ask("default", "ann"); !strings.Contains(answer, "a page of ann") {
		t.Fatalf("in ann's chat: %s", answer)
	}
	for _, name := range srv.upstreams.Manager.Namespaces() {
		if upstreamset.IsPrivate(name) {
			space = name
		}
	}
	// Somebody who knows the namespace makes entries with it, with and without an address.
	for _, id := range []string{space, "my-wiki"} {
		for _, org := range []string{"default", "acme"} {
			httpjsontest.Read(t, "PUT", servers(org, "bob")+"/"+id, `{"enabled":true}`)
		}
	}
	for _, org := range []string{"default", "acme"} {
		if answer := ask(org, "bob"); strings.Contains(answer, "a page of ann") || strings.Contains(answer, "Finds a page") {
			t.Errorf("in bob's chat in %s: %s", org, answer)
		}
		if _, text := httpjsontest.Read(t, "GET", servers(org, "bob")+"?discover=true", ""); strings.Contains(text, "tools_count") {
			t.Errorf("bob in %s finds %s", org, text)
		}
	}
	for _, name := range []string{"my-wiki", space} {
		result, err := srv.catalog.Call(t.Context(), tool.Call{Ref: tool.Ref{Name: "lua_eval"}, Args: []byte(`{"code":"return mcp['` + name + `'].find_page{}"}`)})
		if err == nil && strings.Contains(string(result.Raw), "a page of ann") {
			t.Errorf("in a script as %s: %s", name, result.Raw)
		}
	}
	for _, path := range []string{"/api/v1/upstreams", "/health"} {
		if _, text := httpjsontest.Read(t, "GET", url+path, ""); strings.Contains(text, "wiki") {
			t.Errorf("%s has %s", path, text)
		}
	}
	_, text := httpjsontest.Read(t, "PATCH", servers("default", "ann")+"/my-wiki", `{"url":"https://wiki.example/mcp"}`)
	if !strings.Contains(text, "send authToken again") {
		t.Errorf("another url: %s", text)
	}
}

// TestServersOfOrganisationsAreUpstreams checks that a server of the organisation of people
// without one works in chats, in scripts of clients and in lists, that it does not replace an
// upstream, and that a message with a key of an organisation is of that one.
func TestServersOfOrganisationsAreUpstreams(t *testing.T) {
	t.Parallel()
	model := llmtest.Start(t, func(r llmtest.Request) llmtest.Step {
		if r.Last() != "look it up" {
			return llmtest.Step{Echo: true}
		}
		return llmtest.Step{Use: []llmtest.Use{{Name: "lua_eval", Input: `{"code":"return mcp.wiki.find_page{}"}`}}}
	})
	file := configtest.WriteFile(t, "[chat]\nbase_url = \""+model.URL+"\"\n")
	url, srv := start(t, config.Sources{File: file, Env: config.Environment{"HOME": t.TempDir(), "ANTHROPIC_API_KEY": llmtest.Key}})
	at := url + "/api/v1/admin/orgs/default/mcp-servers"
	body := fmt.Sprintf(`{"url":%q,"authToken":"one"}`, serveTools(t, "wiki", wiki{"all"})+"/mcp")
	if answer, text := httpjsontest.Read(t, "PUT", at+"/wiki", body); answer.StatusCode != 200 {
		t.Fatalf("%d %s", answer.StatusCode, text)
	}
	if _, text := httpjsontest.Read(t, "POST", url+"/api/v1/chat", `{"client_id":"t","user_id":"ann","message":"look it up"}`); !strings.Contains(text, "a page of all") {
		t.Errorf("in a chat: %s", text)
	}
	result, err := srv.catalog.Call(t.Context(), tool.Call{Ref: tool.Ref{Name: "lua_eval"}, Args: []byte(`{"code":"return mcp.wiki.find_page{}"}`)})
	if err != nil || !strings.Contains(string(result.Raw), "a page of all") {
		t.Errorf("in a script: %s, %v", result.Raw, err)
	}
	if _, text := httpjsontest.Read(t, "GET", url+"/api/v1/upstreams", ""); !strings.Contains(text, `"wiki"`) {
		t.Errorf("the list of upstreams: %s", text)
	}
	if _, text := httpjsontest.Read(t, "GET", at+"?discover=true", ""); !strings.Contains(text, `"tools_count":1`) || strings.Contains(text, `"one"`) {
		t.Errorf("the list of servers: %s", text)
	}
	person := url + "/api/v1/admin/orgs/default/users/ann/mcp-servers/wiki"
	if answer, text := httpjsontest.Read(t, "PUT", person, `{"url":"https://wiki.example/mcp"}`); answer.StatusCode != 409 {
		t.Errorf("a server in place of an upstream: %d %s", answer.StatusCode, text)
	}
	if _, text := httpjsontest.Read(t, "PATCH", at+"/wiki", `{"url":"https://wiki.example/mcp"}`); !strings.Contains(text, "send authToken again") {
		t.Errorf("another url: %s", text)
	}
	if answer, text := httpjsontest.Read(t, "DELETE", at+"/wiki", ""); answer.StatusCode != 200 || srv.upstreams.Has("wiki") {
		t.Errorf("removed: %d %s", answer.StatusCode, text)
	}
}
