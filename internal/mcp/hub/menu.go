package hub

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// menuOf returns the list of tools that a client asks for with the URL it uses. Each
// upstream has one list.
func (e *endpoint) menuOf(r *http.Request) string {
	if r.URL.RawQuery == "" || e != e.hub.local {
		return ""
	}
	return r.URL.Query().Get("menu")
}

// menuOfClient returns the menu of a client that did not ask for one: another hub offers
// what is listed to its own clients, so it gets more.
func (e *endpoint) menuOfClient(clientInfo json.RawMessage) string {
	if name, _ := rawjson.GetText(clientInfo, "name"); e != e.hub.local || name != e.hub.opts.Name {
		return ""
	}
	return e.hub.opts.HubMenu
}

// checkMenu refuses an unknown menu.
func (e *endpoint) checkMenu(r *http.Request) error {
	name, known := e.menuOf(r), e.hub.opts.Menus
	if name == "" || slices.Contains(known, name) {
		return nil
	}
	if len(known) == 0 {
		return wire.Errorf(wire.CodeInvalidRequest, "unknown menu %q: this server has one list of tools", name)
	}
	return wire.Errorf(wire.CodeInvalidRequest, "unknown menu %q: use %s or %s", name, strings.Join(known[:len(known)-1], ", "), known[len(known)-1])
}

// chooseMenu sets the menu of a session when its client initializes, which is before
// anything else uses it.
func (s *session) chooseMenu(m wire.Message) {
	if m.Method == wire.MethodInitialize && s.menu == "" {
		info, _ := rawjson.Get(m.Params, "clientInfo")
		s.menu = s.ep.menuOfClient(info)
	}
}

// chooseMenu sets the menu of a request of the modern era; asked is the one in the URL.
func (req *request) chooseMenu(asked string) {
	if req.menu = asked; asked == "" && req.method != wire.MethodToolsCall {
		info, _ := rawjson.Get(req.meta, wire.MetaClientInfo)
		req.menu = req.ep.menuOfClient(info)
	}
}

// menus returns the menus in which a list may have changed: "" is that of clients that
// did not ask for one.
func (e *endpoint) menus(method string) []string {
	if method != wire.NoteToolsChanged || e != e.hub.local {
		return []string{""}
	}
	return append([]string{""}, e.hub.opts.Menus...)
}
