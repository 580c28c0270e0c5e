package server

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/builtin/servertools"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/govern/peerview"
	"github.com/luanette/luanette/internal/govern/pin"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/offers"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/observe/history"
	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/scripting/script/startup"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/overlay"
	"github.com/luanette/luanette/internal/tools/search"
	"github.com/luanette/luanette/internal/ui/login"
)

// tooling is where tools come from and what runs them.
type tooling struct {
	*sources
	menu         *builtin.Menu
	loginService *login.Service
	scripts      *scripts
	hooks        atomic.Pointer[startup.Hooks] // of startup.lua
	localMusic   *hootenanny.Backend           // nil if it is switched off
}

func openTooling(ctx context.Context, p *process, s *storage, g *guards) (*tooling, error) {
	src, err := openSources(ctx, p, s, g)
	if err != nil {
		return nil, err
	}
	scripts, err := openScripts(ctx, p, s, g, src)
	if err != nil {
		return nil, err
	}
	src.approver.scripts = scripts // the catalog's calls wait for approvals as scripts do, and scripts call the catalog
	src.catalog.Add(scripts.published)
	src.catalog.Add(src.upstreams.Overlay)
	music, err := openMusic(ctx, p, s, src)
	return &tooling{
		sources: src, scripts: scripts, localMusic: music, loginService: newLogins(p, g, src.upstreams),
		menu: builtin.NewMenu(src.catalog.Exposed(), builtin.MenuOptions{Menu: p.config.MCP.Menu, Scripts: p.config.MCP.ListScripts, Apps: p.config.MCP.ListApps, Own: p.isOwn, InSet: p.menuOfSet}),
	}, err
}

// sources are where tools come from.
type sources struct {
	catalog       *catalog.Catalog
	upstreams     *upstreamset.Set
	pins          *pin.Guard
	links         *offers.Links
	approvals     *approval.Store
	approver      *approver
	history       *history.Calls
	musicIsRemote func() bool // whether an upstream has the namespace of the music tools
}

// awaitTools waits until an upstream was tried, so that its tools are known.
func (s *sources) awaitTools(ctx context.Context, namespace string) {
	s.upstreams.AwaitAttempt(ctx, principal.Of(ctx).Namespace(namespace, s.upstreams.Has))
}

func openSources(ctx context.Context, p *process, s *storage, g *guards) (*sources, error) {
	manager := newManager(p, s, g) //nolint:contextcheck // what it starts lives as long as the server
	// What follows finds the rest in src: the pins have the catalog list tools anew, and its calls ask the pins.
	src := &sources{links: &offers.Links{}, approver: &approver{policy: g.policy, circles: &p.circles}, musicIsRemote: remoteMusic(p, manager)}
	pins, err := openPins(ctx, p, manager, func(ctx context.Context, pins ...*pin.Pin) {
		src.catalog.Refresh(ctx)
		for _, p := range pins {
			g.audit.RecordAction(ctx, "pin."+string(p.State()), p.Upstream+"."+p.Name, []byte(p.Digest))
		}
	})
	if err != nil {
		return nil, err
	}
	src.pins = pins
	named := overlay.New(pins, manager)
	o := catalogOptions(p, s, g, manager)
	o.Ready = p.awaitStartup
	o.Steps = callSteps(s, g, src, named)
	o.Limits = func(namespace string) catalog.Limits { return p.limits(namespace, src.musicIsRemote()) }
	o.WhyHidden = func(name string) error {
		if err := pins.WhyHidden(name); err != nil || p.config.Music.Enabled || src.musicIsRemote() {
			return err
		}
		return hootenanny.WhyOff(name)
	}
	// The upstreams list their tools in the catalog, which asks them who sees those.
	o.Own = func(ctx context.Context) func(*tool.Info) (*tool.Info, bool) { return src.upstreams.Own(ctx) }
	o.Hides = func(who principal.Principal) func(*tool.Info) bool { //nolint:contextcheck // it reads what is known
		return src.upstreams.Hides(who, g.policy.Hides(who))
	}
	if p.options.OnDemand {
		o.Load = func(ctx context.Context, name string) { src.upstreams.Start(ctx, name) }
	}
	src.catalog, src.history = catalog.New(o), o.History
	if src.upstreams, err = openUpstreams(ctx, p, upstreamset.Options{
		Manager: manager, Overlay: named, Catalog: src.catalog, Pins: pins, Warnings: pins.Warnings, Audit: g.audit.RecordAction,
	}); err != nil {
		return nil, err
	}
	src.approver.catalog = src.catalog // its calls wait for approvals, which are about its tools
	src.approvals, err = openApprovals(ctx, p, g, s.deliveries, src.approver)
	src.approver.approvals = src.approvals
	return src, err
}

