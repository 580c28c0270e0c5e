package hub_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// menuTools has one tool, and in the menu large as many as it is told.
type menuTools struct{ large atomic.Int32 }

func (s *menuTools) Tools(ctx context.Context) ([]tool.Info, error) {
	infos := []tool.Info{{Ref: tool.Ref{Name: "one"}}}
	if tool.MenuOf(ctx) == "large" {
		for range s.large.Load() {
			infos = append(infos, tool.Info{Ref: tool.Ref{Name: "more"}})
		}
	}
	return infos, nil
}

func (s *menuTools) Call(context.Context, tool.Call) (tool.Result, error) {
	return textResult("hi"), nil
}

func menuOptions(t *testing.T, source tool.Source) hub.Options {
	opts := options(t, source)
	opts.Menus, opts.HubMenu = []string{"small", "middle", "large"}, "large"
	return opts
}

// listed counts the tools that a client is shown.
func (c *client) listed(meta string) int {
	c.t.Helper()
	params := `{}`
	if c.modern {
		params = `{"_meta":{` + c.modernMeta() + meta + `}}`
	}
	m := answer(c.t, c.post(context.Background(), `{"jsonrpc":"2.0","id":5,"method":"tools/list","params":`+params+`}`))
	var result struct{ Tools []json.RawMessage }
	if m.Error != nil || json.Unmarshal(m.Result, &result) != nil {
		c.t.Fatalf("%v %s", m.Error, m.Result)
	}
	return len(result.Tools)
}

func TestClientsChooseTheirMenu(t *testing.T) {
	t.Parallel()
	source := new(menuTools)
	source.large.Store(4)
	_, url := serve(t, menuOptions(t, source))
	for query, want := range map[string]int{"": 1, "?menu=small": 1, "?menu=large": 5} {
		modern := &client{t: t, url: url + "/mcp" + query, modern: true}
		legacy := &client{t: t, url: url + "/mcp" + query}
		legacy.initialize(wire.NewestLegacy)
		legacy.url = url + "/mcp?menu=middle" // the menu of a session is fixed
		if m, l := modern.listed(""), legacy.listed(""); m != want || l != want {
			t.Errorf("%q: %d tools in the modern era, %d in a session, want %d", query, m, l, want)
		}
	}
}

func TestUnknownMenuIsRefused(t *testing.T) {
	t.Parallel()
	_, url := serve(t, menuOptions(t, new(menuTools)))
	for _, c := range []*client{{t: t, url: url + "/mcp?menu=huge", modern: true}, {t: t, url: url + "/mcp?menu=huge"}} {
		response := c.post(t.Context(), c.call("1", "one", ""))
		if m := answer(t, response); response.StatusCode != http.StatusBadRequest || m.Error == nil ||
			!strings.Contains(m.Error.Message, `unknown menu "huge": use small, middle or large`) {
			t.Errorf("%d %v", response.StatusCode, m.Error)
		}
	}
}

// TestAnotherHubGetsItsMenu checks that a client that is a hub itself, which its name
// tells, gets the larger list.
func TestAnotherHubGetsItsMenu(t *testing.T) {
	t.Parallel()
	source := new(menuTools)
	source.large.Store(4)
	_, url := serve(t, menuOptions(t, source))
	modern := &client{t: t, url: url + "/mcp", modern: true}
	if n := modern.listed(`,"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}`); n != 5 {
		t.Errorf("%d tools in the modern era", n)
	}
	legacy := &client{t: t, url: url + "/mcp"}
	response := legacy.post(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	legacy.session = response.Header.Get(wire.HeaderSession)
	response.Body.Close()
	if n := legacy.listed(""); n != 5 {
		t.Errorf("%d tools in a session", n)
	}
}

func TestOnlyTheMenuThatChangedIsAnnounced(t *testing.T) {
	t.Parallel()
	source, told := new(menuTools), new(changes)
	opts := menuOptions(t, source)
	opts.Changes = told.watch
	_, url := serve(t, opts)
	small := &client{t: t, url: url + "/mcp", modern: true}
	large := &client{t: t, url: url + "/mcp?menu=large", modern: true}
	const filter = `{"toolsListChanged":true,"resourceSubscriptions":["test://a"]}`
	fromSmall, fromLarge := events(t, small.post(t.Context(), small.listen("1", filter))), events(t, large.post(t.Context(), large.listen("2", filter)))
	next(t, fromSmall)
	next(t, fromLarge)
	source.large.Store(2)
	told.tell(wire.NoteToolsChanged, nil)
	if m := next(t, fromLarge); m.Method != wire.NoteToolsChanged {
		t.Errorf("the large menu: %s", m.Method)
	}
	told.tell(wire.NoteResourceUpdated, json.RawMessage(`{"uri":"test://a"}`))
	if m := next(t, fromSmall); m.Method != wire.NoteResourceUpdated {
		t.Errorf("the small menu did not change, but its client got %s", m.Method)
	}
}

// TestClientsAreNoted checks that clients of both eras are noted once, by name and version.
func TestClientsAreNoted(t *testing.T) {
	t.Parallel()
	h, url := serve(t, options(t, new(menuTools)))
	old := &client{t: t, url: url + "/mcp"}
	for _, version := range []string{"1", "1", "2"} {
		answer(t, old.post(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"editor","version":"`+version+`"}}}`))
	}
	modern := &client{t: t, url: url + "/mcp", modern: true}
	modern.listed(`,"` + wire.MetaClientInfo + `":{"name":"agent","version":"3"}`)
	seen := map[string]bool{}
	for _, c := range h.Clients() {
		seen[c.Name+" "+c.Version] = !c.Seen.IsZero()
	}
	if len(seen) != 3 || !seen["editor 1"] || !seen["editor 2"] || !seen["agent 3"] {
		t.Errorf("clients %v", seen)
	}
}
