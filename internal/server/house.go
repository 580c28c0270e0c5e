// Package server is the house: it reads the configuration, builds every part, ties
// them together and runs them until it is told to stop. It is the only package
// that knows everybody.
package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/approval"
	"github.com/luanette/luanette/internal/access/audit"
	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/access/pin"
	"github.com/luanette/luanette/internal/access/policy"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/chat/chatapi"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/cluster/node"
	"github.com/luanette/luanette/internal/cluster/remotecall"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/mcp/hub"
	guestbook "github.com/luanette/luanette/internal/mcp/sessionstore"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/overlay"
	"github.com/luanette/luanette/internal/tools/results"
	"github.com/luanette/luanette/internal/ui/web"
)

// Options is what the process hands to the house beside its configuration.
type Options struct {
	Version string
	Stderr  io.Writer     // logs and the start-up lines; standard output belongs to protocols
	Env     Environment   // for variables that parts of the configuration name
	Jobs    bool          // run jobs, those that a crash interrupted included; not for a house built in passing
	Archive bool          // without Jobs: let them be looked at and replayed
	Key     secret.Text   // for a server elsewhere
	Wait    time.Duration // for its first answer; zero: 5 s

	unasked time.Duration // how often is looked for what nodes told each other anyway; zero: as usual
}

// Harness is the whole program, built and running except for its doors. Serve or
// ServeStdio opens them; both close the house when they return, and so must
// whoever opens neither.
type House struct {
	config    *Loaded                // as it was at the start
	current   atomic.Pointer[Loaded] // as it holds: see now
	options   Options
	telemetry *telemetry.Telemetry
	log       *slog.Logger
	store     *db.DB
	ring      *apikey.Store
	gate      *httpauth.Authenticator
	tokens    *jwt.Server // of the configured issuers; nil: there are none
	book      *guestbook.Book
	visits    hub.SessionStore   // nil where no other node goes on with sessions
	errands   *remotecall.Office // nil likewise
	tolls     tolls
	calls     tachometer
	heard     heard      // of other nodes' events
	node      *node.Node // nil in a house that is alone on its database and only passing
	secrets   secret.Finder
	logins    *logins
	bus       *event.Bus
	upstreams *upstreams
	catalog   *catalog.Catalog
	contents  contentStore
	results   *results.Store
	scripts   *scripts
	hoot      *hootenanny.Backend // nil when it is switched off or elsewhere
	approvals *approval.Store
	trust     *pin.Guard
	policy    *policy.Policy
	audit     *audit.Log // nil in a house that keeps no log
	jobs      *job.Queue // nil in a house that has no business with them
	own       *builtin.Set
	menu      *builtin.Menu
	hub       *hub.Hub
	hud       *web.Server
	talk      *conversation.Service // nil in a house that does not serve
	chat      *chatapi.Handler
	started   time.Time
	settled   chan struct{} // closed when startup.lua has run
	leaving   atomic.Bool   // told to stop: see ready
	listening atomic.Value  // string: where the HTTP server is, once it listens

	watching  watchlist  // the files of the configuration
	reloading sync.Mutex // held while they are read again; guards told
	told      *Loaded    // the configuration as it was last told of

	stop context.CancelFunc // ends what runs in the background
	work sync.WaitGroup     // which is waited for here

	spawn func(func(context.Context)) // runs something more there
}

// Build makes every part and lets upstreams connect in the background.
func Build(ctx context.Context, config *Loaded, options Options) (*House, error) {
	bus := event.New(event.BusOptions{Keep: config.HUD.RecentEvents})
	tel, err := telemetry.Setup(ctx, telemetry.Options{
		Service:      "luanette",
		Version:      options.Version,
		Environment:  config.Telemetry.Environment,
		Endpoint:     config.Telemetry.OTLPEndpoint,
		LogLevel:     logLevel(config.Log.Level), // until tune sets another
		LogFormat:    config.Log.Format,
		Stderr:       options.Stderr,
		Tap:          web.NewLogHandler(bus),
		RecentTraces: config.HUD.RecentTraces,
	})
	if err != nil {
		return nil, err
	}
	h := &House{
		config: config, options: options,
		telemetry: tel, log: tel.Logger(),
		bus:     bus,
		secrets: config.finder(options.Env),
		started: time.Now(), settled: make(chan struct{}),
	}
	h.current.Store(config)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stop = stop
	h.spawn = func(f func(context.Context)) { h.work.Go(func() { f(background) }) }
	if err := h.furnish(ctx); err != nil {
		return nil, errors.Join(err, h.Close(ctx))
	}
	h.liveAsNode(background)
	h.work.Go(func() { h.upstreams.follow(background) })
	h.work.Go(func() { h.ring.Run(background) })
	h.work.Go(func() { h.watchApprovals(background) })
	if h.audit != nil {
		h.work.Go(func() { h.audit.RunRetention(background) })
	}
	h.work.Go(func() { h.watchPins(background) })
	h.work.Go(func() { h.watchLogins(background) })
	if h.upstreams.lasting {
		h.work.Go(func() { h.watchWishes(background) })
	}
	h.startScripts(ctx, background)
	close(h.settled)
	for _, watch := range []func(context.Context){h.watchConfig(ctx), h.watchScripts(ctx)} {
		if watch != nil {
			h.work.Go(func() { watch(background) })
		}
	}
	return h, nil
}

