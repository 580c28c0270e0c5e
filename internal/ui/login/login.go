// Package login serves the HTTP endpoints for logging in to upstreams: the API that
// starts a login, and the callback address of OAuth.
package login

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/luanette/luanette/internal/access/cookie"
	"github.com/luanette/luanette/internal/access/page"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/credentials/oauth"
)

// Logins performs the logins.
type Logins interface {
	Begin(ctx context.Context, upstream string, how Method) (oauth.Begun, error)
	// Finish completes a login with the callback's query and returns its upstream.
	Finish(ctx context.Context, query url.Values) (upstream string, err error)
	Status(ctx context.Context, upstream string) (oauth.Status, error)
	Logout(ctx context.Context, upstream string) (bool, error)
	// Document is our OAuth client metadata; nil if it has no public address.
	Document() any
}

// Method is how a login is done.
type Method struct {
	Device bool // with a device code, instead of in a browser
	Bound  bool // only the browser that began the login may finish it
}

// CallbackPath is the path of the OAuth redirect URI.
const CallbackPath = "/oauth/callback"

const documentPath = "/oauth/client.json"

// Routes are the package's paths and the scope that each requires.
func Routes(logins Logins, browsers netguard.Browsers) []principal.Route {
	route := func(pattern string, scope principal.Scope, serve http.HandlerFunc) principal.Route {
		return principal.Route{Pattern: pattern, Scope: scope, Handler: checkOrigin(serve, browsers)}
	}
	return []principal.Route{
		route("POST /api/v1/upstreams/{namespace}/login", principal.Admin, func(w http.ResponseWriter, r *http.Request) { begin(logins, browsers, w, r) }),
		route("GET /api/v1/upstreams/{namespace}/login", principal.Read, func(w http.ResponseWriter, r *http.Request) {
			status, err := logins.Status(r.Context(), r.PathValue("namespace"))
			writeJSON(w, status, err)
		}),
		route("DELETE /api/v1/upstreams/{namespace}/login", principal.Admin, func(w http.ResponseWriter, r *http.Request) {
			was, err := logins.Logout(r.Context(), r.PathValue("namespace"))
			writeJSON(w, map[string]bool{"logged_out": was}, err)
		}),
		// Redirected browsers and authorization servers have no API key.
		route("GET "+CallbackPath, principal.Open, ownBrowser(Callback(logins.Finish), browsers)),
		route("GET "+documentPath, principal.Open, func(w http.ResponseWriter, _ *http.Request) { document(logins, w) }),
	}
}

func document(logins Logins, w http.ResponseWriter) {
	metadata := logins.Document()
	if metadata == nil {
		writeJSON(w, nil, fault.New(fault.NotFound, "there is no client metadata document").
			WithHint("set oauth.client_metadata_url to this server's public address"))
		return
	}
	writeJSON(w, metadata, nil)
}

// checkOrigin refuses requests that pages of other origins make in a user's browser.
func checkOrigin(next http.Handler, browsers netguard.Browsers) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := browsers.Refusal(r); err != nil {
			writeJSON(w, nil, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// begin starts a login. The body is {"method": "browser" | "device"} or empty.
func begin(logins Logins, browsers netguard.Browsers, w http.ResponseWriter, r *http.Request) {
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
		writeJSON(w, nil, fault.New(fault.InvalidParams, "the body has no valid method").WithHint(`use {"method": "browser"} or {"method": "device"}`))
		return
	}
	begun, err := logins.Begin(r.Context(), r.PathValue("namespace"), Method{Device: want.Method == "device", Bound: isBrowser(r, browsers)})
	if proof := oauth.BrowserProof(begun.State); err == nil && proof != "" {
		cookie.In(r, browsers).Set(w, cookie.Login, proof, begun.Expires)
	}
	writeJSON(w, begun, err)
}

// isBrowser reports whether a page sent the request. A program has no cookies, so the
// browser that it sends a person to cannot be recognized.
func isBrowser(r *http.Request, browsers netguard.Browsers) bool {
	return r.Header.Get("Origin") != "" || cookie.In(r, browsers).Get(cookie.Session) != ""
}

// ownBrowser refuses a browser that returns from a login which another browser began,
// before anything of the login is used.
func ownBrowser(next http.Handler, browsers netguard.Browsers) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		state := r.URL.Query().Get("state")
		if oauth.IsOwned(state) { // the session is not sent with a redirect of another site, but from a page of ours
			page.Write(w, http.StatusOK, page.Continue, finishPath+"?"+r.URL.RawQuery)
			return
		}
		proof := oauth.BrowserProof(state)
		if proof == "" {
			next.ServeHTTP(w, r)
			return
		}
		if subtle.ConstantTimeCompare([]byte(proof), []byte(cookie.In(r, browsers).Get(cookie.Login))) != 1 {
			writeResult(w, http.StatusForbidden, result{
				Problem: "another browser began this login", Hint: "begin it in this browser; do not finish logins that somebody sent you a link to",
			})
			return
		}
		cookie.In(r, browsers).Set(w, cookie.Login, "", time.Time{})
		next.ServeHTTP(w, r)
	}
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
	_ = encoder.Encode(body)     // the client may have disconnected
}

// Callback is the OAuth redirect endpoint. It shows the result of the login. Its
// headers keep the address, which holds the authorization code, from other sites.
func Callback(finish func(ctx context.Context, query url.Values) (upstream string, err error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upstream, err := finish(r.Context(), r.URL.Query())
		outcome := result{Upstream: upstream}
		status := http.StatusOK
		if err != nil {
			outcome.Problem, outcome.Hint = err.Error(), fault.HintOf(err)
			status = http.StatusBadRequest
		}
		writeResult(w, status, outcome)
	})
}

type result struct{ Upstream, Problem, Hint string }

func writeResult(w http.ResponseWriter, status int, outcome result) {
	page.Write(w, status, resultPage, outcome)
}

var resultPage = page.New("result", `{{if .Problem}}<h1>Not logged in</h1><p>{{.Problem}}</p>{{with .Hint}}<p>{{.}}</p>{{end}}
{{else}}<h1>Logged in to {{.Upstream}}</h1><p>You can close this page.</p>{{end}}`)
