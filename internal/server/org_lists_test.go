package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/tool"
)

// tickets is an upstream with one tool, which takes one argument of its own. The argument is
// repeated in a header of its own.
type tickets struct{ name string }

func (d tickets) Tools(context.Context) ([]tool.Info, error) {
	return []tool.Info{{
		Ref: tool.Ref{Name: "ask"}, Description: "Asks the tickets of " + d.name + ".",
		Input: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"to_%s":{"type":"string","x-mcp-header":"%s"}},"required":["to_%s"],"additionalProperties":false}`, d.name, d.name, d.name)),
	}}, nil
}

func (d tickets) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	return tool.Output("the tickets of "+d.name+" got "+string(call.Args), nil)
}

// startTickets is a server in which the server itself and two organisations have an upstream
// tickets each, and the tool of acme's is a favourite and pinned.
func startTickets(t *testing.T) (clients map[string]keyClient, srv *Server) {
	t.Helper()
	var file strings.Builder
	env := config.Environment{"ROOT": "root-token"}
	file.WriteString("[mcp]\nmenu = \"code\"\npinned = [\"tickets@acme.ask\"]\n[keys.root]\nenv = \"ROOT\"\nscopes = [\"admin\"]\n")
	for name, table := range map[string]string{"server": "upstreams", "acme": "orgs.acme.upstreams", "beta": "orgs.beta.upstreams"} {
		fmt.Fprintf(&file, "[%s.tickets]\nurl = %q\n", table, serveTools(t, name, tickets{name}))
		if name != "acme" {
			file.WriteString("expose = \"all\"\n")
		}
		fmt.Fprintf(&file, "[keys.%s]\nenv = %q\nscopes = [\"mcp\", \"chat\"]\n", name, strings.ToUpper(name))
		if name != "server" {
			fmt.Fprintf(&file, "org = %q\n", name)
		}
		env[strings.ToUpper(name)] = name + "-token"
	}
	url, srv := start(t, config.Sources{File: configtest.WriteFile(t, file.String()), Env: env})
	srv.upstreams.AwaitAttempts(t.Context(), clocktest.Timeout)
	srv.catalog.Refresh(t.Context())
	clients = map[string]keyClient{}
	for _, name := range []string{"server", "acme", "beta", "root"} {
		clients[name] = keyClient{t, url, name + "-token"}
	}
	return clients, srv
}

// TestDefinitionsOfOrganisations checks that a tool which several organisations have by one
// name is listed, described, checked and called as the caller's organisation has it.
func TestDefinitionsOfOrganisations(t *testing.T) {
	t.Parallel()
	clients, _ := startTickets(t)
	names := []string{"server", "acme", "beta"}
	for _, name := range names {
		c := clients[name]
		only := func(what, text string) {
			t.Helper()
			for _, other := range names {
				if strings.Contains(text, "to_"+other) != (other == name) {
					t.Errorf("%s, %s: %s", name, what, text)
				}
			}
			if strings.Contains(text, "@") {
				t.Errorf("%s, %s names an organisation: %s", name, what, text)
			}
		}
		_, text := c.rpc("/mcp", "tools/list", "")
		only("tools/list", text)
		if !strings.Contains(text, `"tickets__ask"`) {
			t.Errorf("%s: %s", name, text)
		}
		_, text = c.rpc("/mcp/tickets", "tools/list", "")
		only("the list of /mcp/tickets", text)
		only("definitions", c.call("get_tool_definitions", `{"names":["tickets.ask"]}`))
		only("search", c.call("search_tools", `{"query":"ask the tickets"}`))
		only("wrong arguments", c.call("call_tool", `{"name":"tickets.ask","arguments":{"to":1}}`))
		if text = c.call("lua_eval", `{"code":"return mcp.tickets.ask{to_`+name+`='x'}"}`); !strings.Contains(text, "the tickets of "+name) {
			t.Errorf("%s in a script: %s", name, text)
		}
		for _, path := range []string{"/mcp", "/mcp/tickets"} {
			tool := map[string]string{"/mcp": "tickets__ask", "/mcp/tickets": "ask"}[path]
			_, text = c.rpc(path, "tools/call", `"name":"`+tool+`","arguments":{"to_`+name+`":"x"}`, "Mcp-Param-"+name, "x")
			if only(path, text); !strings.Contains(text, "the tickets of "+name) {
				t.Errorf("%s at %s: %s", name, path, text)
			}
			status, text := c.rpc(path, "tools/call", `"name":"`+tool+`","arguments":{"to_`+name+`":"x"}`)
			if status != 400 || !strings.Contains(text, "Mcp-Param-"+name) {
				t.Errorf("%s at %s without its header: %d %s", name, path, status, text)
			}
		}
	}
}
