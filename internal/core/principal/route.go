package principal

import "net/http"

// Route is an HTTP route with the scope it needs. Packages list theirs; the server
// checks the scope of all of them in one place.
type Route struct {
	Pattern string // of net/http's ServeMux; {org} and {user} are the owner
	Scope   Scope  // the scope it needs; Open: none
	Handler http.Handler
	// Guests says that guests of a server without keys may use the route.
	Guests bool
	// Body says what the route reads, unless it is JSON whose unknown fields it refuses, or
	// the method has no body.
	Body string
	// AnyOrigin means that pages of every origin may use the route, and by every name of this
	// server. The handlers of all others refuse foreign ones.
	AnyOrigin bool
	// Refuse responds to callers without the scope, in the form of the route's API; nil
	// means that of the chat API.
	Refuse func(w http.ResponseWriter, status int, err error)
	// AnyKey is for clients that always send a key: as long as none exists, they are
	// treated as if they sent none.
	AnyKey bool
	// Authenticates means that the handler itself authenticates requests. Keys and tokens
	// that come with them are not looked at, and the caller is anonymous.
	Authenticates bool
}

// Reads returns the route with another Body.
func (r Route) Reads(body string) Route {
	r.Body = body
	return r
}

// Bodies of several routes.
const (
	NoBody = "nothing"
	Form   = "a form"
)

// Unguarded serves routes without checking scopes.
func Unguarded(routes []Route) *http.ServeMux {
	mux := http.NewServeMux()
	for _, route := range routes {
		mux.Handle(route.Pattern, route.Handler)
	}
	return mux
}
