// Package httpjson reads and writes the JSON bodies of our own HTTP endpoints. Errors
// have one form, and unknown fields in a request are refused by name. Bodies that a
// standard defines are read with encoding/json, which ignores unknown fields.
package httpjson

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/luanette/luanette/internal/base/fault"
)

// JSON writes a response with a JSON body.
func JSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have disconnected
}

// Error writes an error response with the message, the code, the hint and the
// details.
func Error(w http.ResponseWriter, status int, err error) {
	body := map[string]any{"error": http.StatusText(status), "code": string(fault.CodeOf(err)), "message": err.Error()}
	if hint := fault.HintOf(err); hint != "" {
		body["hint"] = hint
	}
	var f *fault.Error
	if errors.As(err, &f) && len(f.Details) > 0 {
		body["details"] = f.Details
	}
	JSON(w, status, body)
}

// statuses are the HTTP statuses of error codes; others are 500.
var statuses = map[fault.Code]int{
	fault.InvalidParams: http.StatusBadRequest, fault.NotFound: http.StatusNotFound, fault.Conflict: http.StatusConflict,
	fault.Denied: http.StatusForbidden, fault.Config: http.StatusConflict, fault.NeedsAuth: http.StatusUnauthorized, fault.Unavailable: http.StatusServiceUnavailable,
	fault.Limit: http.StatusTooManyRequests, fault.Upstream: http.StatusBadGateway,
}

// StatusOf returns the HTTP status of an error.
func StatusOf(err error) int {
	if status, ok := statuses[fault.CodeOf(err)]; ok {
		return status
	}
	return http.StatusInternalServerError
}
