package server

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/scripting/host"
	webmodule "github.com/luanette/luanette/internal/scripting/module/http"
	"github.com/luanette/luanette/internal/scripting/module/workspace"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/artifact"
)

// scripts is the part of the house that runs, keeps and publishes scripts.
type scripts struct {
	js        *script.JavaScriptEngine
	runner    *script.Runner
	store     *artifact.Store
	published *script.Published
	sessions  *script.Sessions
	folder    *script.Folder
	dir       string // where folder looks
}

// openScripts makes the runner over all tools, the store of scripts, what is
// published of it, and the sessions.
func (h *House) openScripts(ctx context.Context) error {
	kept, err := h.openContents(ctx)
	if err != nil {
		return err
	}
	h.contents = kept
	if err := h.makeTempFolder(); err != nil {
		return err
	}
	javascript, err := h.openJavaScript()
	if err != nil {
		return err
	}
	runner, err := h.newRunner(javascript) //nolint:contextcheck // its functions get the context of their run
	if err != nil {
		return err
	}
	store := kept.store
	published, err := script.OpenPublished(ctx, h.store, runner, store, script.PublishedOptions{
		Reserved: h.reserved, Shared: h.isShared(), Changed: h.catalog.Refresh, Events: h.bus, Log: h.log,
	})
	if err != nil {
		return err
	}
	sessionOptions := h.config.Sessions.options()
	sessionOptions.Events, sessionOptions.Node = h.bus, h.jobNode()
	sessions, err := script.OpenSessions(ctx, h.store, runner, sessionOptions)
	if err != nil {
		return err
	}
	dir := h.config.Scripts.Folder
	if dir == "" {
		dir = filepath.Join(h.config.Data, "scripts")
	}
	h.scripts = &scripts{javascript, runner, store, published, sessions, script.NewFolder(dir, published, builtin.Keeper(runner, store), h.log), dir}
	return nil
}

// newRunner makes what runs scripts, with all they may reach.
func (h *House) newRunner(javascript *script.JavaScriptEngine) (*script.Runner, error) {
	web, err := webmodule.NewClient(webmodule.ClientOptions{Hosts: h.config.Scripts.HTTPHosts})
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "scripts.http_hosts")
	}
	return script.NewRunner(script.Options{
		Tools: h.catalog, Upstreams: scriptUpstreams{h.upstreams, builtin.AllowHosts(h.config.MCP.AllowedHosts)},
		Results: scriptResults{h.results}, Fields: h.fieldsOf,
		Events: h.bus, Log: h.log,
		Tracer: h.telemetry.Tracer("script"), Meter: h.telemetry.Meter("script"),
		JavaScript: javascript, Language: h.scriptLanguage,
		Contents: musicContents{h.contents, h}, TempDir: h.tempFolder(), Clock: clock.Real(), Commands: h.scriptPrograms(),
		HTTP: web, GetWrites: h.config.Scripts.HTTPGet == "write",
		Getenv: h.scriptVariable, Approvals: h.approvals, CurrentPrincipal: h.standing(), Flow: standingFlow{h.policy, h.ring},
		Files: host.FilesOptions{Read: h.config.Scripts.Read, Write: h.config.Scripts.Write},
		Limits: script.Limits{
			Time: time.Duration(h.config.Scripts.Timeout), Memory: int64(h.config.Scripts.MemoryMB) << 20,
			Calls: int64(h.config.Scripts.Calls),
		},
	}), nil
}

// reserved tells whether one of our own tools has that name.
func (h *House) reserved(name string) bool { return h.own != nil && h.own.Has(name) }

// scriptVariable is os.getenv of scripts: the variables the configuration lists.
func (h *House) scriptVariable(name string) (string, bool) {
	if !slices.Contains(h.config.Scripts.Env, name) {
		return "", false
	}
	return h.options.Env.Lookup(name)
}

// scriptPrograms is what scripts may start. It runs in the first folder they may
// write, with the variables they may see and no others but where programs are.
func (h *House) scriptPrograms() host.Commands {
	o := workspace.CommandOptions{
		Allow: h.config.Scripts.Commands, Timeout: time.Duration(h.config.Scripts.Timeout),
		Dir: os.TempDir(),
	}
	if folders := h.config.Scripts.Write; len(folders) > 0 {
		o.Dir = folders[0]
	}
	for _, name := range append([]string{"PATH", "HOME", "LANG"}, h.config.Scripts.Env...) {
		if value, ok := h.options.Env.Lookup(name); ok {
			o.Env = append(o.Env, name+"="+value)
		}
	}
	return workspace.NewPrograms(o)
}

