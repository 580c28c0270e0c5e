package httpauth

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
)

// reject refuses a request to a route that needs a scope, and logs it.
func (a *Authenticator) reject(w http.ResponseWriter, r *http.Request, route *principal.Route, err error) {
	if code := fault.CodeOf(err); code == fault.NeedsAuth || code == fault.Denied {
		if a.countRefusal(r) {
			a.options.Log.WarnContext(r.Context(), "auth_rejected", "event", "auth_rejected", "method", r.Method, "path", r.URL.Path, "remote", a.remote(r), "error", err)
		}
		a.challenge(w, r, route.Scope, err)
	}
	status := httpjson.StatusOf(err)
	if _, shown := bearer(r); status == http.StatusForbidden && shown && (isMCP(r) || route.Refuse != nil) && !isScopeError(err) {
		status = http.StatusUnauthorized // as RFC 6750 requires; the other routes always answered 403 to a wrong key
	}
	refuseRoute(w, route, status, err)
}

// scopeError refuses a caller that is known and lacks the scope.
type scopeError struct{ error }

func (t scopeError) Unwrap() error { return t.error }

func isScopeError(err error) bool {
	var known scopeError
	return errors.As(err, &known)
}

func isMCP(r *http.Request) bool {
	return r.URL.Path == "/mcp" || strings.HasPrefix(r.URL.Path, "/mcp/")
}

// challenge sets the WWW-Authenticate header.
func (a *Authenticator) challenge(w http.ResponseWriter, r *http.Request, scope principal.Scope, err error) {
	parts := []string{}
	switch _, shown := bearer(r); {
	case isScopeError(err):
		parts = append(parts, `error="insufficient_scope"`)
	case shown:
		parts = append(parts, `error="invalid_token"`)
	}
	if tokens := a.options.Tokens; tokens != nil {
		parts = append(parts, fmt.Sprintf("resource_metadata=%q", tokens.Metadata(r)))
		if name := tokens.ScopeName(scope); scope != "" && name != "" {
			parts = append(parts, fmt.Sprintf("scope=%q", name))
		}
	}
	w.Header().Set("WWW-Authenticate", strings.TrimSpace("Bearer "+strings.Join(parts, ", ")))
}

// names are the error names and codes of the chat API, by status.
var names = map[int][2]string{
	http.StatusUnauthorized:       {"AuthenticationError", "AUTHENTICATION_ERROR"},
	http.StatusForbidden:          {"AuthorizationError", "AUTHORIZATION_ERROR"},
	http.StatusBadRequest:         {"ValidationError", "VALIDATION_ERROR"},
	http.StatusNotFound:           {"NotFoundError", "NOT_FOUND"},
	http.StatusConflict:           {"ConflictError", "CONFLICT"},
	http.StatusTooManyRequests:    {"RateLimitError", "RATE_LIMIT_EXCEEDED"},
	http.StatusServiceUnavailable: {"UnavailableError", "UNAVAILABLE"},
}

// refuseRoute answers with an error in the form of the route's API.
func refuseRoute(w http.ResponseWriter, route *principal.Route, status int, err error) {
	if route.Refuse != nil {
		w.Header().Set("Cache-Control", "no-store")
		route.Refuse(w, status, err)
		return
	}
	refuse(w, status, err)
}

// refuse answers with an error in the form of the chat API.
func refuse(w http.ResponseWriter, status int, err error) {
	name, ok := names[status]
	if !ok {
		name = [2]string{"InternalError", "INTERNAL_ERROR"}
	}
	body := map[string]any{"error": name[0], "code": name[1], "message": err.Error()}
	if hint := fault.HintOf(err); hint != "" {
		body["hint"] = hint
	}
	if after, ok := principal.RetryAfter(err); ok {
		w.Header().Set("Retry-After", principal.RetryHeader(after))
		body["retry_after_ms"] = after.Milliseconds()
	}
	writeJSON(w, status, body)
}

// writeJSON answers with JSON that is not cached.
func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Cache-Control", "no-store")
	httpjson.JSON(w, status, body)
}
