package adminapi

import (
	"net/http"

	"github.com/luanette/luanette/internal/base/fault"
)

// PolicyCheck is what the policy says of a tool and a key, and why.
type PolicyCheck struct {
	Tool         string   `json:"tool"`
	Key          string   `json:"key"`
	Known        bool     `json:"known"` // there is such a tool now
	Verdict      string   `json:"verdict"`
	Rule         string   `json:"rule,omitempty"` // that decided; none: nothing speaks of it
	Reason       string   `json:"reason,omitempty"`
	ReadOnlyHint bool     `json:"read_only_hint"`
	Labels       []string `json:"labels,omitempty"`  // what is read from its namespace bears
	Accepts      []string `json:"accepts,omitempty"` // what may be sent there
}

func (d *Server) checkPolicy(r *http.Request) (any, error) {
	name := r.URL.Query().Get("tool")
	if name == "" {
		return nil, fault.New(fault.InvalidParams, "tool is missing").WithHint("give ?tool=namespace.tool&key=NAME")
	}
	key := r.URL.Query().Get("key")
	if key == "" {
		key = "local"
	}
	return d.options.Policy(r.Context(), name, key)
}