// furnish opens what is kept and puts the rooms and doors in place.
func (h *House) furnish(ctx context.Context) error {
	if err := h.openStore(ctx); err != nil {
		return err
	}
	if err := h.connectRooms(ctx); err != nil {
		return err
	}
	if err := h.adopt(ctx, h.config); err != nil {
		return err
	}
	if h.options.Jobs || h.options.Archive {
		if err := h.openJobs(ctx); err != nil {
			return err
		}
		if h.hoot != nil {
			h.hoot.SetJobs(musicJobs{h.jobs})
		}
	}
	h.offerTools()
	h.trust.Set(h.config.trustSettings()) // by now our own names are known
	h.catalog.Refresh(ctx)
	h.hangDoors() //nolint:contextcheck // what it watches lives as long as the house
	if h.options.Jobs {
		return h.openChat(ctx)
	}
	return nil
}

func (h *House) openStore(ctx context.Context) error {
	if err := makeDataFolder(h.config.Data); err != nil {
		return err
	}
	store, err := openDatabase(ctx, h.config, h.secrets)
	if err != nil {
		return err
	}
	h.store = store
	if err := h.joinNodes(ctx); err != nil {
		return err
	}
	if err := h.openKeys(ctx); err != nil {
		return err
	}
	if h.logins, err = openLogins(ctx, store, h.config, h.secrets, h.log); err != nil {
		return err
	}
	if err := h.openPolicy(ctx); err != nil {
		return err
	}
	h.results, err = results.Open(ctx, store, results.Options{Log: h.log, Flow: h.policy})
	return err
}

func makeDataFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fault.Wrap(fault.Config, err, "make data folder").
			WithHint("choose a folder you may write to with --data or LUANETTE_DATA")
	}
	return nil
}

// connectRooms makes the connection manager, the catalog over it, and the scripts
// that use both.
func (h *House) connectRooms(ctx context.Context) error {
	manager := upstream.New(upstream.Options{
		Log: h.log, Events: h.bus,
		ClientVersion: h.options.Version,
		CacheDir:      filepath.Join(h.config.Data, "upstreams"),
		Getenv:        h.options.Env.Lookup,
		Secret:        h.secrets.Find,
		Login:         h.logins,
		StopTimeout:   graceTime,
		DialControl:   h.outward().control,
		Tracer:        h.telemetry.Tracer("upstream"), Propagator: telemetry.Propagator(),
	})
	if err := h.openTrust(ctx, manager); err != nil {
		manager.Close()
		return err
	}
	h.catalog = catalog.New(catalog.Options{
		WhyHidden: h.trust.WhyHidden, Pass: h.pass, Hides: h.hides, TurnedAway: h.turnedAway,
		Bus: h.bus, Log: h.log, Learner: h.results, Limits: h.limits, Private: isSomebodys, Reserved: isReserved, Toll: h.toll,
		Tracer: h.telemetry.Tracer("catalog"), Meter: h.telemetry.Meter("catalog"),
	})
	h.upstreams = &upstreams{manager: manager, guard: h.trust, pass: h.pass, turnedAway: h.turnedAway, did: h.did, arranged: overlay.New(h.trust), catalog: h.catalog, bus: h.bus, log: h.log, address: h.address}
	if err := h.openWants(ctx); err != nil {
		return err
	}
	if err := h.openApprovals(ctx); err != nil {
		return err
	}
	if err := h.openScripts(ctx); err != nil {
		return err
	}
	h.catalog.Add(h.scripts.published)
	h.catalog.Add(h.upstreams.arranged)
	return h.openHoot(ctx)
}

// offerTools puts our own tools over all of the rooms into the catalog.
func (h *House) offerTools() {
	families := [][]builtin.Tool{
		builtin.MCP(h.upstreams, h.catalog, builtin.AllowHosts(h.config.MCP.AllowedHosts)),
		builtin.Discovery(h.catalog, h.results),
		builtin.Results(h.results, h.config.MCP.ResultKB<<10),
		builtin.Scripts(h.scripts.runner, h.scripts.store, h.scripts.published, h.scripts.sessions),
		builtin.Sessions(h.scripts.sessions),
		h.approvalTools(),
		builtin.Code(h.scripts.runner, h.scripts.sessions, h.codeOptions()),
		builtin.Preview(h.scripts.runner, h.scripts.sessions, h.scripts.store, h.catalog),
	}
	if h.jobs != nil {
		families = append(families, builtin.Jobs(h.jobs, h.scripts.store, h.scripts.runner), builtin.Schedules(h.jobs))
	}
	h.own = builtin.NewSet(families...)
	h.menu = builtin.NewMenu(h.catalog.Exposed(), builtin.MenuOptions{
		Mode: h.config.MCP.Mode, Threshold: h.config.MCP.CodeThreshold, Own: h.own.Has,
	})
	h.catalog.Add(builtin.LimitedSet{Set: h.own, Keeper: h.results, Shown: h.config.MCP.ResultKB << 10})
}

