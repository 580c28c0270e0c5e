package setup

import (
	"net/http"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/config"
)

// Sets is what the page shows of the sets of tools, and of what they can be made.
type Sets struct {
	File       string                `json:"file"`
	Changeable bool                  `json:"changeable"` // by our page, from where it was asked
	Sets       map[string]config.Set `json:"sets"`
	Lines      map[string]int        `json:"lines"` // of the file, by name
	SetCosts
}

// SetCosts is what the sets that exist for the caller cost, and what they can be made of.
type SetCosts struct {
	Costs []builtin.ToolSet `json:"costs"`
	Parts builtin.SetParts  `json:"parts"`
}

func (s *Service) sets(r *http.Request) (any, error) {
	costs, err := s.SetCosts(r.Context())
	if err != nil {
		return nil, err
	}
	current := s.Current()
	return Sets{current.File, s.offersPrograms(r), current.Sets, current.SetLines(), costs}, nil
}

// putSet adds a set, or replaces the one of that name.
func (s *Service) putSet(r *http.Request) (any, error) {
	var body struct {
		config.Set
		Replace bool `json:"replace,omitempty"`
	}
	if err := httpjson.Read(r, &body); err != nil {
		return nil, err
	}
	if len(body.Tools) == 0 {
		return nil, fault.New(fault.InvalidParams, "tools is empty").WithHint("name them, as namespace.tool or namespace.*")
	}
	return s.changeSet(r, func(name string) error {
		_, err := config.AddSet(s.Sources, name, body.Set, body.Replace)
		return err
	})
}

func (s *Service) removeSet(r *http.Request) (any, error) {
	if _, there := s.Current().Sets[r.PathValue("name")]; !there {
		return nil, fault.New(fault.NotFound, "there is no set %q", r.PathValue("name")).WithHint("`luanette set list` lists the sets")
	}
	return s.changeSet(r, func(name string) error { return config.RemoveSet(s.Sources, name) })
}

// changeSet changes the set of the path, and answers what it was before.
func (s *Service) changeSet(r *http.Request, change func(name string) error) (any, error) {
	if err := s.mayAddPrograms(r); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	var before *config.Set
	if set, there := s.Current().Sets[name]; there {
		before = &set
	}
	if err := change(name); fault.CodeOf(err) == fault.Config { // the file is well, the request is not
		return nil, fault.Wrap(fault.InvalidParams, err, "").WithHint("%s", fault.HintOf(err))
	} else if err != nil {
		return nil, err
	}
	s.Reload(r.Context()) // it records the change
	return map[string]*config.Set{"before": before}, nil
}
