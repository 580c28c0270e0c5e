package web

import (
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
)

// calls reports the calls of the last hour, or of the span that the request names, on
// this node.
func (s *Server) calls(w http.ResponseWriter, r *http.Request) {
	span := time.Hour
	if text := r.URL.Query().Get("span"); text != "" {
		parsed, err := time.ParseDuration(text)
		if err != nil || parsed < time.Minute || parsed > 24*time.Hour {
			httpjson.Error(w, http.StatusBadRequest, fault.New(fault.InvalidParams, "span: %q is not a time between 1m and 24h", text).WithHint("for example span=6h"))
			return
		}
		span = parsed
	}
	httpjson.JSON(w, http.StatusOK, s.options.Calls.Report(span, principal.Of(r.Context())))
}
