// Package server builds every part of the program from a configuration, connects the
// parts and runs them until it is stopped.
package server

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/builtin/apptools"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/mcp/offers"
	"github.com/luanette/luanette/internal/observe/telemetry"
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

	ListenFirst bool // Build does not wait for startup.lua, so that Serve listens while it runs; calls and lists of tools wait

	pollInterval time.Duration // see poll; zero is the default
}

// Server is the whole program. After Build everything runs except the endpoints,
// which Serve or ServeStdio starts. Both close the server when they return; a caller
// of neither must call Close.
type Server struct {
	*parts
	*endpoints
	draining      atomic.Bool            // the server is shutting down
	backupFailure atomic.Pointer[string] // why the latest backup was not made; nil: it was
}

// parts is everything behind the endpoints.
type parts struct {
	*process
	*storage
	*guards
	*tooling
	*reloading
	jobs   *job.Queue // nil if this process has no jobs
	apps   *apptools.Apps
	offers *offers.Offers
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
	srv, err := build(ctx, p)
	if err != nil {
		return nil, errors.Join(err, p.Close(ctx))
	}
	srv.runNode(background)
	srv.followOperator(background)
	srv.runBackups()
	if err := srv.measure(); err != nil {
		srv.log.WarnContext(ctx, "operation is not measured", "error", err)
	}
	for _, run := range []func(context.Context){
		srv.upstreams.Follow, srv.keys.Run, srv.watchApprovals, srv.audit.RunRetention, srv.watchPins, srv.watchLogins, srv.watchUpstreams, srv.watchScripts,
	} {
		srv.runBackground(run)
	}
	if options.ListenFirst {
		srv.runBackground(srv.startScripts)
	} else {
		srv.startScripts(ctx)
	}
	srv.watchConfig(ctx)
	srv.watchPackages(ctx)
	for _, run := range []func(context.Context){
		srv.scripts.folder.Watch(ctx), srv.people.Run, srv.erasure.Run, srv.orgs.Run, srv.shares.Run, srv.collectContents, srv.deliveries.Run,
	} {
		if run != nil {
			srv.runBackground(run)
		}
	}
	return srv, nil
}

// build opens the parts, each with those that it uses.
func build(ctx context.Context, p *process) (*Server, error) {
	g, err := openGuards(ctx, p)
	if err != nil {
		return nil, err
	}
	s, err := openStorage(ctx, p, g)
	if err != nil {
		return nil, err
	}
	g.orgs.Stored = storedOf(s.contents, g.orgs) // the quota is of what is stored, and limits it
	t, err := openTooling(ctx, p, s, g)
	if err != nil {
		return nil, err
	}
	in := &parts{process: p, storage: s, guards: g, tooling: t, reloading: &reloading{process: p, guards: g, tooling: t}}
	if err := in.apply(ctx, p.config); err != nil {
		return nil, err
	}
	if p.options.Jobs || p.options.Archive {
		if in.jobs, err = openJobs(ctx, p, s, g, t); err != nil {
			return nil, err
		}
	}
	in.apps = in.openApps()
	in.offers = in.openOffers()
	in.registerTools()
	in.pins.Set(p.config.PinSettings()) // now the names of our own tools are known
	in.catalog.Refresh(ctx)
	e, err := openEndpoints(ctx, in)
	return &Server{parts: in, endpoints: e}, err
}
