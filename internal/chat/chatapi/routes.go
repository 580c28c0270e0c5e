package chatapi

import (
	"net/http"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/core/principal"
)

// route is one thing that can be asked of the door. The OpenAPI document is made
// of the same table.
type route struct {
	method, path string
	scope        principal.Scope
	says         string // for people
	takes, gives any    // zero values of the bodies' types; nil: none
	status       int    // of success; zero means 200
	does         func(d *Handler, w http.ResponseWriter, r *http.Request) error
}

// routes is every path of this door, on one page.
func routes() []route {
	const (
		people = "/api/v1/orgs/{org}/users/{user}"
		admin  = "/api/v1/admin/orgs/{org}"
		person = admin + "/users/{user}"
	)
	return []route{
		{"POST", "/api/v1/chat", principal.Chat, "Say something and wait for the answer", Request{}, Response{}, 0, (*Handler).answer},
		{"POST", "/api/v1/chat/stream", principal.Chat, "Say something and see the answer grow, as server-sent events", Request{}, StreamEvent{}, 0, (*Handler).stream},
		{"POST", "/api/v1/chat/callback", principal.Chat, "Say something and be told the answer at progress_callback_url", Request{}, Accepted{}, 202, (*Handler).callback},

		{"GET", people + "/preferences", principal.Chat, "What a person prefers", nil, Preferences{}, 0, (*Handler).preferences},
		{"PUT", people + "/preferences", principal.Chat, "Change what a person prefers", Preferences{}, Preferences{}, 0, (*Handler).prefer},
		{"GET", people + "/history", principal.Chat, "What was said, the oldest first (limit, offset)", nil, History{}, 0, (*Handler).history},
		{"DELETE", people + "/history", principal.Chat, "Forget what was said", nil, Removed{}, 0, (*Handler).forget},

		{"GET", admin + "/mcp-servers", principal.Org, "The organisation's servers (discover=true connects to each)", nil, Servers{}, 0, (*Handler).servers},
		{"PUT", admin + "/mcp-servers", principal.Org, "Replace the organisation's servers", []conversation.Server{}, Servers{}, 0, (*Handler).replaceServers},
		{"POST", admin + "/mcp-servers", principal.Org, "Add one server, or replace it", conversation.Server{}, Servers{}, 0, (*Handler).putServer},
		{"DELETE", admin + "/mcp-servers/{server}", principal.Org, "Remove one server", nil, Removed{}, 0, (*Handler).removeServer},
		{"GET", admin + "/config", principal.Org, "The organisation's settings", nil, conversation.Settings{}, 0, (*Handler).settings},
		{"PUT", admin + "/config", principal.Org, "Change the organisation's settings", conversation.Settings{}, conversation.Settings{}, 0, (*Handler).configure},
		{"DELETE", admin + "/config", principal.Org, "Bring the defaults back", nil, conversation.Settings{}, 0, (*Handler).unconfigure},
		{"GET", admin + "/prompt-overrides", principal.Org, "What the organisation says instead of the default prompts", nil, Overrides{}, 0, (*Handler).prompts},
		{"PUT", admin + "/prompt-overrides", principal.Org, "Change some slots; null brings the default back", map[agent.Slot]*string{}, Overrides{}, 0, (*Handler).prompt},
		{"DELETE", admin + "/prompt-overrides", principal.Org, "Bring all defaults back", nil, Overrides{}, 0, (*Handler).unprompt},
		{"GET", admin + "/modes", principal.Org, "The names of the organisation's modes", nil, Modes{}, 0, (*Handler).modes},
		{"GET", admin + "/modes/{mode}", principal.Org, "One mode", nil, conversation.Mode{}, 0, (*Handler).mode},
		{"PUT", admin + "/modes/{mode}", principal.Org, "Define a mode, or replace it", conversation.Mode{}, conversation.Mode{}, 0, (*Handler).setMode},
		{"DELETE", admin + "/modes/{mode}", principal.Org, "Remove a mode", nil, Removed{}, 0, (*Handler).removeMode},
		{"GET", admin + "/usage", principal.Org, "What the organisation's people have used (days)", nil, Usage{}, 0, (*Handler).usage},

		{"GET", person + "/mcp-servers", principal.Org, "A person's servers (discover=true connects to each)", nil, Servers{}, 0, (*Handler).servers},
		{"PUT", person + "/mcp-servers", principal.Org, "Replace a person's servers", []conversation.Server{}, Servers{}, 0, (*Handler).replaceServers},
		{"POST", person + "/mcp-servers", principal.Org, "Add one server of a person, or replace it", conversation.Server{}, Servers{}, 0, (*Handler).putServer},
		{"DELETE", person + "/mcp-servers/{server}", principal.Org, "Remove one server of a person", nil, Removed{}, 0, (*Handler).removeServer},
		{"GET", person + "/prompt-overrides", principal.Org, "What a person wants said instead of the default prompts", nil, Overrides{}, 0, (*Handler).prompts},
		{"PUT", person + "/prompt-overrides", principal.Org, "Change some slots; null brings the weaker text back", map[agent.Slot]*string{}, Overrides{}, 0, (*Handler).prompt},
		{"DELETE", person + "/prompt-overrides", principal.Org, "Bring all weaker texts back", nil, Overrides{}, 0, (*Handler).unprompt},
		{"GET", person + "/memory", principal.Org, "What the agent remembers of a person", nil, Memory{}, 0, (*Handler).memory},
		{"DELETE", person + "/memory", principal.Org, "Let the agent forget a person", nil, Removed{}, 0, (*Handler).unremember},
		{"GET", person + "/mode", principal.Org, "The mode a person talks in", nil, ChosenMode{}, 0, (*Handler).chosenMode},
		{"PUT", person + "/mode", principal.Org, "Let a person talk in a mode", ChosenMode{}, ChosenMode{}, 0, (*Handler).chooseMode},
		{"DELETE", person + "/history", principal.Org, "Forget what a person said", nil, Removed{}, 0, (*Handler).forget},
	}
}

// Routes are the paths of this door, with what each needs.
func (d *Handler) Routes() (list []principal.Route) {
	for _, route := range routes() {
		list = append(list, principal.Route{Pattern: route.method + " " + route.path, Scope: route.scope, Handler: d.guarded(d.handle(route))})
	}
	return append(list,
		principal.Route{Pattern: "GET /api/v1/openapi.json", Handler: d.guarded(http.HandlerFunc(d.openAPI))},
		principal.Route{Pattern: "/api/v1/", Handler: d.guarded(http.HandlerFunc(nothing))})
}

func nothing(w http.ResponseWriter, r *http.Request) {
	refuse(w, fault.New(fault.NotFound, "nothing answers %s %s", r.Method, r.URL.Path).
		WithHint("GET /api/v1/openapi.json lists what does"))
}

// handle words what goes wrong. Who asks was found to be allowed to.
func (d *Handler) handle(route route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if route.scope == principal.Org && r.Method != http.MethodGet {
			d.options.Log.InfoContext(r.Context(), "admin_action", "event", "admin_action", "key", principal.Of(r.Context()).Name, "method", r.Method, "path", r.URL.Path)
		}
		if err := route.does(d, w, r); err != nil {
			refuse(w, err)
		}
	})
}

// guarded turns away requests that a person's browser was tricked into, and says
// how answers are to be taken.
func (d *Handler) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := d.options.Browsers.Refusal(r); err != nil {
			refuse(w, err)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
