package principal

import (
	"cmp"
	"net/http"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
)

// Route is an HTTP route and who may use it. Packages list theirs; the server checks origin and
// scope of all of them in one place, httpauth, and here are their answers written.
type Route struct {
	Pattern string // of net/http's ServeMux; {org} and {user} are the owner
	Scope   Scope  // the scope it needs; Open: none

	// One of these serves the route. Answers of the first two are not cached.
	Serve   func(*http.Request) (any, error)               // what it returns is sent as JSON
	Write   func(http.ResponseWriter, *http.Request) error // writes the response, unless it returns an error
	Handler http.Handler                                   // does everything, errors included

	// MaxBody is the size in bytes of the largest body for Serve and Write; 0: 64 KB.
	MaxBody int64
	// Body says what the route reads, unless it is JSON whose unknown fields it refuses, or
	// the method has no body.
	Body string
	// Refuse writes errors in the form of the route's API, also those of callers who may not use
	// it; nil: in our own.
	Refuse func(w http.ResponseWriter, r *http.Request, status int, err error)

	// Guests says that guests of a server without keys may use the route.
	Guests bool
	// AnyOrigin means that pages of every origin may use the route, and by every name of this
	// server. Foreign ones are refused by all others.
	AnyOrigin bool
	// ChecksOrigin means that the handler refuses foreign pages itself, in the form of its protocol.
	ChecksOrigin bool
	// Bearer means that a wrong key is answered with 401, as RFC 6750 requires. Routes of our own APIs
	// always answered 403.
	Bearer bool
	// AnyKey is for clients that always send a key: as long as none exists, they are
	// treated as if they sent none.
	AnyKey bool
	// Authenticates means that the handler itself authenticates requests. Keys and tokens
	// that come with them are not looked at, and the caller is anonymous.
	Authenticates bool
}

// Reads returns the route with another Body.
func (route Route) Reads(body string) Route {
	route.Body = body
	return route
}

// Bodies of several routes.
const (
	NoBody = "nothing"
	Form   = "a form"
)

const maxBody = 64 << 10

// ServeHTTP answers a caller who may use the route.
func (route *Route) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if route.Handler != nil {
		route.Handler.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	r.Body = http.MaxBytesReader(w, r.Body, cmp.Or(route.MaxBody, maxBody))
	var answer any
	var err error
	if route.Write != nil {
		err = route.Write(w, r)
	} else {
		answer, err = route.Serve(r)
	}
	switch {
	case err != nil:
		route.Fail(w, r, httpjson.StatusOf(err), err)
	case route.Serve != nil:
		httpjson.JSON(w, http.StatusOK, answer)
	}
}

// Fail answers with an error.
func (route *Route) Fail(w http.ResponseWriter, r *http.Request, status int, err error) {
	w.Header().Set("Cache-Control", "no-store")
	if route.Refuse != nil {
		route.Refuse(w, r, status, err)
		return
	}
	if after, ok := RetryAfter(err); ok {
		w.Header().Set("Retry-After", RetryHeader(after))
	}
	httpjson.Error(w, status, err)
}

// Unguarded serves routes without looking at who asks.
func Unguarded(routes []Route) *http.ServeMux {
	mux := http.NewServeMux()
	for _, route := range routes {
		mux.Handle(route.Pattern, &route)
	}
	return mux
}

// InProcess serves routes to callers in this process, whose context says who they are.
func InProcess(routes []Route) *http.ServeMux {
	mux := http.NewServeMux()
	for _, route := range routes {
		mux.HandleFunc(route.Pattern, func(w http.ResponseWriter, r *http.Request) {
			if who := Of(r.Context()); route.Scope != Open && !who.May(route.Scope, who.Org) {
				err := fault.New(fault.Denied, "%s lacks the scope %s", who.Title(), route.Scope).WithHint("use a key with the scope %s", route.Scope)
				route.Fail(w, r, http.StatusForbidden, err)
				return
			}
			route.ServeHTTP(w, r)
		})
	}
	return mux
}
