package setup

import (
	"net/http"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/clientfile"
)

// Candidate is a server of another client.
type Candidate struct {
	Server  string             `json:"server"` // its name there
	Name    string             `json:"name"`   // its name here
	Client  string             `json:"client"`
	File    string             `json:"file"`
	Target  string             `json:"target"` // its command or URL
	State   config.ImportState `json:"state"`
	Problem string             `json:"problem,omitempty"`
	Inputs  []clientfile.Input `json:"inputs,omitempty"` // values that it needs
}

// found returns the servers of the clients on this machine.
func (s *Service) found() ([]config.Candidate, error) {
	return s.classified(clientfile.Discover(s.System, clientfile.Clients))
}

func (s *Service) classified(found []clientfile.Found) ([]config.Candidate, error) {
	loaded, err := config.LoadOrNew(s.Sources)
	if err != nil {
		return nil, err
	}
	return loaded.Candidates(found, s.Sources.Env)
}

func (s *Service) candidates(r *http.Request) (any, error) {
	if !s.offersPrograms(r) {
		return nil, s.noPrograms()
	}
	all, err := s.found()
	if err != nil {
		return nil, err
	}
	list := []Candidate{}
	for _, c := range all {
		list = append(list, Candidate{
			Server: c.Key, Name: c.Name, Client: c.File.Client.Title, File: c.File.Path, Target: c.Spec.Target(),
			State: c.State, Problem: c.Problem, Inputs: c.Missing(s.Sources, nil),
		})
	}
	return map[string]any{"servers": list}, nil
}

// importNamed imports servers of other clients by their names here, or those of a text
// such as the files of clients have.
func (s *Service) importNamed(r *http.Request) (any, error) {
	var body struct {
		Names  []string          `json:"names,omitempty"`
		Text   string            `json:"text,omitempty"`
		Inputs map[string]string `json:"inputs,omitempty"`
	}
	if err := httpjson.Read(r, &body); err != nil {
		return nil, err
	}
	if len(body.Names) == 0 && body.Text == "" {
		return nil, fault.New(fault.InvalidParams, "names and text are missing").WithHint("give the names of servers, or a text such as the files of clients have")
	}
	if err := s.mayAddPrograms(r); err != nil {
		return nil, err
	}
	all, err := s.chosen(body.Text, body.Names)
	if err != nil {
		return nil, err
	}
	defer s.Reload(r.Context()) // also after an error: those before it are there
	added := []Added{}
	for _, c := range all {
		file, err := config.Import(r.Context(), s.Sources, c, body.Inputs)
		if err != nil {
			return nil, err
		}
		s.Audit(r.Context(), "upstream.add", c.Name, []byte(c.Spec.Target()))
		added = append(added, Added{c.Name, file, config.SandboxNotes(s.Sources, c.Name)})
	}
	return map[string]any{"added": added}, nil
}

// chosen returns the servers of a text, or those of other clients with these names, that
// can be imported; at least one.
func (s *Service) chosen(text string, names []string) ([]config.Candidate, error) {
	all, err := s.found()
	if text != "" {
		all, err = s.pasted(text)
	}
	if err != nil {
		return nil, err
	}
	chosen := slices.DeleteFunc(slices.Clone(all), func(c config.Candidate) bool {
		isNew := c.State == config.ImportNew || c.State == config.ImportDisabled
		return !isNew || text == "" && !slices.Contains(names, c.Name)
	})
	if len(chosen) == 0 {
		return nil, fault.New(fault.NotFound, "nothing to import").WithHint("%s", whyNothing(all))
	}
	return chosen, nil
}

// whyNothing says why none of the servers is imported.
func whyNothing(all []config.Candidate) string {
	for _, c := range all {
		switch c.State {
		case config.ImportKnown, config.ImportTwice:
			return c.Key + " is known as " + c.Name + " already"
		case config.ImportInvalid:
			return c.Key + ": " + c.Problem
		}
	}
	return `paste {"mcpServers": {"NAME": {"command": "…"}}}`
}

// pasted returns the servers of a text.
func (s *Service) pasted(text string) ([]config.Candidate, error) {
	servers, err := clientfile.Parse([]byte(text), clientfile.SourceOf("pasted.json", s.System.Home))
	if err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "read the pasted text").WithHint("paste JSON such as the files of clients have")
	}
	file := clientfile.File{Client: clientfile.Client{Name: "pasted", Title: "the pasted text"}}
	return s.classified([]clientfile.Found{{File: file, Servers: servers}})
}
