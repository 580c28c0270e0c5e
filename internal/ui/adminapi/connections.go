package adminapi

import (
	"net/http"

	"github.com/luanette/luanette/internal/sandbox/egress"
)

// Egress knows the network connections of sandboxed upstreams.
type Egress interface {
	Connections(name string) []egress.Connection
	Hosts(name string) []egress.Host
}

// UpstreamConnections is the response with the connections of one upstream.
type UpstreamConnections struct {
	Connections []egress.Connection `json:"connections"` // open and recent ones, the newest first
	Hosts       []egress.Host       `json:"hosts"`       // all destinations since the server's start
}

func (s *Server) listConnections(r *http.Request) (any, error) {
	name := r.PathValue("name")
	if _, err := s.options.Upstreams.Get(r.Context(), name); err != nil {
		return nil, err
	}
	list := UpstreamConnections{Connections: []egress.Connection{}, Hosts: []egress.Host{}}
	if known := s.options.Egress; known != nil {
		list.Connections, list.Hosts = append(list.Connections, known.Connections(name)...), append(list.Hosts, known.Hosts(name)...)
	}
	return list, nil
}
