package adminapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/builtin/servertools"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
)

// Upstream is the state and the settings of an upstream.
type Upstream struct {
	servertools.UpstreamView
	upstreamset.LastChange
	Wanted    bool             `json:"wanted"` // false: removed by a user, although the configuration has it
	Editable  bool             `json:"editable"`
	Since     time.Time        `json:"since,omitzero"`           // when it got into its state
	Restarts  int64            `json:"restarts"`                 // how often it was connected again
	Connected time.Time        `json:"first_connected,omitzero"` // since when those are counted
	Sandbox   *UpstreamSandbox `json:"sandbox,omitempty"`        // nil if it is no program
	Settings  map[string]any   `json:"settings,omitempty"`       // without secrets; nil if it is not editable
}

// UpstreamSandbox is what the program of an upstream may reach. The lists are for
// administrators.
type UpstreamSandbox struct {
	Level   string   `json:"level"` // off, open, strict, docker:IMAGE or podman:IMAGE
	Read    []string `json:"read,omitempty"`
	Write   []string `json:"write,omitempty"`
	Network []string `json:"network,omitempty"`
	Exec    bool     `json:"exec,omitempty"`
	Sockets bool     `json:"sockets,omitempty"`
	Secrets []string `json:"secrets,omitempty"` // names of those that it uses without having them
}

// UpstreamList is the response with all upstreams.
type UpstreamList struct {
	Node      string     `json:"node"` // the node that has these connections
	Upstreams []Upstream `json:"upstreams"`
}

// RemovedUpstream is the result of a removal.
type RemovedUpstream struct {
	Namespace    string `json:"namespace"`
	Removed      bool   `json:"removed"`
	ConfiguredAt string `json:"configured_at,omitempty"` // set if the configuration has it: it stays listed as removed
}

// readChange reads the settings of an upstream, and its name if it is a new one.
func readChange(r *http.Request) (name string, change upstream.Change, err error) {
	if err := httpjson.Read(r, &change); err != nil {
		return "", nil, err
	}
	if given, there := change["namespace"]; there && r.Method == http.MethodPost {
		if json.Unmarshal(given, &name) != nil {
			return "", nil, fault.New(fault.InvalidParams, "namespace %s is not a text", given).WithHint("give the upstream a name, such as wiki")
		}
		delete(change, "namespace")
	}
	return name, change, change.Check()
}

func (s *Server) addUpstream(r *http.Request) (any, error) {
	name, settings, err := readChange(r)
	if err != nil {
		return nil, err
	}
	return s.options.Upstreams.Add(r.Context(), name, settings)
}

func (s *Server) editUpstream(r *http.Request) (any, error) {
	_, change, err := readChange(r)
	if err != nil {
		return nil, err
	}
	return s.options.Upstreams.Edit(r.Context(), r.PathValue("name"), change)
}
