package web

import (
	"net/http"
	"strconv"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/observe/telemetry"
)

// defaultTraces is how many traces are listed unless limit says otherwise.
const defaultTraces = 100

// traces lists the latest ones, the newest first.
func (h *Server) traces(w http.ResponseWriter, r *http.Request) {
	limit := defaultTraces
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			httpjson.Error(w, http.StatusBadRequest, fault.New(fault.InvalidParams, "limit %q is not a number above 0", text))
			return
		}
		limit = n
	}
	list := h.options.Traces.List(limit)
	if list == nil {
		list = []telemetry.Trace{}
	}
	httpjson.JSON(w, http.StatusOK, map[string]any{"traces": list})
}

// trace shows one with all that is kept of it.
func (h *Server) trace(w http.ResponseWriter, r *http.Request) {
	whole, found := h.options.Traces.Get(r.PathValue("id"))
	if !found {
		httpjson.Error(w, http.StatusNotFound, fault.New(fault.NotFound, "no trace %q is kept", r.PathValue("id")).
			WithHint("only the latest are: hud.recent_traces in luanette.toml"))
		return
	}
	httpjson.JSON(w, http.StatusOK, whole)
}