// hangDoors makes the MCP server in front of it all.
func (h *House) hangDoors() {
	h.hud = h.lookout()
	exposed := h.catalog.Exposed()
	h.hub = hub.New(hub.Options{
		Name: "luanette", Title: "Luanette", Version: h.options.Version,
		InstructionsFunc: h.menu.Instructions,
		Tools:            h.menu,
		Resources:        h.resources(),
		Prompts:          builtin.NewPrompts(builtin.ScriptPrompts(h.scripts.runner, h.scripts.store, h.catalog)),
		Completer:        h.completions(),
		Tasks:            h.tasks(),
		Upstreams:        h.upstreams,
		SessionStore:     h.visits,
		Nodes:            h.couriers(),
		Changes:          changes(exposed, h.bus),
		Principal:        caller,
		Origins:          h.config.MCP.AllowedOrigins,
		Limits:           hub.Limits{Idle: time.Duration(h.config.MCP.SessionIdle)},
		Log:              h.log,
		Tracer:           h.telemetry.Tracer("hub"), Meter: h.telemetry.Meter("hub"), Propagator: telemetry.Propagator(),
	})
}

// lookout makes the door for those who look on.
func (h *House) lookout() *web.Server {
	return web.New(web.Options{
		Bus: h.bus, Traces: h.telemetry.Traces(), Process: rand.Text(),
		Browsers:      netguard.Browsers{Origins: h.config.MCP.AllowedOrigins},
		Config:        func(w io.Writer) error { return h.now().Show(w) },
		OnFirstReader: func() { h.spawn(h.nodeWatches) },
	})
}

// resources is what can be read from us.
func (h *House) resources() *builtin.Resources {
	families := [][]builtin.Resource{
		builtin.OverviewResources(h.catalog, h.upstreams, h.catalog),
		builtin.CostResources(h.catalog, h.menu),
		builtin.ScriptResources(h.scripts.store),
	}
	if h.jobs != nil {
		families = append(families, builtin.JobResources(h.jobs))
	}
	if h.hoot != nil {
		families = append(families, builtin.MusicResources(musicians{h}))
	}
	return builtin.NewResources(families...)
}

// completions is what we suggest for arguments.
func (h *House) completions() builtin.Completions {
	all := []builtin.Completions{builtin.NamespaceCompletions(h.catalog), builtin.ScriptCompletions(h.scripts.store)}
	if h.jobs != nil {
		all = append(all, builtin.JobCompletions(h.jobs))
	}
	return builtin.Join(all...)
}

// logLevel reads a level that check has seen to be one.
func logLevel(name string) slog.Level {
	var level slog.Level
	_ = level.UnmarshalText([]byte(name))
	return level
}

// Close gives back what Build took, in the opposite order. That ctx has ended does
// not hinder it: every part that may have to wait gets a little time of its own, so
// that a slow one does not take it from those after it.
func (h *House) Close(ctx context.Context) error {
	failed := []error{h.closeDoors(ctx)}
	h.stop()
	h.work.Wait()
	failed = append(failed, h.closeRooms(ctx))
	h.bus.Close()
	if h.audit != nil {
		failed = append(failed, inTime(ctx, "the audit log", storeTime, h.audit.Close))
	}
	if h.results != nil {
		h.results.Close()
	}
	if h.node != nil {
		failed = append(failed, inTime(ctx, "the place among the nodes", storeTime, h.node.Leave))
	}
	if h.store != nil {
		failed = append(failed, h.store.Close()) // what was acknowledged is written whatever ctx says
	}
	return errors.Join(append(failed, inTime(ctx, "telemetry", flushTime, h.telemetry.Shutdown))...)
}

// inTime has a part leave, with some time of its own.
func inTime(ctx context.Context, part string, enough time.Duration, leave func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), enough)
	defer cancel()
	if err := leave(ctx); err != nil {
		return fmt.Errorf("close %s: %w", part, err)
	}
	return nil
}

// closeDoors lets nobody in any more and has what was begun come to rest.
func (h *House) closeDoors(ctx context.Context) error {
	var failed []error
	if h.hub != nil {
		failed = append(failed, inTime(ctx, "the MCP door", flushTime, h.hub.Close))
	}
	if h.talk != nil {
		h.talk.Close()
	}
	if h.chat != nil {
		h.chat.Close()
	}
	if h.jobs != nil {
		failed = append(failed, h.jobs.Close()) // it has a grace of its own
	}
	if h.approvals != nil {
		h.approvals.Close()
	}
	return errors.Join(failed...)
}

// closeRooms closes what nobody uses any more.
func (h *House) closeRooms(ctx context.Context) error {
	if h.gate != nil {
		h.gate.Close()
	}
	if h.hoot != nil {
		h.hoot.Close()
	}
	if h.upstreams != nil {
		h.upstreams.manager.Close()
	}
	if h.scripts != nil {
		return inTime(ctx, "JavaScript", flushTime, h.scripts.js.Close)
	}
	return nil
}
