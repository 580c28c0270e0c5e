package principal

import "net/http"

// Route is one thing that can be asked over HTTP. Doors list theirs; the house
// puts all of them behind one check.
type Route struct {
	Pattern string // as net/http's ServeMux has them; {org} and {user} are whose the thing is
	Scope   Scope  // what it takes; empty: it is open to everybody
	Handler http.Handler
}

// Unguarded serves routes to everybody, for whoever has no gate before them.
func Unguarded(routes []Route) *http.ServeMux {
	mux := http.NewServeMux()
	for _, route := range routes {
		mux.Handle(route.Pattern, route.Handler)
	}
	return mux
}
