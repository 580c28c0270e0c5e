// Package debug serves profiles of this process and the stacks of its goroutines to
// administrators, in the form that `go tool pprof` reads.
package debug

import (
	"net/http"
	"net/http/pprof"
	"net/url"
	"strconv"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// MaxSeconds is the longest time that a profile or trace covers.
const MaxSeconds = 60

// Routes are the paths, all for administrators. The command line, which net/http/pprof
// serves too, is not among them: it may contain secrets.
func Routes() []principal.Route {
	route := func(pattern string, serve func(http.ResponseWriter, *http.Request) error) principal.Route {
		return principal.Route{Pattern: pattern, Scope: principal.Admin, Write: serve}
	}
	return []principal.Route{
		route("GET /debug/pprof/{$}", limited(pprof.Index)),
		route("GET /debug/pprof/profile", limited(pprof.Profile)),
		route("GET /debug/pprof/trace", limited(pprof.Trace)),
		route("GET /debug/pprof/symbol", limited(pprof.Symbol)),
		route("GET /debug/pprof/{name}", named),
		route("GET /debug/goroutines", goroutines),
	}
}

// limited refuses profiles that would take too long.
func limited(next http.HandlerFunc) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if text := r.FormValue("seconds"); text != "" {
			seconds, err := strconv.ParseFloat(text, 64)
			if err != nil || !(seconds > 0 && seconds <= MaxSeconds) { // also NaN
				return fault.New(fault.InvalidParams, "seconds is %q", text).WithHint("give a number up to %d", MaxSeconds)
			}
		}
		next(w, r)
		return nil
	}
}

// named serves a profile of the runtime by its name: heap, allocs, goroutine, block, mutex
// or threadcreate.
func named(w http.ResponseWriter, r *http.Request) error {
	return limited(pprof.Handler(r.PathValue("name")).ServeHTTP)(w, r)
}

// goroutines writes the stacks of all goroutines as text.
func goroutines(w http.ResponseWriter, r *http.Request) error {
	r.URL.RawQuery = url.Values{"debug": {"2"}}.Encode()
	pprof.Handler("goroutine").ServeHTTP(w, r)
	return nil
}
