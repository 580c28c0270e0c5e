// Package server builds every part of the program from a configuration, connects the
// parts and runs them until it is stopped.
package server

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/filewatch"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/builtin/approvaltools"
	"github.com/luanette/luanette/internal/builtin/jobtools"
	"github.com/luanette/luanette/internal/builtin/scripttools"
	"github.com/luanette/luanette/internal/builtin/searchtools"
	"github.com/luanette/luanette/internal/builtin/servertools"
	"github.com/luanette/luanette/internal/chat/chatapi"
	"github.com/luanette/luanette/internal/chat/openaiapi"
	"github.com/luanette/luanette/internal/chat/turn"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/setup"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/govern/erasure"
	"github.com/luanette/luanette/internal/govern/pin"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/jobs/musicjob"
	"github.com/luanette/luanette/internal/jobs/webhook"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/observe/history"
	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script/startup"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/overlay"
	"github.com/luanette/luanette/internal/tools/toolset"
	"github.com/luanette/luanette/internal/ui/login"
	"github.com/luanette/luanette/internal/ui/web"
)

// Options are the settings of a server that are not part of its configuration.
type Options struct {
	Version  string
	Stderr   io.Writer          // logs and the start-up lines; standard output belongs to protocols
	Env      config.Environment // for variables that parts of the configuration name
	Jobs     bool               // run jobs, including those that a crash interrupted; not for a command that builds a server for one call
	OnDemand bool               // start an upstream when a call or a script first uses it
	Archive  bool               // without Jobs: allow reading and replaying them

	pollInterval time.Duration // see poll; zero is the default
}

// Server is the whole program. After Build everything runs except the endpoints,
// which Serve or ServeStdio starts. Both close the server when they return; a caller
// of neither must call Close.
type Server struct {
	*process
	*storage
	*guards
	tooling
	endpoints
	reloading
	lifecycle
}

// tooling is where tools come from and what runs them.
type tooling struct {
	history      *history.Calls
	upstreams    *upstreamset.Set
	catalog      *catalog.Catalog
	scripts      *scripts
	temp         *host.TempRoot                // of scripts
	hooks        atomic.Pointer[startup.Hooks] // of startup.lua
	localMusic   *hootenanny.Backend           // nil if it is switched off
	jobs         *job.Queue                    // nil if this process has no jobs
	pins         *pin.Guard
	approvals    *approval.Store
	loginService *login.Service
	webhooks     webhook.Table
	menu         *builtin.Menu
}

// endpoints serve clients.
type endpoints struct {
	hub       *hub.Hub
	dashboard *web.Server
	setup     *setup.Service
	erasure   *erasure.Service // nil if nobody can sign in
	turns     *turn.Service    // nil unless the server serves
	chat      *chatapi.Handler
	openAI    *openaiapi.Handler
}

// reloading follows changes of the configuration's files.
type reloading struct {
	watching  *filewatch.Watcher // nil: not watched
	reloads   sync.Mutex         // held during a reload; guards announced
	announced *config.Loaded     // the configuration that was last announced
}

// lifecycle starts and ends the server.
type lifecycle struct {
	startupDone   chan struct{}          // closed when startup.lua has run
	draining      atomic.Bool            // the server is shutting down
	backupFailure atomic.Pointer[string] // why the latest backup was not made; nil: it was
}

// Build builds every part. Upstreams connect in the background.
func Build(ctx context.Context, config *config.Loaded, options Options) (*Server, error) {
	bus := event.New(event.BusOptions{Keep: config.HUD.RecentEvents})
	p, background, err := newProcess(ctx, config, options, bus, telemetry.Options{
		Service: "luanette", Environment: config.Telemetry.Environment, Arguments: config.Telemetry.Arguments,
		Tap: web.NewLogHandler(bus), RecentTraces: config.HUD.RecentTraces, Scrape: config.ServesMetrics(),
	})
	if err != nil {
		return nil, err
	}
	srv := &Server{process: p, tooling: tooling{history: history.New(nil)}, lifecycle: lifecycle{startupDone: make(chan struct{})}}
	if err := srv.build(ctx); err != nil {
		return nil, errors.Join(err, srv.Close(ctx))
	}
	srv.runNode(background)
	srv.runBackups()
	for _, run := range []func(context.Context){srv.upstreams.Follow, srv.keys.Run, srv.watchApprovals, srv.audit.RunRetention, srv.watchPins, srv.watchLogins, srv.watchUpstreams} {
		srv.runBackground(run)
	}
	srv.startScripts(ctx)
	close(srv.startupDone)
	srv.watchConfig(ctx)
	for _, run := range []func(context.Context){srv.scripts.folder.Watch(ctx), srv.people.Run, srv.erasure.Run, srv.orgs.Run, srv.shares.Run, srv.collectContents} {
		if run != nil {
			srv.runBackground(run)
		}
	}
	return srv, nil
}

