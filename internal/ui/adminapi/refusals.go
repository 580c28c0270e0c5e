package adminapi

import (
	"net/http"
	"strings"

	"github.com/luanette/luanette/internal/sandbox/profile"
)

// Sandbox knows what the programs of upstreams were refused.
type Sandbox interface {
	Refusals(name string) ([]profile.Refusal, error)
}

// UpstreamRefusals is the response with what the program of one upstream was refused in
// its last run, the oldest first.
type UpstreamRefusals struct {
	Refusals []profile.Refusal `json:"refusals"`
}

func (s *Server) listRefusals(r *http.Request) (any, error) {
	name := r.PathValue("name")
	upstream, _, _ := strings.Cut(name, ".") // commands.NAME is a program of the upstream commands
	if _, err := s.options.Upstreams.Get(r.Context(), upstream); err != nil {
		return nil, err
	}
	list := UpstreamRefusals{Refusals: []profile.Refusal{}}
	if s.options.Sandbox == nil {
		return list, nil
	}
	refused, err := s.options.Sandbox.Refusals(name)
	list.Refusals = append(list.Refusals, refused...)
	return list, err
}
