package adminapi

import (
	"net/http"

	"github.com/luanette/luanette/internal/base/fault"
)

// PolicyCheck is the policy's verdict on a tool and a key, and the reason.
type PolicyCheck struct {
	Tool         string   `json:"tool"`
	Key          string   `json:"key"`
	Known        bool     `json:"known"` // the tool exists now
	Verdict      string   `json:"verdict"`
	Rule         string   `json:"rule,omitempty"` // the rule that decided; empty if no rule matches
	Reason       string   `json:"reason,omitempty"`
	ReadOnlyHint bool     `json:"read_only_hint"`
	Labels       []string `json:"labels,omitempty"`  // labels of data read from its namespace
	Accepts      []string `json:"accepts,omitempty"` // labels of data that may be sent there
}

func (s *Server) checkPolicy(r *http.Request) (any, error) {
	name := r.URL.Query().Get("tool")
	if name == "" {
		return nil, fault.New(fault.InvalidParams, "tool is missing").WithHint("use ?tool=namespace.tool&key=NAME")
	}
	key := r.URL.Query().Get("key")
	if key == "" {
		key = "local"
	}
	return s.options.Policy(r.Context(), name, key)
}