// build opens the stores and builds the parts and endpoints.
func (srv *Server) build(ctx context.Context) error {
	var err error
	if srv.guards, err = openGuards(ctx, srv.process); err != nil {
		return err
	}
	if srv.storage, err = openStorage(ctx, srv.process, srv.guards); err != nil {
		return err
	}
	srv.orgs.Stored = storedOf(srv.contents, srv.orgs) // the quota is of what is stored, and limits it
	if err := srv.buildTools(ctx); err != nil {
		return err
	}
	if err := srv.apply(ctx, srv.config); err != nil {
		return err
	}
	if srv.options.Jobs || srv.options.Archive {
		if err := srv.openJobs(ctx); err != nil {
			return err
		}
		if srv.localMusic != nil {
			srv.localMusic.SetJobs(musicjob.Queue{Jobs: srv.jobs})
		}
	}
	srv.registerTools()
	srv.pins.Set(srv.config.PinSettings()) // now the names of our own tools are known
	srv.catalog.Refresh(ctx)
	srv.newHub()                                                                 //nolint:contextcheck // what it watches lives as long as the server
	defer srv.closeFirst.within("the MCP endpoint", flushTimeout, srv.hub.Close) // before the chat
	if !srv.options.Jobs {
		return nil
	}
	if err := srv.openChat(ctx); err != nil {
		return err
	}
	return srv.openErasure(ctx)
}

// upstreamOptions are what connections to upstreams use.
func (srv *Server) upstreamOptions() upstream.Options {
	return upstream.Options{
		Person: srv.owners().Person, Personal: srv.personal.Get,
		Log: srv.log, Events: srv.bus,
		ClientVersion: srv.options.Version,
		OnDemand:      srv.options.OnDemand,
		CAFile:        srv.config.CAFile,
		CacheDir:      filepath.Join(srv.config.Data, "upstreams"),
		Getenv:        srv.options.Env.Lookup, Environ: srv.options.Env.Pairs,
		StartTimeout: time.Duration(srv.config.Starts.Timeout), ParallelStarts: srv.config.Starts.Parallel,
		Secret:      srv.secrets.Find,
		Login:       srv.logins,
		Tasks:       srv.tasks.Keeper(),
		Files:       srv.contents,
		StopTimeout: graceTimeout,
		DialControl: srv.outbound().Control, GuardedControl: netguard.Outbound{Allowed: srv.config.MCP.AllowedHosts, Loopback: false}.Control,
		Proxy:   srv.proxy(),
		Sandbox: srv.sandbox,
		Tracer:  srv.telemetry.Tracer("upstream"), Meter: srv.telemetry.Meter("upstream"), Propagator: telemetry.Propagator(),
	}
}

// buildTools builds the connection manager, the catalog and the scripts that use both.
func (srv *Server) buildTools(ctx context.Context) error {
	manager := upstream.New(srv.upstreamOptions())
	srv.closeLast.plain(manager.Close)
	srv.followPeople(manager)
	srv.tasks.Start(manager) //nolint:contextcheck // it lives as long as the server
	srv.closeLast.plain(srv.tasks.Close)
	if err := srv.openPins(ctx, manager); err != nil {
		return err
	}
	tools := overlay.New(srv.pins, manager)
	srv.catalog = catalog.New(catalog.Options{
		Steps: srv.callSteps(tools), WhyHidden: srv.whyHidden, Hides: srv.hides, Own: srv.own, Load: srv.loader(),
		Bus: srv.bus, Log: srv.log, Limits: srv.limits, Private: upstreamset.IsPrivate, Reserved: srv.isReserved, Special: isMusic,
		Known: srv.known(manager), Usage: srv.usage, Meaning: srv.meaning, History: srv.history,
		Tracer: srv.telemetry.Tracer("catalog"), Meter: srv.telemetry.Meter("catalog"),
	})
	if err := srv.openUpstreams(ctx, manager, tools); err != nil {
		return err
	}
	srv.loginService = srv.newLogins()
	if err := srv.openApprovals(ctx); err != nil {
		return err
	}
	srv.closeFirst.plain(srv.approvals.Close)
	if err := srv.openScripts(ctx); err != nil {
		return err
	}
	srv.catalog.Add(srv.scripts.published)
	srv.catalog.Add(srv.upstreams.Overlay)
	return srv.openMusic(ctx)
}

