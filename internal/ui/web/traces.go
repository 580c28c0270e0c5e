package web

import (
	"net/http"
	"strconv"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/observe/telemetry"
)

// defaultTraces is how many traces are listed if the request has no limit.
const defaultTraces = 100

// traces lists recent traces, newest first.
func (s *Server) traces(w http.ResponseWriter, r *http.Request) {
	limit := defaultTraces
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			httpjson.Error(w, http.StatusBadRequest, fault.New(fault.InvalidParams, "limit %q is not a number above 0", text))
			return
		}
		limit = n
	}
	list := s.options.Traces.List(r.Context(), limit)
	if list == nil {
		list = []telemetry.Trace{}
	}
	httpjson.JSON(w, http.StatusOK, map[string]any{"traces": list})
}

// trace returns one trace with its spans.
func (s *Server) trace(w http.ResponseWriter, r *http.Request) {
	whole, found := s.options.Traces.Get(r.Context(), r.PathValue("id"))
	if !found {
		httpjson.Error(w, http.StatusNotFound, fault.New(fault.NotFound, "trace %q is not stored", r.PathValue("id")).
			WithHint("only recent traces are stored; hud.recent_traces in luanette.toml sets how many"))

		return
	}
	httpjson.JSON(w, http.StatusOK, whole)
}
