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
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/scripting/host"
	webmodule "github.com/luanette/luanette/internal/scripting/module/http"
	"github.com/luanette/luanette/internal/scripting/module/workspace"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/artifact"
)

// scripts is the part of the server that runs, keeps and publishes scripts.
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
func (srv *Server) openScripts(ctx context.Context) error {
	if err := srv.openContents(ctx); err != nil {
		return err
	}
	if err := srv.makeTempFolder(); err != nil {
		return err
	}
	javascript, err := srv.openJavaScript()
	if err != nil {
		return err
	}
	runner, err := srv.newRunner(javascript) //nolint:contextcheck // its functions get the context of their run
	if err != nil {
		return err
	}
	store := srv.contents.Store
	published, err := script.OpenPublished(ctx, srv.store, runner, store, script.PublishedOptions{
		Reserved: srv.reserved, Shared: srv.isShared(), Changed: srv.catalog.Refresh, Events: srv.bus, Log: srv.log,
	})
	if err != nil {
		return err
	}
	sessionOptions := srv.config.Sessions.SessionOptions()
	sessionOptions.Events, sessionOptions.Node = srv.bus, srv.jobNode()
	sessions, err := script.OpenSessions(ctx, srv.store, runner, sessionOptions)
	if err != nil {
		return err
	}
	dir := srv.config.Scripts.Folder
	if dir == "" {
		dir = filepath.Join(srv.config.Data, "scripts")
	}
	srv.scripts = &scripts{javascript, runner, store, published, sessions, script.NewFolder(dir, published, builtin.Keeper(runner, store), srv.log), dir}
	return nil
}

// newRunner makes what runs scripts, with all they may reach.
func (srv *Server) newRunner(javascript *script.JavaScriptEngine) (*script.Runner, error) {
	web, err := webmodule.NewClient(webmodule.ClientOptions{Hosts: srv.config.Scripts.HTTPHosts})
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "scripts.http_hosts")
	}
	return script.NewRunner(script.Options{
		Tools: srv.catalog, Upstreams: scriptUpstreams{srv.upstreams, builtin.AllowHosts(srv.config.MCP.AllowedHosts)},
		Results: scriptResults{srv.results}, Fields: srv.fieldsOf,
		Events: srv.bus, Log: srv.log,
		Tracer: srv.telemetry.Tracer("script"), Meter: srv.telemetry.Meter("script"),
		JavaScript: javascript, Language: srv.scriptLanguage,
		Contents: hootenanny.Contents{Files: srv.contents, Remote: srv.remoteMusic(), IsRemote: srv.musicIsRemote}, TempDir: srv.tempFolder(), Clock: clock.Real(), Commands: srv.scriptPrograms(),
		HTTP: web, GetWrites: srv.config.Scripts.HTTPGet == "write",
		Getenv: srv.scriptVariable, Approvals: srv.approvals, CurrentPrincipal: srv.currentPrincipal(), Flow: standingFlow{srv.policy, srv.keys},
		Files: host.FilesOptions{Read: srv.config.Scripts.Read, Write: srv.config.Scripts.Write},
		Limits: script.Limits{
			Time: time.Duration(srv.config.Scripts.Timeout), Memory: int64(srv.config.Scripts.MemoryMB) << 20,
			Calls: int64(srv.config.Scripts.Calls),
		},
	}), nil
}

// reserved tells whether one of our own tools has that name.
func (srv *Server) reserved(name string) bool { return srv.ownTools != nil && srv.ownTools.Has(name) }

// scriptVariable is os.getenv of scripts: the variables the configuration lists.
func (srv *Server) scriptVariable(name string) (string, bool) {
	if !slices.Contains(srv.config.Scripts.Env, name) {
		return "", false
	}
	return srv.options.Env.Lookup(name)
}

// scriptPrograms is what scripts may start. It runs in the first folder they may
// write, with the variables they may see and no others but where programs are.
func (srv *Server) scriptPrograms() host.Commands {
	o := workspace.CommandOptions{
		Allow: srv.config.Scripts.Commands, Timeout: time.Duration(srv.config.Scripts.Timeout),
		Dir: os.TempDir(),
	}
	if folders := srv.config.Scripts.Write; len(folders) > 0 {
		o.Dir = folders[0]
	}
	for _, name := range append([]string{"PATH", "HOME", "LANG"}, srv.config.Scripts.Env...) {
		if value, ok := srv.options.Env.Lookup(name); ok {
			o.Env = append(o.Env, name+"="+value)
		}
	}
	return workspace.NewPrograms(o)
}

// startScripts publishes the scripts folder and runs startup.lua, which may add
// upstreams that are commands, since it is the owner's own. The hooks and handlers
// it leaves go on in the background.
func (srv *Server) startScripts(ctx, background context.Context) {
	if err := srv.scripts.folder.Sync(ctx); err != nil {
		srv.log.WarnContext(ctx, "scripts folder", "error", err)
	}
	path := srv.config.Scripts.Startup
	if path == "" {
		path = filepath.Join(config.UserFolder(srv.options.Env), "startup.lua")
	}
	if source, err := os.ReadFile(path); err == nil && srv.options.Jobs {
		srv.auditAdmin(ctx, "startup.run", path, source)
	}
	resident := srv.scripts.runner.Startup(ctx, path, ownersUpstreams{scriptUpstreams{srv.upstreams, nil}})
	srv.setHooks(ctx, resident.Hooks(script.HookOptions{
		Time: time.Duration(srv.config.Scripts.HookTime), Strict: srv.config.Scripts.HookFails == "refuse",
	}))
	if resident.Listens() {
		srv.background.Go(func() { resident.Listen(background) })
	}
}

// watchScripts publishes the folder anew when a file in it changes.
func (srv *Server) watchScripts(ctx context.Context) func(context.Context) {
	if err := os.MkdirAll(srv.scripts.dir, 0o755); err != nil {
		srv.log.WarnContext(ctx, "scripts folder", "error", err)
		return nil
	}
	return srv.watch(ctx, []string{srv.scripts.dir}, func(path string) bool { return script.LanguageOf(path) != "" }, func(ctx context.Context) {
		if err := srv.scripts.folder.Sync(ctx); err != nil {
			srv.log.WarnContext(ctx, "scripts folder", "error", err)
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
	s.all.audit(ctx, "upstream.add", name, []byte(address))
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
	if !ok || isPrivateNamespace(name) {
		return host.UpstreamStatus{}, false
	}
	return scriptStatus(status), true
}

func (s scriptUpstreams) List() []host.UpstreamStatus {
	var list []host.UpstreamStatus
	for _, status := range s.all.manager.List() {
		if !isPrivateNamespace(status.Name) {
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
	s.all.audit(ctx, "upstream.add", name, []byte(address))
	return s.all.addLocal(upstream.Spec{Name: name, URL: address, Trusted: true})
}

func (s ownersUpstreams) Remove(ctx context.Context, name string) (bool, error) {
	s.all.audit(ctx, "upstream.remove", name, nil)
	return s.all.removeLocal(name)
}

func (s ownersUpstreams) AddCommand(ctx context.Context, name string, c host.Command) error {
	s.all.audit(ctx, "upstream.add", name, []byte(strings.Join(append([]string{c.Command}, c.Args...), "\x00")))
	return s.all.addLocal(upstream.Spec{Name: name, Command: c.Command, Args: c.Args, Env: c.Env, Cwd: c.Cwd, Trusted: true})
}
