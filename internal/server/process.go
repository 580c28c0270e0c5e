package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/chat/turn"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/scripting/script/publish"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/tools/toolset"
	"github.com/luanette/luanette/internal/ui/login"
)

// process is what every part of a server is built with. It is complete before the first
// of them.
type process struct {
	config    *config.Loaded                // as it was at the start
	latest    atomic.Pointer[config.Loaded] // as it is now
	options   Options
	telemetry *telemetry.Telemetry
	log       *slog.Logger
	bus       *event.Bus
	secrets   secret.Finder
	store     *db.DB
	started   time.Time
	settled   chan struct{} // closed when startup.lua has run
	listening atomic.Value  // string: the URL of the HTTP server, once it listens
	*cluster
	circles

	closeFirst    closing // parts that start calls
	closeLast     closing // parts that calls use
	stop          context.CancelFunc
	background    sync.WaitGroup              // what stop ends
	runBackground func(func(context.Context)) // runs something in the background until stop
}

// circles are parts that use nearly all others, and that some of those reach when they are
// used. Build sets each in one place, when it exists. All other parts exist before what uses
// them is built.
type circles struct {
	ownTools atomic.Pointer[ownTools]     // guards, stores and searches ask which tools are ours
	queue    atomic.Pointer[job.Queue]    // scripts start jobs, which run scripts
	turns    atomic.Pointer[turn.Service] // jobs have the tools of the chat that started them
}

// ownTools are the tools that we offer ourselves.
type ownTools struct {
	*toolset.Set
	published *publish.Published // scripts as tools
}

// isOwn tells whether one of our own tools has that name.
func (c *circles) isOwn(name string) bool {
	own := c.ownTools.Load()
	return own != nil && own.Has(name)
}

// isScript tells whether a tool without a namespace is a published script.
func (c *circles) isScript(name string) bool { return c.ownTools.Load() != nil && !c.isOwn(name) }

// runsScript tells whether one of our tools runs a script: a published one, or code in
// its arguments.
func (c *circles) runsScript(name string) bool { return runsCode(name) || c.isScript(name) }

// ownNames are the names of our own tools and of published scripts.
func (c *circles) ownNames() (names []string) {
	own := c.ownTools.Load()
	if own == nil { // no tool is offered yet
		return nil
	}
	for _, source := range []tool.Source{own, own.published} {
		tools, _ := source.Tools(context.Background()) // from memory
		for i := range tools {
			names = append(names, tools[i].Name)
		}
	}
	return names
}

// scriptJobs starts jobs for scripts; nil if there is no queue.
func (c *circles) scriptJobs() script.Jobs {
	if queue := c.queue.Load(); queue != nil {
		return job.ForScripts{Queue: queue}
	}
	return nil
}

// chatScope returns ctx with the tools of the person in whose chat a job was started.
func (c *circles) chatScope(ctx context.Context) (context.Context, error) {
	if turns := c.turns.Load(); turns != nil {
		return turns.InScope(ctx)
	}
	return ctx, nil // a server without chat
}

// newProcess opens telemetry and the database, and registers the process as a node. It
// returns the context of what runs in the background, too.
func newProcess(ctx context.Context, loaded *config.Loaded, options Options, bus *event.Bus, o telemetry.Options) (*process, context.Context, error) {
	o.Version, o.Stderr, o.Endpoint = options.Version, options.Stderr, loaded.Telemetry.OTLPEndpoint
	o.LogLevel, o.LogFormat = logLevel(loaded.Log.Level), loaded.Log.Format // the level until applyLive changes it
	tel, err := telemetry.Setup(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	p := &process{
		config: loaded, options: options, telemetry: tel, log: telemetry.Thinned(tel.Logger(), db.IsOutage, clock.Real()), bus: bus,
		secrets: loaded.SecretFinder(options.Env), started: time.Now(), settled: make(chan struct{}),
	}
	p.latest.Store(loaded)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.stop = stop
	p.runBackground = func(f func(context.Context)) { p.background.Go(func() { f(background) }) }
	p.closeLast.within("telemetry", flushTimeout, tel.Shutdown)
	p.closeLast.plain("events", bus.Close)
	if err := p.openStore(ctx); err != nil {
		return nil, nil, errors.Join(err, p.Close(ctx))
	}
	return p, background, nil
}

func (p *process) openStore(ctx context.Context) (err error) {
	if err := config.MakeDataFolder(p.config.Data); err != nil {
		return err
	}
	if p.store, err = p.config.OpenDatabase(ctx, p.secrets); err != nil {
		return err
	}
	p.closeLast.add("the database", p.store.Close) // acknowledged writes are stored in any case
	p.cluster, err = joinNodes(ctx, p)
	return err
}

// closeOutage is how long parts that close wait for an unreachable database, all together.
const closeOutage = 3 * time.Second

// Close closes what Build opened, in the opposite order, also if ctx has ended: it accepts
// no more requests and ends running ones, then what runs in the background, then the parts
// that those used.
func (p *process) Close(ctx context.Context) error {
	if p.store != nil {
		p.store.LimitOutages(closeOutage)
	}
	err := p.closeFirst.close(ctx, p.log)
	p.stop()
	p.closeLast.plain("what runs in the background", p.background.Wait)
	return errors.Join(err, p.closeLast.close(ctx, p.log))
}

// current returns the configuration in effect: that of the start with live changes. Parts
// that follow changes use it, all others use p.config.
func (p *process) current() *config.Loaded { return p.latest.Load() }

func (p *process) restartNeeded() []string { return p.current().RestartNeeded() }

// URL is the address of the HTTP server, once it listens.
func (p *process) URL() string { url, _ := p.listening.Load().(string); return url }

// address is the URL of our HTTP server; "" if there is none.
func (p *process) address() string {
	return cmp.Or(strings.TrimRight(p.config.Music.URL, "/"), p.URL())
}

// publicURL is the address at which browsers reach the server.
func (p *process) publicURL() string {
	return cmp.Or(strings.TrimRight(p.config.PublicURL, "/"), p.address())
}

// redirectURL is the address that browsers return to after a login.
func (p *process) redirectURL() string {
	return cmp.Or(p.config.OAuth.RedirectURL, p.publicURL()+login.CallbackPath)
}

// outbound decides which addresses clients may make the server connect to. This machine
// is allowed if only this machine can reach the server: its clients are its owner.
func (p *process) outbound() netguard.Outbound {
	allowed := p.config.MCP.AllowedHosts
	return netguard.Outbound{Allowed: allowed, Proxy: p.proxy(), Loopback: config.ListensLocally(p.config.Listen) || slices.Contains(allowed, "localhost")}
}

// proxy is the proxy of our own connections, from the environment.
func (p *process) proxy() netguard.ProxyFunc {
	return netguard.EnvironmentProxy(p.options.Env.Lookup)
}

// logLevel parses a level that the configuration has validated.
func logLevel(name string) slog.Level {
	var level slog.Level
	_ = level.UnmarshalText([]byte(name))
	return level
}
