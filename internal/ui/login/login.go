// Package login is the door by which people log in to tool servers: the API that
// begins a login, and the address that their browser comes back to.
package login

import (
	"context"
	"encoding/json"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/luanette/luanette/internal/access/oauth"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
)

// Logins is who does it.
type Logins interface {
	// Begin starts a login, in a browser or on another device.
	Begin(ctx context.Context, upstream string, device bool) (oauth.Begun, error)
	// Finish ends one with what the browser brought back, and tells whose it was.
	Finish(ctx context.Context, back url.Values) (upstream string, err error)
	Status(ctx context.Context, upstream string) (oauth.Status, error)
	Logout(ctx context.Context, upstream string) (bool, error)
	// Document is our client metadata; nil: it is nowhere to be fetched.
	Document() any
}

// CallbackPath is where browsers come back to.
const CallbackPath = "/oauth/callback"

const documentPath = "/oauth/client.json"

// Routes are the paths of this door.
func Routes(office Logins, browsers netguard.Browsers) []principal.Route {
	route := func(pattern string, scope principal.Scope, serve http.HandlerFunc) principal.Route {
		return principal.Route{Pattern: pattern, Scope: scope, Handler: checkOrigin(serve, browsers)}
	}
	return []principal.Route{
		route("POST /api/v1/upstreams/{namespace}/login", principal.Admin, func(w http.ResponseWriter, r *http.Request) { begin(office, w, r) }),
		route("GET /api/v1/upstreams/{namespace}/login", principal.Read, func(w http.ResponseWriter, r *http.Request) {
			status, err := office.Status(r.Context(), r.PathValue("namespace"))
			writeJSON(w, status, err)
		}),
		route("DELETE /api/v1/upstreams/{namespace}/login", principal.Admin, func(w http.ResponseWriter, r *http.Request) {
			was, err := office.Logout(r.Context(), r.PathValue("namespace"))
			writeJSON(w, map[string]bool{"logged_out": was}, err)
		}),
		// A browser that comes back has no key, and neither has an authorization server.
		route("GET "+CallbackPath, "", Callback(office.Finish).ServeHTTP),
		route("GET "+documentPath, "", func(w http.ResponseWriter, _ *http.Request) { document(office, w) }),
	}
}

func document(office Logins, w http.ResponseWriter) {
	page := office.Document()
	if page == nil {
		writeJSON(w, nil, fault.New(fault.NotFound, "there is no client metadata document").
			WithHint("set oauth.client_metadata_url to where this server is reached from outside"))
		return
	}
	writeJSON(w, page, nil)
}

// checkOrigin turns away requests that a person's browser was tricked into.
func checkOrigin(next http.Handler, browsers netguard.Browsers) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := browsers.Refusal(r); err != nil {
			writeJSON(w, nil, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// begin reads {"method": "browser" | "device"}, or nothing.
func begin(office Logins, w http.ResponseWriter, r *http.Request) {
	var want struct {
		Method string `json:"method"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<10))
	if err == nil && len(body) > 0 {
		err = httpjson.Decode(body, &want)
	}
	if fault.CodeOf(err) == fault.InvalidParams {
		writeJSON(w, nil, err)
		return
	}
	if err != nil || want.Method != "" && want.Method != "browser" && want.Method != "device" {
		writeJSON(w, nil, fault.New(fault.InvalidParams, "the body is no {\"method\": …}").WithHint(`use {"method": "browser"} or {"method": "device"}`))
		return
	}
	begun, err := office.Begin(r.Context(), r.PathValue("namespace"), want.Method == "device")
	writeJSON(w, begun, err)
}

var statuses = map[fault.Code]int{
	fault.InvalidParams: http.StatusBadRequest, fault.NotFound: http.StatusNotFound, fault.Denied: http.StatusForbidden,
	fault.Config: http.StatusConflict, fault.Conflict: http.StatusConflict, fault.Upstream: http.StatusBadGateway,
	fault.Unavailable: http.StatusBadGateway, fault.Timeout: http.StatusGatewayTimeout,
}

func writeJSON(w http.ResponseWriter, body any, err error) {
	status := http.StatusOK
	if err != nil {
		f := fault.From(err)
		if body, status = map[string]any{"error": f}, statuses[f.Code]; status == 0 {
			status = http.StatusInternalServerError
		}
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // people copy links from here
	_ = encoder.Encode(body)     // the client may be gone; nobody is left to tell
}

// Callback is where a browser comes back to. It shows how the login ended, and
// gives nothing of the address away to anybody.
func Callback(finish func(ctx context.Context, back url.Values) (upstream string, err error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upstream, err := finish(r.Context(), r.URL.Query())
		page := result{Upstream: upstream}
		status := http.StatusOK
		if err != nil {
			page.Problem, page.Hint = err.Error(), fault.HintOf(err)
			status = http.StatusBadRequest
		}
		var text strings.Builder
		if err := resultPage.Execute(&text, page); err != nil {
			http.Error(w, "the page could not be written", http.StatusInternalServerError)
			return
		}
		header := w.Header()
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text.String())
	})
}

type result struct{ Upstream, Problem, Hint string }

var resultPage = template.Must(template.New("ending").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Luanette</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem}</style>
{{if .Problem}}<h1>Not logged in</h1><p>{{.Problem}}</p>{{with .Hint}}<p>{{.}}</p>{{end}}
{{else}}<h1>Logged in to {{.Upstream}}</h1><p>You can close this page.</p>{{end}}
</html>
`))
