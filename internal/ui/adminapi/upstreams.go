package adminapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
)

// Upstreams are the servers behind us, to be added, changed and removed.
type Upstreams interface {
	List(ctx context.Context) UpstreamList
	Get(ctx context.Context, name string) (Upstream, error)
	Add(ctx context.Context, name string, want UpstreamChange) (Upstream, error)
	Edit(ctx context.Context, name string, want UpstreamChange) (Upstream, error)
	Remove(ctx context.Context, name string) (RemovedUpstream, error)
	Restore(ctx context.Context, name string) (Upstream, error)
	Retry(ctx context.Context, name string) (Upstream, error)
}

// Upstream is one as it is and as it is wanted.
type Upstream struct {
	builtin.UpstreamView
	ConfiguredAt string            `json:"configured_at,omitempty"` // file:line
	Wanted       bool              `json:"wanted"`                  // false: the configuration has it, and a person removed it
	Editable     bool              `json:"editable"`
	By           string            `json:"by,omitempty"` // who added, changed or removed it last
	Changed      time.Time         `json:"changed,omitzero"`
	Settings     *UpstreamSettings `json:"settings,omitempty"` // of one that can be edited
}

// UpstreamSettings is what can be changed of an upstream, without its secrets.
type UpstreamSettings struct {
	URL           string   `json:"url"` // without the values of its query
	Transport     string   `json:"transport,omitempty"`
	Protocol      string   `json:"protocol,omitempty"`
	Headers       []string `json:"headers"` // their names
	Expose        Expose   `json:"expose"`
	AllowedTools  []string `json:"allowed_tools"`
	DisabledTools []string `json:"disabled_tools"`
	ReadOnly      bool     `json:"read_only"`
	TimeoutMS     int64    `json:"timeout_ms"` // 0: the usual
}

// UpstreamList is an answer with all of them.
type UpstreamList struct {
	Node      string     `json:"node"` // whose connections these are
	Upstreams []Upstream `json:"upstreams"`
}

// UpstreamChange is what somebody wants of an upstream. What is left out stays as it
// is, or usual.
type UpstreamChange struct {
	URL           *string             `json:"url,omitempty"`
	Transport     *string             `json:"transport,omitempty"`
	Protocol      *string             `json:"protocol,omitempty"`
	Headers       *map[string]*string `json:"headers,omitempty"` // all of them; null keeps what was sent until now
	Expose        *Expose             `json:"expose,omitempty"`
	AllowedTools  *[]string           `json:"allowed_tools,omitempty"`
	DisabledTools *[]string           `json:"disabled_tools,omitempty"`
	ReadOnly      *bool               `json:"read_only,omitempty"`
	TimeoutMS     *int64              `json:"timeout_ms,omitempty"`
}

// RemovedUpstream is what became of a removal.
type RemovedUpstream struct {
	Namespace    string `json:"namespace"`
	Removed      bool   `json:"removed"`
	ConfiguredAt string `json:"configured_at,omitempty"` // it stays listed as removed: the configuration has it
}

// Expose says which tools of an upstream our clients see: "none", "all" or names.
type Expose struct {
	All   bool
	Names []string
}

// MarshalJSON writes it as the configuration does.
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

// UnmarshalJSON reads it.
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
		return fault.New(fault.InvalidParams, "expose: %s is neither none nor all nor a list of names", text)
	}
	return nil
}

func (d *Server) listUpstreams(r *http.Request) (any, error) {
	return d.options.Upstreams.List(r.Context()), nil
}

func (d *Server) showUpstream(r *http.Request) (any, error) {
	return d.options.Upstreams.Get(r.Context(), r.PathValue("name"))
}

func (d *Server) addUpstream(r *http.Request) (any, error) {
	var body struct {
		Namespace string `json:"namespace"`
		UpstreamChange
	}
	if err := read(r, &body); err != nil {
		return nil, err
	}
	return d.options.Upstreams.Add(r.Context(), body.Namespace, body.UpstreamChange)
}

func (d *Server) editUpstream(r *http.Request) (any, error) {
	var body UpstreamChange
	if err := read(r, &body); err != nil {
		return nil, err
	}
	return d.options.Upstreams.Edit(r.Context(), r.PathValue("name"), body)
}

func (d *Server) removeUpstream(r *http.Request) (any, error) {
	return d.options.Upstreams.Remove(r.Context(), r.PathValue("name"))
}

func (d *Server) restoreUpstream(r *http.Request) (any, error) {
	return d.options.Upstreams.Restore(r.Context(), r.PathValue("name"))
}

func (d *Server) retryUpstream(r *http.Request) (any, error) {
	return d.options.Upstreams.Retry(r.Context(), r.PathValue("name"))
}
