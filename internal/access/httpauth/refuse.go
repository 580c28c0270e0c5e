package httpauth

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
)

// turnAway refuses a request for something that takes a scope, and tells the log.
func (g *Authenticator) turnAway(w http.ResponseWriter, r *http.Request, scope principal.Scope, err error) {
	if code := fault.CodeOf(err); code == fault.NeedsAuth || code == fault.Denied {
		if g.guesses.note(remote(r), time.Now()) {
			g.options.Log.WarnContext(r.Context(), "auth_rejected", "event", "auth_rejected", "method", r.Method, "path", r.URL.Path, "remote", remote(r), "error", err)
		}
		g.challenge(w, r, scope, err)
	}
	status := statusOf(err)
	if _, shown := bearer(r); status == http.StatusForbidden && shown && isMCP(r) && !isTooLittle(err) {
		status = http.StatusUnauthorized // as RFC 6750 has it; other doors always said 403 to a wrong key
	}
	refuse(w, status, err)
}

// tooLittle is the refusal of somebody we know, whose scopes are not enough.
type tooLittle struct{ error }

func (t tooLittle) Unwrap() error { return t.error }

func isTooLittle(err error) bool {
	var known tooLittle
	return errors.As(err, &known)
}

func isMCP(r *http.Request) bool {
	return r.URL.Path == "/mcp" || strings.HasPrefix(r.URL.Path, "/mcp/")
}

// challenge says how to be let in.
func (g *Authenticator) challenge(w http.ResponseWriter, r *http.Request, scope principal.Scope, err error) {
	parts := []string{}
	switch _, shown := bearer(r); {
	case isTooLittle(err):
		parts = append(parts, `error="insufficient_scope"`)
	case shown:
		parts = append(parts, `error="invalid_token"`)
	}
	if tokens := g.options.Tokens; tokens != nil {
		parts = append(parts, fmt.Sprintf("resource_metadata=%q", tokens.Metadata(r)))
		if word := tokens.ScopeName(scope); scope != "" && word != "" {
			parts = append(parts, fmt.Sprintf("scope=%q", word))
		}
	}
	w.Header().Set("WWW-Authenticate", strings.TrimSpace("Bearer "+strings.Join(parts, ", ")))
}

func statusOf(err error) int {
	switch fault.CodeOf(err) {
	case fault.NeedsAuth:
		return http.StatusUnauthorized
	case fault.Denied:
		return http.StatusForbidden
	case fault.InvalidParams:
		return http.StatusBadRequest
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Conflict:
		return http.StatusConflict
	case fault.Limit:
		return http.StatusTooManyRequests
	case fault.Unavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// names are what clients know refusals by.
var names = map[int][2]string{
	http.StatusUnauthorized:       {"AuthenticationError", "AUTHENTICATION_ERROR"},
	http.StatusForbidden:          {"AuthorizationError", "AUTHORIZATION_ERROR"},
	http.StatusBadRequest:         {"ValidationError", "VALIDATION_ERROR"},
	http.StatusNotFound:           {"NotFoundError", "NOT_FOUND"},
	http.StatusConflict:           {"ConflictError", "CONFLICT"},
	http.StatusTooManyRequests:    {"RateLimitError", "RATE_LIMIT_EXCEEDED"},
	http.StatusServiceUnavailable: {"UnavailableError", "UNAVAILABLE"},
}

// refuse answers with an error, in the shape of the chat API.
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
	tell(w, status, body)
}

func tell(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Cache-Control", "no-store")
	httpjson.JSON(w, status, body)
}

// remote is where a request comes from.
func remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// tries counts what was refused, by address and minute.
type tries struct {
	mu     sync.Mutex
	minute time.Time
	counts map[string]int
}

const (
	triesLogged = 20 // refusals of one address in a minute that are logged
	triesMost   = 20 // keys that one address may try to log in with in a minute
	triesKept   = 10_000
)

// note counts a refusal and tells whether it is worth a line.
func (t *tries) note(from string, now time.Time) bool { return t.count(from, now) <= triesLogged }

func (t *tries) count(from string, now time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now = now.Truncate(time.Minute); !now.Equal(t.minute) || len(t.counts) > triesKept {
		t.minute, t.counts = now, map[string]int{}
	}
	t.counts[from]++
	return t.counts[from]
}

// enough tells whether an address was refused too often, and when it may try again.
func (t *tries) enough(from string, now time.Time) (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	minute := now.Truncate(time.Minute)
	if !minute.Equal(t.minute) || t.counts[from] < triesMost {
		return 0, false
	}
	return minute.Add(time.Minute).Sub(now), true
}
