package client

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/fileowner"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/builtin/servertools"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/packages"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/tools/tokencount"
	"github.com/luanette/luanette/internal/ui/login"
)

// Probe is the outcome of one attempt to connect to an upstream.
type Probe struct {
	Namespace string `json:"namespace"`
	Endpoint  string `json:"endpoint"`
	State     string `json:"state"`
	Protocol  string `json:"protocol,omitempty"`
	Tools     int    `json:"tools"`
	Tokens    int    `json:"tokens"` // of a model's context, if all its tools are listed
	Error     string `json:"error,omitempty"`
	Hint      string `json:"hint,omitempty"`
	// Warnings are what is wrong although it works, such as a list of tools that was cut.
	Warnings []string `json:"warnings,omitempty"`
}

// Works reports whether the upstream can be used, perhaps after a login.
func (p Probe) Works() bool {
	return p.State == string(upstream.StateConnected) || p.NeedsLogin()
}

// NeedsLogin reports whether the upstream asks for credentials.
func (p Probe) NeedsLogin() bool { return p.State == string(upstream.StateNeedsAuth) }

// Prober connects to upstreams of a configuration, one at a time and without a server.
type Prober struct {
	Config  *config.Loaded
	Env     config.Environment
	Version string
	Log     *slog.Logger
	// Logins lets upstreams use the stored logins; that opens the database.
	Logins bool
	// Sandbox starts programs; nil: as the configuration says.
	Sandbox *launch.Launcher
	// Packages are those that are installed; nil: as the configuration says.
	Packages *packages.Store
	// Doing is told what is being done; nil: nobody is.
	Doing func(upstream.Status)
}

// Probe connects to an upstream, counts its tools and closes the connection again. It
// waits for one attempt, at most for timeout.
func (p *Prober) Probe(ctx context.Context, spec upstream.Spec, timeout time.Duration) (Probe, error) {
	return p.use(ctx, spec, timeout, func(*upstream.Manager) error { return nil })
}

