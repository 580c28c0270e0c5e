package server

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/principal"
)

// routesHead begins the list of routes.
const routesHead = `# All routes, as TestRoutes finds them; UPDATE=1 rewrites this file. Think about each new line:
# what does the route show of others, and why is it open?
#
# who     the scope of a key; "guest" is the scope mcp, or a guest of a server without keys;
#         "open" is anybody; "itself" is anybody too, but the handler looks at a cookie, a code
#         or a signature
# pages   "own": requests of other sites' pages, and by other names of this machine, are refused
# body    what is read; "JSON" is refused when it has unknown fields

`

// TestRoutes compares all routes with the list, and checks on one server that each does what the
// list says.
func TestRoutes(t *testing.T) {
	t.Parallel()
	w := startRoutes(t)
	list := routesHead
	routes := w.srv.routes()
	slices.SortStableFunc(routes, func(a, b principal.Route) int { return strings.Compare(pathOf(a), pathOf(b)) })
	for _, route := range routes {
		list += describe(route)
		w.checkScope(route)
		w.checkOrigin(route)
		w.checkBody(route)
		w.checkRate(route)
	}
	w.checkChat()
	file := filepath.Join("testdata", "routes.txt")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	known, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(list, "\n") {
		if !strings.Contains(string(known), line+"\n") {
			t.Errorf("not in %s: %s", file, line)
		}
	}
	if string(known) != list {
		t.Errorf("%s is out of date: review it after UPDATE=1 go test -run %s", file, t.Name())
	}
}

func pathOf(route principal.Route) string { return route.Pattern[strings.Index(route.Pattern, "/"):] }

// describe returns the route's line of the list.
func describe(route principal.Route) string {
	who, pages, body := string(route.Scope), "own", route.Body
	if method, _, _ := strings.Cut(route.Pattern, " "); method == http.MethodGet || method == http.MethodDelete {
		body = ""
	}
	if route.Authenticates {
		who = "itself"
	}
	if route.Guests {
		who = "guest"
	}
	if route.AnyOrigin {
		pages = "any"
	}
	if readsJSON(route) {
		body = "JSON"
	}
	return strings.TrimRight(fmt.Sprintf("%-80s %-8s %-4s %s", route.Pattern, who, pages, body), " ") + "\n"
}

// readsJSON reports whether a route must refuse unknown fields: it has a body, and says nothing
// else about it.
func readsJSON(route principal.Route) bool {
	method, _, found := strings.Cut(route.Pattern, " ")
	return route.Body == "" && (!found || method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch)
}

var wildcard = regexp.MustCompile(`\{[^}]*\}`)

// requestOf returns the method and the path of a request of a route, in which each wildcard is o.
func requestOf(pattern string) (method, path string) {
	method, path, ok := strings.Cut(pattern, " ")
	if !ok {
		method, path = http.MethodPost, pattern
	}
	return method, wildcard.ReplaceAllString(strings.TrimSuffix(path, "{$}"), "o")
}

// shortest are queries that make routes respond soon: a profile lasts 30 s by default.
var shortest = map[string]string{"/debug/pprof/profile": "?seconds=1", "/debug/pprof/trace": "?seconds=0.01"}

// routeWalk is a server that has all routes, and a key of each scope.
type routeWalk struct {
	matrix
	person actor
}

func startRoutes(t *testing.T) *routeWalk {
	t.Helper()
	model := llmtest.Start(t, func(llmtest.Request) llmtest.Step { return llmtest.Step{Say: []string{"yes"}} })
	env := config.Environment{"ENGINE_API_KEY": tokenOf("root"), "RATED": tokenOf("rated"), "ANTHROPIC_API_KEY": llmtest.Key}
	file := withPeople + "[music]\nenabled = true\n[chat]\nrate = 1\nbase_url = \"" + model.URL + "\"\n[keys.rated]\nenv = \"RATED\"\nscopes = [\"admin\"]\nrate = 1\n"
	for _, scope := range principal.Scopes {
		variable := "KEY_" + strings.ToUpper(string(scope))
		env[variable] = tokenOf(scope)
		file += fmt.Sprintf("[keys.%[1]s]\nenv = %[2]q\nscopes = [%[1]q]\n", scope, variable)
		if scope == principal.Org {
			file += "org = \"o\"\n"
		}
	}
	w := &routeWalk{matrix: matrix{t: t}}
	w.url, w.srv = start(t, config.Sources{File: configtest.WriteFile(t, file), Env: env})
	id := w.signIn("ann", map[string][]string{"o": {"admin"}})
	w.person = actor{cookie: func() string { return w.begin(id, "o") }}
	return w
}

func tokenOf[S ~string](key S) string { return string(key) + "-token" }

// ask sends a request to a route, and returns the response with the beginning of its body.
func (w *routeWalk) ask(route principal.Route, body string, headers ...string) (*http.Response, string) {
	w.t.Helper()
	method, path := requestOf(route.Pattern)
	answer := httpjsontest.Open(w.t, method, w.url+path+shortest[path], body, headers...)
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 4096))
	return answer, string(text)
}

