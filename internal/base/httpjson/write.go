// Package httpjson reads and writes the JSON bodies of our own HTTP endpoints:
// errors in one shape, and unknown fields in a request refused by name. What a
// standard defines is read with encoding/json, where unknown fields are ignored.
package httpjson

import (
	"encoding/json"
	"net/http"

	"github.com/luanette/luanette/internal/base/fault"
)

// JSON answers with a body.
func JSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone; nobody is left to tell
}

// Error answers with what went wrong and what to do about it.
func Error(w http.ResponseWriter, status int, err error) {
	body := map[string]string{"error": http.StatusText(status), "code": string(fault.CodeOf(err)), "message": err.Error()}
	if hint := fault.HintOf(err); hint != "" {
		body["hint"] = hint
	}
	JSON(w, status, body)
}
