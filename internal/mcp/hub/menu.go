package hub

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

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

// meetClient notes the client of a session when it initializes, and sets its menu, before
// anything else uses them.
func (s *session) meetClient(m wire.Message) {
	if m.Method != wire.MethodInitialize {
		return
	}
	info, _ := rawjson.Get(m.Params, "clientInfo")
	s.ep.hub.clients.add(info, time.Now())
	s.agent = agentOf(info)
	if s.menu == "" {
		s.menu = s.ep.menuOfClient(info)
	}
}

// meetClient notes the client of a request of the modern era, and sets its menu; asked is
// the one in the URL. Calls are not looked at: they are many, and a client lists first.
func (req *request) meetClient(asked string) {
	req.menu = asked
	if req.method == wire.MethodToolsCall {
		return
	}
	info, _ := rawjson.Get(req.meta, wire.MetaClientInfo)
	req.ep.hub.clients.add(info, time.Now())
	if asked == "" {
		req.menu = req.ep.menuOfClient(info)
	}
}