// newManager returns what connects to upstreams.
func newManager(p *process, s *storage, g *guards) *upstream.Manager {
	installed := p.config.Packages(g.sandbox, p.log)
	p.runBackground(func(context.Context) { installed.CleanUp() })
	manager := upstream.New(upstream.Options{
		Packages: installed,
		Person:   g.owners().Person, Personal: g.personal.Get,
		Log: p.log, Events: p.bus,
		ClientVersion: p.options.Version,
		OnDemand:      p.options.OnDemand,
		CAFile:        p.config.CAFile,
		CacheDir:      filepath.Join(p.config.Data, "upstreams"),
		Getenv:        p.options.Env.Lookup, Environ: p.options.Env.Pairs,
		StartTimeout: time.Duration(p.config.Starts.Timeout), ParallelStarts: p.config.Starts.Parallel,
		Idle:        time.Duration(p.config.Starts.Idle),
		Secret:      p.secrets.Find,
		Login:       g.logins,
		Tasks:       p.tasks.Keeper(),
		Files:       s.contents,
		StopTimeout: graceTimeout,
		DialControl: p.outbound().Control, GuardedControl: netguard.Outbound{Allowed: p.config.MCP.AllowedHosts, Loopback: false}.Control,
		Proxy:   p.proxy(),
		Sandbox: g.sandbox,
		Tracer:  p.telemetry.Tracer("upstream"), Meter: p.telemetry.Meter("upstream"), Propagator: telemetry.Propagator(),
	})
	p.closeLast.plain("upstreams", manager.Close)
	watch := []func(func()) (stop func()){g.keys.Watch}
	if g.people != nil {
		watch = append(watch, g.people.Store.Watch)
	}
	p.runBackground(func(ctx context.Context) { g.personal.Follow(ctx, manager, watch...) })
	p.tasks.Start(manager) // upstreams keep their tasks there, and it asks upstreams about them
	p.closeLast.plain("tasks", p.tasks.Close)
	return manager
}

// openPins opens the pins and the guard that checks the tools of the upstreams.
func openPins(ctx context.Context, p *process, manager *upstream.Manager, decided func(context.Context, ...*pin.Pin)) (*pin.Guard, error) {
	return pin.New(ctx, p.store, manager, pin.Options{
		Settings: p.config.PinSettings(), Own: p.ownNames,
		Target: func(namespace string) string {
			status, _ := manager.Status(namespace)
			return status.Target
		},
		Personal: manager.Personal, Decided: decided, Events: p.bus, Log: p.log,
	})
}

// catalogOptions are the options of the catalog, without those that need the pins and the
// upstreams.
func catalogOptions(p *process, s *storage, g *guards, manager *upstream.Manager) catalog.Options {
	return catalog.Options{
		Bus: p.bus, Log: p.log, Private: upstreamset.IsPrivate, Special: isMusic,
		Reserved: func(who principal.Principal, ref tool.Ref) bool { return isReserved(g.policy, who, ref) },
		InSet:    p.inSet,
		Known: func(namespace string) catalog.Known { // what its server says about itself, and the results of its tools so far
			return catalog.Known{
				Context: search.Context{Server: manager.Instructions(namespace), Fields: s.results.Fields},
				Learned: s.results.Changes(namespace),
			}
		},
		Learned: func(ref tool.Ref) json.RawMessage {
			learned, _ := s.results.Learned(ref)
			return learned.Schema
		},
		Usage: s.usage, History: history.New(nil),
		Tracer: p.telemetry.Tracer("catalog"), Meter: p.telemetry.Meter("catalog"),
	}
}

