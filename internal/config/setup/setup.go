// Package setup is the HTTP API with which the web page changes the configuration: it
// adds servers of the registry, of other clients and by their commands, changes settings,
// policy rules, sets of tools, the model of the chat and the versions of packages, and says how clients connect.
package setup

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/clientfile"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/registry"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
)

// Options are what the API works with.
type Options struct {
	Sources  config.Sources
	System   clientfile.System
	Registry registry.Client
	Address  func() string // the URL of this server
	// Programs says that programs may be added: whoever adds one decides what this machine
	// runs.
	Programs bool
	Reload   func(ctx context.Context) // applies the changed file
	Audit    func(ctx context.Context, action, subject string, detail []byte)
	Current  func() *config.Loaded                                  // the configuration in effect
	TryModel func(ctx context.Context, m *config.ChosenModel) error // whether it answers
	SetCosts func(ctx context.Context) (SetCosts, error)
	Connect  func() upstream.Options // with which other versions of packages are tried
}

// Service answers /api/v1/setup.
type Service struct {
	Options

	editing   sync.Mutex                 // held while the file is changed
	upgrading sync.Mutex                 // held while another version of a package is tried
	mu        sync.Mutex                 // guards the rest
	removed   map[string]config.Upstream // since the start, to bring them back
}

// New returns a service.
func New(o Options) *Service { return &Service{Options: o, removed: map[string]config.Upstream{}} }

// For returns a service for the configuration of a running server; o has what that does
// not say.
func For(loaded *config.Loaded, env config.Environment, o Options) *Service {
	folder, _ := os.Getwd() // without it no files of projects are found
	o.Sources = config.Sources{File: loaded.File, Env: env}
	o.System = clientfile.System{OS: runtime.GOOS, Home: cmp.Or(env["HOME"], env["USERPROFILE"]), Dir: folder, Getenv: func(name string) string { return env[name] }}
	o.Registry = registry.Client{URL: loaded.Registry.URL, HTTP: &http.Client{Timeout: registryTimeout}}
	o.Programs = loaded.HUD.AddPrograms && config.ListensLocally(loaded.Listen)
	return New(o)
}

const registryTimeout = time.Minute

// Routes are the paths of the API and the scope that each requires.
func (s *Service) Routes() []principal.Route {
	route := func(pattern string, scope principal.Scope, handle func(r *http.Request) (any, error)) principal.Route {
		return principal.Route{Pattern: pattern, Scope: scope, MaxBody: maxBody, Serve: s.alone(handle)}
	}
	version := func(pattern string, handle func(r *http.Request) (any, error)) principal.Route {
		return principal.Route{Pattern: pattern, Scope: principal.Admin, MaxBody: maxBody, Serve: s.oneByOne(handle)}
	}
	return []principal.Route{
		route("GET /api/v1/setup", principal.Read, s.show),
		route("GET /api/v1/setup/packages", principal.Admin, s.packages),
		version("POST /api/v1/setup/packages/{name}/upgrade", s.upgradePackage),
		version("POST /api/v1/setup/packages/{name}/rollback", s.rollbackPackage).Reads(principal.NoBody),
		route("GET /api/v1/setup/registry", principal.Admin, s.search),
		route("POST /api/v1/setup/registry", principal.Admin, s.addListed),
		route("GET /api/v1/setup/settings", principal.Admin, s.settings),
		route("PATCH /api/v1/setup/settings", principal.Admin, s.changeSettings),
		route("POST /api/v1/setup/rules", principal.Admin, s.addRule),
		route("POST /api/v1/setup/rules/remove", principal.Admin, s.removeRule),
		route("GET /api/v1/setup/sets", principal.Admin, s.sets),
		route("PUT /api/v1/setup/sets/{name}", principal.Admin, s.putSet),
		route("DELETE /api/v1/setup/sets/{name}", principal.Admin, s.removeSet),
		route("GET /api/v1/setup/model", principal.Admin, s.models),
		route("PUT /api/v1/setup/model", principal.Admin, s.setModel),
		route("GET /api/v1/setup/import", principal.Admin, s.candidates),
		route("POST /api/v1/setup/import", principal.Admin, s.importNamed),
		route("POST /api/v1/setup/servers", principal.Admin, s.addServer),
		route("GET /api/v1/setup/servers/{name}", principal.Admin, s.definition),
		route("PATCH /api/v1/setup/servers/{name}", principal.Admin, s.editServer),
		route("DELETE /api/v1/setup/servers/{name}", principal.Admin, s.remove),
		route("POST /api/v1/setup/servers/{name}/restore", principal.Admin, s.restore).Reads(principal.NoBody),
	}
}

// maxBody is the largest request body in bytes.
const maxBody = 256 << 10

// alone serves changes of the configuration one after the other.
func (s *Service) alone(handle func(r *http.Request) (any, error)) func(r *http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		if r.Method != http.MethodGet {
			s.editing.Lock()
			defer s.editing.Unlock()
		}
		return handle(r)
	}
}

// mayAddPrograms refuses requests that do not come from our own page on this machine: who adds
// a program decides what it runs.
func (s *Service) mayAddPrograms(r *http.Request) error {
	if !s.isOwnPage(r.Host, r.Header.Get("Origin")) {
		return s.noPrograms()
	}
	return nil
}

func (s *Service) noPrograms() error {
	return fault.New(fault.Denied, "programs are added only from this page on the machine of a server that listens on a loopback address").
		WithHint("use `luanette upstream add`, `luanette registry add` or `luanette import` on the server; hud.add_programs allows it here")
}

// isOwnPage tells whether programs may be added, and a request is of our page.
func (s *Service) isOwnPage(host, origin string) bool {
	from, err := url.Parse(origin)
	return s.Programs && err == nil && from.Host != "" && from.Host == host && netguard.IsLoopback(from.Hostname())
}

// offersPrograms tells whether our page can add programs; browsers do not send an Origin
// with GET.
func (s *Service) offersPrograms(r *http.Request) bool { return s.isOwnPage(r.Host, "http://"+r.Host) }

// Added is a server that was added to the configuration file.
type Added struct {
	Namespace string   `json:"namespace"`
	File      string   `json:"file"`
	Notes     []string `json:"notes,omitempty"` // what its sandbox means
}

// add adds a server to the file and applies it.
func (s *Service) add(ctx context.Context, added config.NewUpstream) (Added, error) {
	file, err := config.AddUpstream(ctx, s.Sources, added)
	if err != nil {
		return Added{}, err
	}
	s.Audit(ctx, "upstream.add", added.Name, []byte(added.Entry.Command+added.Entry.URL))
	s.Reload(ctx)
	return Added{added.Name, file, config.SandboxNotes(s.Sources, added.Name)}, nil
}

// SetTools changes the settings of the tools of a server of the configuration.
func (s *Service) SetTools(ctx context.Context, server string, tools upstreamset.ToolSettings) error {
	s.editing.Lock()
	defer s.editing.Unlock()
	if err := config.SetTools(ctx, s.Sources, server, tools); err != nil {
		return err
	}
	s.Audit(ctx, "upstream.edit", server, nil)
	s.Reload(ctx)
	return nil
}