// use is Probe that does something with the upstream if it works.
func (p *Prober) use(ctx context.Context, spec upstream.Spec, timeout time.Duration, do func(*upstream.Manager) error) (Probe, error) {
	if spec.Command != "" && fileowner.Foreign(p.Config.Data) {
		return Probe{}, fault.New(fault.Denied, "root does not start what the service starts as %s", fileowner.Name(p.Config.Data)).
			WithHint("--timeout 0 adds a server without starting it; `luanette upstream list` shows how those of the service are")
	}
	bus := event.New(event.BusOptions{})
	defer bus.Close()
	options := p.options()
	options.Events = bus
	if p.Logins && spec.URL != "" {
		secrets := p.Config.SecretFinder(p.Env)
		store, err := p.Config.OpenDatabase(ctx, secrets)
		if err != nil {
			return Probe{}, err
		}
		defer func() { _ = store.Close() }()
		logins := p.Config.OAuthOptions(secrets, p.Log)
		logins.Proxy = options.Proxy
		if options.Login, err = login.OpenUpstreams(ctx, store, logins); err != nil {
			return Probe{}, err
		}
	}
	manager := upstream.New(options)
	defer manager.Close()
	spec.Start, spec.StartTimeout = upstream.Eager, duration.Duration(timeout)
	if err := manager.Add(spec); err != nil {
		return Probe{}, err
	}
	attempt, cancel := ctx, func() {}
	if spec.Command == "" { // the start of a program has the time limit, and not what is installed before
		attempt, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	manager.Await(attempt, bus, spec.Name, p.follow)
	if ctx.Err() != nil {
		return Probe{}, context.Cause(ctx)
	}
	probe, err := outcome(ctx, manager, spec.Name, timeout)
	if err != nil || !probe.Works() {
		return probe, err
	}
	return probe, do(manager)
}

// follow reports whether the first attempt is over, and passes on what is done meanwhile.
func (p *Prober) follow(s upstream.Status) bool {
	if p.Doing != nil {
		p.Doing(s)
	}
	return attempted(s)
}

// options are those of a connection to an upstream.
func (p *Prober) options() upstream.Options {
	o := upstream.Options{ClientVersion: p.Version, Log: p.Log, Getenv: p.Env.Lookup, Environ: p.Env.Pairs, Secret: p.Config.SecretFinder(p.Env).Find,
		StartTimeout: time.Duration(p.Config.Starts.Timeout), CAFile: p.Config.CAFile, Sandbox: p.Sandbox, Packages: p.Packages,
		Proxy: netguard.EnvironmentProxy(p.Env.Lookup)}
	if o.Sandbox == nil {
		o.Sandbox = p.Config.Launcher(p.Env)
	}
	if o.Packages == nil {
		o.Packages = p.Config.Packages(o.Sandbox, p.Log)
	}
	return o
}

// Tools connects to an upstream and returns its tools.
func (p *Prober) Tools(ctx context.Context, spec upstream.Spec, timeout time.Duration) (tools []tool.Info, err error) {
	probe, err := p.use(ctx, spec, timeout, func(m *upstream.Manager) error {
		tools, err = m.Tools(ctx)
		return err
	})
	if err == nil && !probe.Works() {
		err = fault.New(fault.Unavailable, "%s", probe.Error).WithHint("%s", probe.Hint)
	}
	return tools, err
}

// Launch returns what runs for an upstream.
func (p *Prober) Launch(spec upstream.Spec) (upstream.Launch, error) {
	o := p.options()
	return o.Launch(spec)
}

// attempted reports whether the first attempt to connect is over.
func attempted(s upstream.Status) bool { return s.Attempted() }

// outcome describes how the attempt went.
func outcome(ctx context.Context, manager *upstream.Manager, name string, timeout time.Duration) (Probe, error) {
	s, _ := manager.Status(name)
	probe := Probe{
		Namespace: s.Name, Endpoint: s.Target, State: string(s.State), Protocol: s.Revision,
		Tools: s.Tools, Error: s.LastError, Hint: s.Hint, Warnings: slices.Concat(s.Trouble, s.Mistaken),
	}
	if !attempted(s) && probe.Error == "" {
		probe.Error = fault.New(fault.Timeout, "no answer within %s", timeout).Error()
		probe.Hint = "give it longer with --timeout"
	}
	tools, err := manager.Tools(ctx)
	for i := range tools {
		probe.Tokens += tokencount.Estimate(string(tools[i].Raw))
	}
	return probe, err
}

// Status returns the state of an upstream of a server.
func Status(ctx context.Context, api Client, name string) (servertools.UpstreamView, error) {
	var view servertools.UpstreamView
	result, err := api.Call(ctx, "mcp_status", map[string]any{"namespace": name}, nil)
	if err != nil {
		return view, err
	}
	if result.IsError {
		return view, fault.New(fault.NotFound, "%s", result.Text())
	}
	if err := json.Unmarshal(result.Structured, &view); err != nil {
		return view, fault.Wrap(fault.Upstream, err, "read status of %s", name)
	}
	return view, nil
}

// pollInterval is the time between questions for the state of an upstream.
const pollInterval = 200 * time.Millisecond

// AwaitUpstream waits until a server has tried to connect to an upstream, at most for
// timeout.
func AwaitUpstream(ctx context.Context, api Client, name string, timeout time.Duration) (Probe, error) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	until := time.Now().Add(timeout)
	for {
		view, err := Status(ctx, api, name)
		if err != nil {
			return Probe{}, err
		}
		if attempted(upstream.Status{State: upstream.State(view.State), Attempt: view.Attempt}) || time.Now().After(until) {
			return serverOutcome(ctx, api, view)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return Probe{}, context.Cause(ctx)
		}
	}
}

// serverOutcome describes an upstream of a server.
func serverOutcome(ctx context.Context, api Client, view servertools.UpstreamView) (Probe, error) {
	probe := Probe{
		Namespace: view.Namespace, Endpoint: view.Endpoint, State: view.State, Protocol: view.Protocol,
		Tools: view.Tools, Error: view.Error, Hint: view.Hint, Warnings: view.Warnings,
	}
	text, err := api.Read(ctx, "lua://tokens")
	if err != nil {
		return probe, err
	}
	var costs builtin.TokenCosts
	if err := json.Unmarshal([]byte(text), &costs); err != nil {
		return probe, fault.Wrap(fault.Upstream, err, "read costs of tools")
	}
	for _, u := range costs.Upstreams {
		if u.Namespace == view.Namespace {
			probe.Tokens = u.Tokens
		}
	}
	return probe, nil
}