// openUpstreams opens the set of upstreams over the connection manager.
func openUpstreams(ctx context.Context, p *process, o upstreamset.Options) (*upstreamset.Set, error) {
	store, err := upstreamstore.Open(ctx, p.store, secret.Box{Key: p.storedKey(), RecoveryHint: "add the upstream again with `luanette upstream add`"})
	if err != nil {
		return nil, err
	}
	o.Store, o.Persistent, o.Address, o.Events, o.Log = store, p.options.Jobs, p.address, p.bus, p.log
	return upstreamset.New(ctx, o)
}

// limits are the limits of a namespace's calls. Tools of this process have none.
func (p *process) limits(namespace string, remoteMusic bool) catalog.Limits {
	if isMusic(namespace) && !remoteMusic {
		return catalog.Limits{Concurrent: -1, Failures: -1}
	}
	u := p.current().Upstreams[namespace]
	return catalog.Limits{Concurrent: u.Concurrent, Rate: u.Rate, Each: upstream.Spec{Settings: upstream.Settings{Login: u.Login}}.Personal()}
}

// revert returns how the configuration in effect says that a tool is undone.
func (p *process) revert(ref tool.Ref) (tool.Revert, bool) { return p.current().Revert(ref) }

// watchUpstreams applies upstreams that users add or remove on other nodes, and in other
// processes that use the same file, until ctx ends.
func (srv *Server) watchUpstreams(ctx context.Context) {
	if srv.upstreams.Persistent {
		srv.poll(ctx, upstreamstore.Topic, srv.upstreams.Poll)
	}
}

// watchPins follows the decisions of other processes.
func (srv *Server) watchPins(ctx context.Context) {
	srv.poll(ctx, pin.Topic, func(ctx context.Context) error {
		changed, err := srv.pins.Poll(ctx)
		if changed {
			srv.catalog.Refresh(ctx)
		}
		return err
	})
}

// newLogins returns the service that logs in to upstreams.
func newLogins(p *process, g *guards, upstreams *upstreamset.Set) *login.Service {
	o := login.ServiceOptions{
		Manager: upstreams.Manager, Hidden: upstreamset.IsPrivate, RedirectURL: p.redirectURL, Audit: g.audit.RecordAction, Go: p.runBackground, Log: p.log,
	}
	if g.people != nil {
		o.Session = g.people.Session
	}
	return login.NewService(g.logins, o)
}

// watchLogins connects upstreams for which a login was stored elsewhere: by the
// command line, or on another node.
func (srv *Server) watchLogins(ctx context.Context) {
	srv.runBackground(func(ctx context.Context) { // a login may have been stored just before the upstream began to wait
		sub := srv.bus.Subscribe(event.Options{Types: []string{"upstream.needs_auth"}, Mode: event.Latest})
		defer sub.Close()
		for range sub.All(ctx) {
			_ = srv.loginService.Check(ctx) // polling checks again
		}
	})
	srv.runBackground(srv.logins.RunRevocations)
	srv.poll(ctx, oauth.Topic, srv.loginService.Check)
}

// orgUpstreams are the upstreams that organisations add for themselves.
func (in *parts) orgUpstreams() *upstreamset.Orgs {
	return &upstreamset.Orgs{
		Set: in.upstreams, CheckURL: servertools.AllowOrgHosts(in.config.MCP.AllowedHosts),
		Most: func(org string) int { return in.current().MaxUpstreams(org) },
	}
}

// peers shows single upstreams to the hub, for /mcp/NAME.
type peers struct {
	*upstreamset.Set
	parts *parts
}

// Peer returns the view of one upstream.
func (p peers) Peer(ctx context.Context, name string) (hub.Peer, bool) {
	relayed, ok := p.Relayed(ctx, name)
	if !ok {
		return nil, false
	}
	return peerview.New(p.parts.withMusic(name, relayed), name, peerview.Options{
		Catalog: p.Catalog, Overlay: p.Overlay, Pins: p.parts.pins,
		Transformed: func() bool {
			hooks := p.parts.hooks.Load()
			return hooks != nil && hooks.SeesTools()
		},
	}), true
}