// registerTools adds our own tools to the catalog.
func (srv *Server) registerTools() {
	families := [][]toolset.Tool{
		servertools.Tools(srv.upstreams, srv.catalog, servertools.AllowHosts(srv.config.MCP.AllowedHosts), srv.orgUpstreams()),
		searchtools.Tools(srv.catalog, srv.results),
		builtin.Results(srv.results, srv.config.MCP.ResultKB<<10),
		scripttools.Tools(srv.scripts.runner, srv.scripts.store, srv.scripts.published, srv.scripts.sessions),
		scripttools.Sessions(srv.scripts.sessions),
		jobtools.Traces(srv.telemetry.Traces()),
		approvaltools.Tools(srv.approvals, srv.scripts.sessions),
		scripttools.Code(srv.scripts.runner, srv.scripts.sessions, srv.codeOptions()),
		scripttools.Preview(srv.scripts.runner, srv.scripts.sessions, srv.scripts.store, srv.catalog),
	}
	if srv.jobs != nil {
		families = append(families, jobtools.Tools(srv.jobs, srv.scripts.store, srv.scripts.runner), jobtools.Schedules(srv.jobs))
	}
	own := toolset.NewSet("", families...)
	srv.ownTools.Store(own)
	srv.menu = builtin.NewMenu(srv.catalog.Exposed(), builtin.MenuOptions{
		Menu: srv.config.MCP.Menu, Scripts: srv.config.MCP.ListScripts, Own: own.Has,
	})
	srv.catalog.Add(builtin.LimitedSet{Set: own, Keeper: srv.results, Shown: srv.config.MCP.ResultKB << 10})
}

// newHub builds the MCP endpoint.
func (srv *Server) newHub() {
	srv.dashboard = srv.newDashboard()
	srv.setup = setup.For(srv.config, srv.options.Env, setup.Options{Address: srv.URL, Audit: srv.audit.RecordAction, Reload: func(ctx context.Context) { _, _ = srv.reloadLogged(ctx, false) }}) // it is logged
	exposed := srv.catalog.Exposed()
	srv.hub = hub.New(hub.Options{
		Name: "luanette", Title: "Luanette", Version: srv.options.Version,
		Instructions: builtin.Instructions(),
		Tools:        srv.menu,
		Menus:        builtin.Menus,
		HubMenu:      builtin.MenuFull,
		Resources:    srv.resources(),
		Prompts:      scripttools.Prompts(srv.scripts.runner, srv.scripts.store, srv.catalog),
		Completer:    srv.completions(),
		Tasks:        srv.jobTasks(),
		RelayedTasks: srv.tasks.Hub(),
		Upstreams:    peers{srv.upstreams, srv},
		Logins:       srv.loginService,
		SessionStore: srv.sessionStore,
		Nodes:        srv.hubNodes(),
		Changes:      builtin.Changes(exposed, srv.bus),
		Principal:    caller,
		Origins:      srv.config.MCP.AllowedOrigins,
		Proxies:      srv.config.Browsers().Proxies,
		Limits:       hub.Limits{Idle: time.Duration(srv.config.MCP.SessionIdle)},
		Log:          srv.log,
		Tracer:       srv.telemetry.Tracer("hub"), Meter: srv.telemetry.Meter("hub"), Propagator: telemetry.Propagator(),
	})
}

// newDashboard builds the endpoints of the web page and the dashboard.
func (srv *Server) newDashboard() *web.Server {
	return web.New(web.Options{
		Bus: srv.bus, Traces: srv.telemetry.Traces(), Calls: srv.history, Process: rand.Text(),
		Config:        func(to principal.Principal, w io.Writer) error { return srv.current().VisibleTo(to).Show(w) },
		OnFirstReader: srv.announceReader,
	})
}

// resources are the MCP resources of the server.
func (srv *Server) resources() *builtin.Resources {
	families := [][]builtin.Resource{
		servertools.Resources(srv.catalog, srv.upstreams, srv.catalog),
		builtin.CostResources(srv.catalog, srv.menu),
		scripttools.Resources(srv.scripts.store),
		jobtools.TraceResources(srv.telemetry.Traces()),
	}
	if srv.jobs != nil {
		families = append(families, jobtools.Resources(srv.jobs))
	}
	if srv.localMusic != nil {
		families = append(families, builtin.MusicResources(srv.music()))
	}
	return builtin.NewResources(families...)
}

// completions suggest values for arguments.
func (srv *Server) completions() builtin.Completions {
	all := []builtin.Completions{builtin.NamespaceCompletions(srv.catalog), scripttools.Completions(srv.scripts.store)}
	if srv.jobs != nil {
		all = append(all, jobtools.Completions(srv.jobs))
	}
	return builtin.Join(all...)
}