// status is the status of a request with a token.
func (w *routeWalk) status(route principal.Route, token string) int {
	w.t.Helper()
	name, value := httpjsontest.Bearer(token)
	answer, _ := w.ask(route, "{}", name, value)
	return answer.StatusCode
}

// checkScope checks that a route requires a key with its scope, if any.
func (w *routeWalk) checkScope(route principal.Route) {
	if route.Scope == principal.Open {
		if got := w.status(route, ""); got == 401 && route.Pattern != "GET /api/v1/me" && !route.Authenticates {
			w.t.Errorf("%s requires a key", route.Pattern)
		}
		return
	}
	wrong := 403
	if route.Bearer {
		wrong = 401
	}
	for token, want := range map[string]int{"": 401, "guess": wrong, tokenOf(otherScope(route.Scope)): 403} {
		if got := w.status(route, token); got != want {
			w.t.Errorf("%s with the key %q: %d, want %d", route.Pattern, token, got, want)
		}
	}
	if strings.HasSuffix(route.Pattern, "/events") || route.Pattern == "/mcp/sse" {
		return // their responses do not end
	}
	tokens := []string{tokenOf(route.Scope), tokenOf("root")}
	if route.Scope == principal.Admin {
		tokens = tokens[:1]
	}
	for _, token := range tokens {
		if got := w.status(route, token); got == 401 || got == 403 {
			w.t.Errorf("%s with the key %q: %d", route.Pattern, token, got)
		}
	}
}

// otherScope returns a scope that does not include the given one.
func otherScope(scope principal.Scope) principal.Scope {
	if scope == principal.Read {
		return principal.Chat
	}
	return principal.Read
}

// checkOrigin sends requests as a browser does on behalf of a page of another site: with a Host
// name that resolves to this server, and with another Origin.
func (w *routeWalk) checkOrigin(route principal.Route) {
	for _, header := range [][2]string{{"Host", "evil.example"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
		name, value := httpjsontest.Bearer(tokenOf("root"))
		answer, text := w.ask(route, "{}", name, value, header[0], header[1])
		if served := answer.StatusCode != http.StatusForbidden; served != route.AnyOrigin {
			w.t.Errorf("%s with %s: %s %s", route.Pattern, header, answer.Status, text)
		}
	}
}

// checkBody checks that our API names unknown fields when it refuses a request, of an
// administrator or of a person.
func (w *routeWalk) checkBody(route principal.Route) {
	if !readsJSON(route) {
		return
	}
	var all string
	for _, a := range []actor{{token: tokenOf("root")}, w.person} {
		for _, body := range []string{`{"no_such_field":null}`, `[{"no_such_field":null}]`} {
			answer, text := w.ask(route, body, a.headers()...)
			if answer.StatusCode == http.StatusBadRequest && strings.Contains(text, "no_such_field") {
				return
			}
			all += " " + text
		}
	}
	w.t.Errorf("%s accepts an unknown field:%s", route.Pattern, all)
}

// checkRate checks that a route refuses a key above its rate, with Retry-After.
func (w *routeWalk) checkRate(route principal.Route) {
	if route.Scope == principal.Open {
		return
	}
	answer, text := w.limited(func() (*http.Response, string) {
		return w.ask(route, "{}", "Authorization", "Bearer "+tokenOf("rated"))
	})
	if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" || route.Refuse == nil && !strings.Contains(text, "retry_after_ms") {
		w.t.Errorf("%s: %s, Retry-After %q: %s", route.Pattern, answer.Status, answer.Header.Get("Retry-After"), text)
	}
}

// limited repeats a request until it is refused, since a new minute allows another one.
func (w *routeWalk) limited(ask func() (*http.Response, string)) (answer *http.Response, text string) {
	for range 3 {
		if answer, text = ask(); answer.StatusCode == http.StatusTooManyRequests {
			break
		}
	}
	return answer, text
}

// checkChat checks that the chat names the closest field, and refuses a user who sends too many
// messages.
func (w *routeWalk) checkChat() {
	route := principal.Route{Pattern: "POST /api/v1/chat"}
	name, value := httpjsontest.Bearer(tokenOf(principal.Chat))
	ask := func(rest string) (*http.Response, string) {
		return w.ask(route, `{"client_id":"c","user_id":`+rest, name, value)
	}
	if answer, text := ask(`"u","mesage":"hi"}`); answer.StatusCode != http.StatusBadRequest || !strings.Contains(text, `did you mean \"message\"?`) {
		w.t.Errorf("%s %s", answer.Status, text)
	}
	if answer, text := ask(`"bea","message":"hello"}`); answer.StatusCode != http.StatusOK {
		w.t.Errorf("first message of a user: %s %s", answer.Status, text)
	}
	answer, text := w.limited(func() (*http.Response, string) { return ask(`"ann","message":"hello"}`) })
	if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" {
		w.t.Errorf("later messages of a user: %s, Retry-After %q: %s", answer.Status, answer.Header.Get("Retry-After"), text)
	}
}