// startScripts publishes the scripts folder and runs startup.lua, which may add
// upstreams that are commands, since it is the owner's own. The hooks and handlers
// it leaves go on in the background.
func (h *House) startScripts(ctx, background context.Context) {
	if err := h.scripts.folder.Sync(ctx); err != nil {
		h.log.WarnContext(ctx, "scripts folder", "error", err)
	}
	path := h.config.Scripts.Startup
	if path == "" {
		path = filepath.Join(configFolder(h.options.Env), "startup.lua")
	}
	if source, err := os.ReadFile(path); err == nil && h.options.Jobs {
		h.did(ctx, "startup.run", path, source)
	}
	resident := h.scripts.runner.Startup(ctx, path, ownersUpstreams{scriptUpstreams{h.upstreams, nil}})
	h.setHooks(ctx, resident.Hooks(script.HookOptions{
		Time: time.Duration(h.config.Scripts.HookTime), Strict: h.config.Scripts.HookFails == "refuse",
	}))
	if resident.Listens() {
		h.work.Go(func() { resident.Listen(background) })
	}
}

// watchScripts publishes the folder anew when a file in it changes.
func (h *House) watchScripts(ctx context.Context) func(context.Context) {
	if err := os.MkdirAll(h.scripts.dir, 0o755); err != nil {
		h.log.WarnContext(ctx, "scripts folder", "error", err)
		return nil
	}
	return h.watch(ctx, []string{h.scripts.dir}, func(path string) bool { return script.LanguageOf(path) != "" }, func(ctx context.Context) {
		if err := h.scripts.folder.Sync(ctx); err != nil {
			h.log.WarnContext(ctx, "scripts folder", "error", err)
		}
	})
}

// scriptUpstreams is the connection manager as scripts see it.
type scriptUpstreams struct {
	all    *upstreams
	policy builtin.Policy
}

// within refuses to a script what the tool that does the same would refuse: one
// that runs for a chat reaches no further than the chat.
func within(ctx context.Context, name string) error {
	if !principal.Of(ctx).Admin() {
		return fault.New(fault.Denied, "%s is for administrators", name).WithHint("it takes a key with the scope %s", principal.Admin)
	}
	if scope := tool.ScopeOf(ctx); scope != nil && !scope.Allows(tool.Ref{Name: name}) {
		return fault.New(fault.Denied, "this conversation may not change which servers there are").
			WithHint("ask whoever runs the server")
	}
	return nil
}

func (s scriptUpstreams) Add(ctx context.Context, name, address string) error {
	if err := within(ctx, "mcp_connect"); err != nil {
		return err
	}
	if err := (upstream.Spec{Name: name, URL: address}).Validate(); err != nil {
		return err
	}
	if err := s.all.allowed(ctx, s.policy, name, address); err != nil {
		return err
	}
	s.all.did(ctx, "upstream.add", name, []byte(address))
	return s.all.connect(ctx, name, upstreamstore.Server{URL: address})
}

func (s scriptUpstreams) Remove(ctx context.Context, name string) (bool, error) {
	if err := within(ctx, "mcp_disconnect"); err != nil {
		return false, err
	}
	return s.all.Remove(ctx, name)
}

func (s scriptUpstreams) Status(name string) (host.UpstreamStatus, bool) {
	status, ok := s.all.manager.Status(name)
	if !ok || isSomebodys(name) {
		return host.UpstreamStatus{}, false
	}
	return scriptStatus(status), true
}

func (s scriptUpstreams) List() []host.UpstreamStatus {
	var list []host.UpstreamStatus
	for _, status := range s.all.manager.List() {
		if !isSomebodys(status.Name) {
			list = append(list, scriptStatus(status))
		}
	}
	return list
}

func scriptStatus(s upstream.Status) host.UpstreamStatus {
	return host.UpstreamStatus{
		Name: s.Name, State: string(s.State), Tools: s.Tools, Endpoint: s.Target,
		Calls: s.Stats.Calls, Error: s.LastError, Attempt: s.Attempt, LastTool: s.Stats.LastTool,
	}
}

// ownersUpstreams is the same for startup.lua, the owner's own: it also starts
// programs, and what it wants is this node's, at every start anew.
type ownersUpstreams struct{ scriptUpstreams }

func (s ownersUpstreams) Add(ctx context.Context, name, address string) error {
	s.all.did(ctx, "upstream.add", name, []byte(address))
	return s.all.addLocal(upstream.Spec{Name: name, URL: address, Trusted: true})
}

func (s ownersUpstreams) Remove(ctx context.Context, name string) (bool, error) {
	s.all.did(ctx, "upstream.remove", name, nil)
	return s.all.removeLocal(name)
}

func (s ownersUpstreams) AddCommand(ctx context.Context, name string, c host.Command) error {
	s.all.did(ctx, "upstream.add", name, []byte(strings.Join(append([]string{c.Command}, c.Args...), "\x00")))
	return s.all.addLocal(upstream.Spec{Name: name, Command: c.Command, Args: c.Args, Env: c.Env, Cwd: c.Cwd, Trusted: true})
}
