package toolsapi

import (
	"encoding/json"
	"net/http"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// Problem is an error as application/problem+json (RFC 9457).
type Problem struct {
	Type    string          `json:"type"`
	Title   string          `json:"title"`
	Status  int             `json:"status"`
	Detail  string          `json:"detail"`
	Code    fault.Code      `json:"code"` // docs/errors has a page on each
	Hint    string          `json:"hint,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
}

// writeProblem answers an error.
func writeProblem(w http.ResponseWriter, status int, err error) {
	f := fault.From(err)
	if after, ok := principal.RetryAfter(err); ok {
		w.Header().Set("Retry-After", principal.RetryHeader(after))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(Problem{ // the client may have disconnected
		Type: "urn:luanette:error:" + string(f.Code), Title: http.StatusText(status), Status: status,
		Detail: f.Error(), Code: f.Code, Hint: fault.HintOf(f), Details: f.Details,
	})
}

// statuses are the HTTP statuses of the codes. Credentials that an upstream lacks are not
// the caller's, so needs_auth is no 401.
var statuses = map[fault.Code]int{
	fault.InvalidParams: http.StatusBadRequest,
	fault.ToolNotFound:  http.StatusNotFound,
	fault.NotFound:      http.StatusNotFound,
	fault.Conflict:      http.StatusConflict,
	fault.Unavailable:   http.StatusServiceUnavailable,
	fault.NeedsAuth:     http.StatusFailedDependency,
	fault.Denied:        http.StatusForbidden,
	fault.Limit:         http.StatusTooManyRequests,
	fault.Timeout:       http.StatusGatewayTimeout,
	fault.Cancelled:     http.StatusServiceUnavailable,
	fault.Upstream:      http.StatusBadGateway,
}

func statusOf(err error) int {
	if status, ok := statuses[fault.CodeOf(err)]; ok {
		return status
	}
	return http.StatusInternalServerError
}
