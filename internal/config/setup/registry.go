package setup

import (
	"net/http"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/clientfile"
	"github.com/luanette/luanette/internal/mcp/registry"
)

// Listing is a server of the registry.
type Listing struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description"`
	Version     string          `json:"version"`
	Website     string          `json:"website,omitempty"`
	Status      string          `json:"status,omitempty"` // deprecated, or ""
	Namespace   string          `json:"namespace"`        // the name that it gets here
	Runs        string          `json:"runs,omitempty"`   // the command that starts it, or its URL
	Program     bool            `json:"program"`          // it is started here
	Needs       []registry.Need `json:"needs"`
	Problem     string          `json:"problem,omitempty"` // why it cannot be added
}

// maxFound is how many servers a search returns.
const maxFound = 50

func (s *Service) search(r *http.Request) (any, error) {
	found, err := s.Registry.Search(r.Context(), strings.Fields(r.URL.Query().Get("words")))
	if err != nil {
		return nil, err
	}
	list := []Listing{}
	for _, l := range found[:min(len(found), maxFound)] {
		list = append(list, listingOf(l))
	}
	return map[string]any{"servers": list, "total": len(found)}, nil
}

// hidden shows that a value is given, without it.
func hidden(string, string) (string, error) { return secret.Hidden, nil }

func listingOf(l registry.Listing) Listing {
	view := Listing{
		Name: l.Server.Name, Title: l.Server.Title, Description: l.Server.Description, Version: l.Server.Version,
		Website: l.Server.WebsiteURL, Status: l.Status(), Namespace: namespaceOf(l.Server), Needs: []registry.Need{},
	}
	launch, err := l.Server.Launch(false, registry.Values{Store: hidden})
	if err != nil {
		view.Problem = err.Error()
		return view
	}
	view.Program = launch.Command != ""
	view.Runs = launch.URL
	if view.Program {
		view.Runs = strings.Join(append([]string{launch.Command}, launch.Args...), " ")
	}
	view.Needs = append(view.Needs, launch.Needs...)
	return view
}

// namespaceOf is the namespace that a server gets: the last part of its name.
func namespaceOf(s registry.Server) string {
	return clientfile.Namespace(s.Name[strings.LastIndexByte(s.Name, '/')+1:])
}

// addListed adds a server of the registry. Secrets are stored in files that only the
// owner can read.
func (s *Service) addListed(r *http.Request) (any, error) {
	var body struct {
		Name      string                       `json:"name"`
		Namespace string                       `json:"namespace,omitempty"`
		Values    map[string]map[string]string `json:"values,omitempty"` // by kind and name of what it needs
	}
	if err := httpjson.Read(r, &body); err != nil {
		return nil, err
	}
	if body.Name == "" {
		return nil, fault.New(fault.InvalidParams, "name is missing").WithHint("names look like io.github.owner/server")
	}
	listing, err := s.Registry.Get(r.Context(), body.Name, "")
	if err != nil {
		return nil, err
	}
	if body.Namespace == "" {
		body.Namespace = namespaceOf(listing.Server)
	}
	preview, err := listing.Server.Launch(false, registry.Values{Given: body.Values, Store: hidden})
	if err != nil {
		return nil, err
	}
	if len(preview.Missing) > 0 {
		return nil, fault.New(fault.InvalidParams, "%s needs %s", body.Name, preview.Missing[0].Name).WithHint("give a value for it")
	}
	if preview.Command != "" {
		if err := s.mayAddPrograms(r); err != nil {
			return nil, err
		}
	}
	if _, err := newUpstream(body.Namespace, preview).Check(s.Sources); err != nil {
		return nil, err // before secrets are stored
	}
	store := func(key, value string) (string, error) {
		return config.StoreSecret(s.Sources, clientfile.Namespace(body.Namespace+"-"+key), secret.New(value))
	}
	launch, err := listing.Server.Launch(false, registry.Values{Given: body.Values, Store: store})
	if err != nil {
		return nil, err
	}
	return s.add(r.Context(), newUpstream(body.Namespace, launch))
}

func newUpstream(name string, l registry.Launch) config.NewUpstream {
	entry := config.Upstream{Command: l.Command, Args: l.Args, Env: l.Env, URL: l.URL, Transport: l.Transport, Headers: l.Headers}
	return config.NewUpstream{Name: name, Entry: entry, Propose: true}
}
