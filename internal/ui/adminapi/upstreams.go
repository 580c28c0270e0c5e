package adminapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/builtin/servertools"
)

// Upstream is the state and the settings of an upstream.
type Upstream struct {
	servertools.UpstreamView
	ConfiguredAt string            `json:"configured_at,omitempty"` // file:line
	Wanted       bool              `json:"wanted"`                  // false: removed by a user, although the configuration has it
	Editable     bool              `json:"editable"`
	By           string            `json:"by,omitempty"` // who added, changed or removed it last
	Changed      time.Time         `json:"changed,omitzero"`
	Since        time.Time         `json:"since,omitzero"`           // when it got into its state
	Restarts     int64             `json:"restarts"`                 // how often it was connected again
	Connected    time.Time         `json:"first_connected,omitzero"` // since when those are counted
	Sandbox      *UpstreamSandbox  `json:"sandbox,omitempty"`        // nil if it is no program
	Settings     *UpstreamSettings `json:"settings,omitempty"`       // nil if it is not editable
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

// UpstreamSettings are the editable settings of an upstream, without its secrets.
type UpstreamSettings struct {
	URL           string   `json:"url"` // without query values
	Transport     string   `json:"transport,omitempty"`
	Protocol      string   `json:"protocol,omitempty"`
	Headers       []string `json:"headers"` // names only
	Expose        Expose   `json:"expose"`
	AllowedTools  []string `json:"allowed_tools"`
	DisabledTools []string `json:"disabled_tools"`
	ReadOnly      bool     `json:"read_only"`
	TimeoutMS     int64    `json:"timeout_ms"` // 0: the default
}

// UpstreamList is the response with all upstreams.
type UpstreamList struct {
	Node      string     `json:"node"` // the node that has these connections
	Upstreams []Upstream `json:"upstreams"`
}

// UpstreamChange changes settings of an upstream. Fields that are nil stay as they
// are, or get the default in a new upstream.
type UpstreamChange struct {
	URL           *string             `json:"url,omitempty"`
	Transport     *string             `json:"transport,omitempty"`
	Protocol      *string             `json:"protocol,omitempty"`
	Headers       *map[string]*string `json:"headers,omitempty"` // replaces all; a null value keeps the stored one
	Expose        *Expose             `json:"expose,omitempty"`
	AllowedTools  *[]string           `json:"allowed_tools,omitempty"`
	DisabledTools *[]string           `json:"disabled_tools,omitempty"`
	ReadOnly      *bool               `json:"read_only,omitempty"`
	TimeoutMS     *int64              `json:"timeout_ms,omitempty"`
}

// RemovedUpstream is the result of a removal.
type RemovedUpstream struct {
	Namespace    string `json:"namespace"`
	Removed      bool   `json:"removed"`
	ConfiguredAt string `json:"configured_at,omitempty"` // set if the configuration has it: it stays listed as removed
}

// Expose says which tools of an upstream MCP clients see: "none", "all" or names.
type Expose struct {
	All   bool
	Names []string
}

// MarshalJSON writes "all", "none" or a list of names, as in the configuration.
func (e Expose) MarshalJSON() ([]byte, error) {
	switch {
	case e.All:
		return []byte(`"all"`), nil
	case len(e.Names) == 0:
		return []byte(`"none"`), nil
	default:
		return json.Marshal(e.Names)
	}
}

// UnmarshalJSON reads "all", "none" or a list of names.
func (e *Expose) UnmarshalJSON(text []byte) error {
	*e = Expose{}
	switch {
	case bytes.Equal(text, []byte(`"all"`)):
		e.All = true
		return nil
	case bytes.Equal(text, []byte(`"none"`)):
		return nil
	}
	if json.Unmarshal(text, &e.Names) != nil {
		return fault.New(fault.InvalidParams, "expose: %s is not valid", text).
			WithHint("use \"none\", \"all\" or a list of tool names")
	}
	return nil
}

func (s *Server) addUpstream(r *http.Request) (any, error) {
	var body struct {
		Namespace string `json:"namespace"`
		UpstreamChange
	}
	if err := httpjson.Read(r, &body); err != nil {
		return nil, err
	}
	return s.options.Upstreams.Add(r.Context(), body.Namespace, body.UpstreamChange)
}

func (s *Server) editUpstream(r *http.Request) (any, error) {
	var body UpstreamChange
	if err := httpjson.Read(r, &body); err != nil {
		return nil, err
	}
	return s.options.Upstreams.Edit(r.Context(), r.PathValue("name"), body)
}
