package server

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin/scripttools"
	"github.com/luanette/luanette/internal/builtin/servertools"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/policy"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/memory"
	webmodule "github.com/luanette/luanette/internal/scripting/module/http"
	"github.com/luanette/luanette/internal/scripting/module/workspace"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/scripting/script/publish"
	"github.com/luanette/luanette/internal/scripting/script/session"
	"github.com/luanette/luanette/internal/scripting/script/startup"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/kv"
	"github.com/luanette/luanette/internal/tools/definition"
	"github.com/luanette/luanette/internal/ui/contents"
)

// scripts are the parts that run, store and publish scripts.
type scripts struct {
	js        *script.JavaScriptEngine
	runner    *script.Runner
	store     *artifact.Store
	published *publish.Published
	sessions  *session.Sessions
	folder    *publish.Folder
}

// openScripts opens the runner, the store of scripts, published scripts and sessions.
func openScripts(ctx context.Context, p *process, s *storage, g *guards, src *sources) (*scripts, error) {
	pool := p.config.ScriptMemory(p.options.Env)
	javascript, err := openJavaScript(p, pool) //nolint:contextcheck // its modules outlive the start
	if err != nil {
		return nil, err
	}
	p.closeLast.within("JavaScript", flushTimeout, javascript.Close)
	runner, err := openRunner(ctx, p, s, g, script.Options{
		JavaScript: javascript, Memory: pool, Approvals: src.approvals,
		Tools: src.catalog, Upstreams: script.Upstreams{Set: src.upstreams, CheckURL: servertools.AllowHosts(p.config.MCP.AllowedHosts)},
		Contents: hootenanny.Contents{Files: s.contents, Remote: hootenanny.Remote{Tools: src.catalog, Files: s.contents}, IsRemote: src.musicIsRemote},
		Fields: func(ctx context.Context, ref tool.Ref) []string {
			return definition.FieldNames(src.catalog.OutputOf(ctx, ref))
		},
		AwaitTools: src.awaitTools,
	})
	if err != nil {
		return nil, err
	}
	store := s.contents.Store
	published, err := publish.Open(ctx, p.store, runner, store, publish.Options{
		Reserved: p.isOwn, Shared: p.isShared(), Changed: src.catalog.Refresh, Use: store.Use, Events: p.bus, Log: p.log,
	})
	if err != nil {
		return nil, err
	}
	store.SetPublic(func(ctx context.Context, ref cas.Ref) bool { return published.Current(ctx)[ref].Name != "" })
	o := p.config.Sessions.SessionOptions()
	o.Events, o.Node, o.Log, o.Pool = p.bus, p.jobNode(), p.log, pool
	o.Shares, o.NameOf = g.shares, g.shares.NameOf
	sessions, err := session.Open(ctx, p.store, runner, o)
	if err != nil {
		return nil, err
	}
	g.shares.Register(principal.Session, sessions.SharedSession)
	dir := cmp.Or(p.config.Scripts.Folder, filepath.Join(p.config.Data, "scripts"))
	return &scripts{javascript, runner, store, published, sessions, publish.NewFolder(dir, published, scripttools.NewSourceWriter(runner, store), p.log)}, nil
}

// openRunner opens the runner, and adds what scripts may use beside tools.
func openRunner(ctx context.Context, p *process, s *storage, g *guards, o script.Options) (*script.Runner, error) {
	temp, err := host.OpenTempRoot(ctx, p.config.TempFolder())
	if err != nil {
		return nil, err
	}
	p.closeLast.add("temporary files", temp.Close)
	if o.KV, err = kv.Open(ctx, p.store); err != nil {
		return nil, err
	}
	c := p.config.Scripts
	if o.HTTP, err = webmodule.NewClient(webmodule.ClientOptions{Hosts: c.HTTPHosts, Proxy: p.proxy()}); err != nil {
		return nil, fault.Wrap(fault.Config, err, "scripts.http_hosts")
	}
	o.Events, o.Log, o.Tracer, o.Meter = p.bus, p.log, p.telemetry.Tracer("script"), p.telemetry.Meter("script")
	o.Results, o.CPU, o.TempDir, o.Clock = s.results, g.orgs, temp.Dir(), clock.Real()
	o.Jobs, o.Scope, o.CurrentPrincipal = p.scriptJobs, p.chatScope, g.currentPrincipal
	o.Flow = policy.WithKeys{Policy: g.policy, Keys: g.keys}
	o.Language = func(ctx context.Context, hash cas.Ref) string {
		mime, err := s.contents.MIMEOf(ctx, hash)
		if err != nil {
			return "" // as for one that was not stored
		}
		return script.LanguageOf(mime)
	}
	o.Commands, o.GetWrites = scriptPrograms(p, g.sandbox), c.HTTPGet == "write"
	o.Getenv = func(name string) (string, bool) {
		if !slices.Contains(c.Env, name) {
			return "", false
		}
		return p.options.Env.Lookup(name)
	}
	o.Files = host.FilesOptions{Read: c.Read, Write: c.Write}
	o.Limits = script.Limits{Time: time.Duration(c.Timeout), Memory: int64(c.MemoryMB) << 20, Calls: int64(c.Calls)}
	return script.NewRunner(o), nil //nolint:contextcheck // its functions get the context of their run
}

// openJavaScript opens the JavaScript engine. It caches compiled code, which saves a
// second of CPU at the next start, and runs what the cache holds. So only the owner may
// write to that folder.
func openJavaScript(p *process, pool *memory.Pool) (*script.JavaScriptEngine, error) {
	folder := cmp.Or(p.config.Scripts.Cache, filepath.Join(p.config.Data, "cache", "javascript"))
	if info, err := os.Stat(folder); err == nil && !config.OnlyOwnerWrites(info) {
		return nil, fault.New(fault.Config, "other users may write to %s, which holds compiled code", folder).WithHint("chmod go-w %s", folder)
	}
	return script.NewJavaScript(script.JavaScriptOptions{
		CacheDir: folder, Log: p.log, Pool: pool,
		Memory: max(int64(p.config.Scripts.MemoryMB)<<20, script.DefaultLimits().Memory),
	})
}

// scriptPrograms are the programs that scripts may start. They run in the first folder
// that scripts may write to, with the variables that scripts may read and PATH, HOME and
// LANG.
func scriptPrograms(p *process, launcher *launch.Launcher) host.Commands {
	c := p.config.Scripts
	o := workspace.CommandOptions{
		Allow: c.Commands, Timeout: time.Duration(c.Timeout),
		Dir: os.TempDir(), Profile: p.config.ScriptProfile(), Sandbox: launcher,
	}
	if len(c.Write) > 0 {
		o.Dir = c.Write[0]
	}
	for _, name := range append([]string{"PATH", "HOME", "LANG"}, c.Env...) {
		if value, ok := p.options.Env.Lookup(name); ok {
			o.Env = append(o.Env, name+"="+value)
		}
	}
	return workspace.NewPrograms(o)
}

// startingKey marks the context of what happens before settled is closed.
type startingKey struct{}

// awaitStartup waits until startup.lua has run: it decides which tools there are, and its
// hooks hold for every call but its own.
func (p *process) awaitStartup(ctx context.Context) error {
	select {
	case <-p.settled:
		return nil
	default:
	}
	if ctx.Value(startingKey{}) != nil {
		return nil
	}
	select {
	case <-p.settled:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.CodeOf(ctx.Err()), context.Cause(ctx), "wait for startup.lua")
	}
}

// startScripts publishes the scripts folder and runs startup.lua. Its hooks and event
// handlers stay active in the background.
func (srv *Server) startScripts(ctx context.Context) {
	defer close(srv.settled)
	ctx = context.WithValue(ctx, startingKey{}, true)
	if err := srv.scripts.folder.Sync(ctx); err != nil {
		srv.log.WarnContext(ctx, "scripts folder", "error", err)
	}
	path := srv.config.Scripts.Startup
	if path == "" {
		path = filepath.Join(config.UserFolder(srv.options.Env), "startup.lua")
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return // nobody has asked for one
		}
	}
	if source, err := os.ReadFile(path); err == nil && srv.options.Jobs {
		srv.audit.RecordAction(ctx, "startup.run", path, source)
	}
	loaded := startup.Run(ctx, srv.scripts.runner, path, startup.Options{
		Upstreams: script.StartupUpstreams{Upstreams: script.Upstreams{Set: srv.upstreams}}, Events: srv.bus, Log: srv.log,
	})
	srv.setHooks(ctx, loaded.Hooks(startup.HookOptions{
		Time: time.Duration(srv.config.Scripts.HookTime), Strict: srv.config.Scripts.HookFails == "refuse",
	}))
	if loaded.Listens() {
		srv.runBackground(loaded.Listen)
	}
}

// watchScripts follows what other processes publish and withdraw.
func (srv *Server) watchScripts(ctx context.Context) {
	srv.poll(ctx, publish.Topic, srv.scripts.published.Reload)
}

// setHooks sets the hooks of startup.lua; nil changes nothing.
func (srv *Server) setHooks(ctx context.Context, hooks *startup.Hooks) {
	if hooks == nil {
		return
	}
	srv.hooks.Store(hooks)
	if hooks.SeesCalls() {
		srv.catalog.SetHooks(hooks)
	}
	if hooks.SeesTools() {
		srv.upstreams.Overlay.SetTransform(hooks.Tools)
	}
	srv.catalog.Refresh(ctx)
}

// tools returns the scripts that are tools of the caller now.
func (s *scripts) tools(ctx context.Context) map[cas.Ref]contents.PublishedAs {
	tools := map[cas.Ref]contents.PublishedAs{}
	for ref, v := range s.published.Current(ctx) {
		tools[ref] = contents.PublishedAs{Name: v.Name, Version: v.Version}
	}
	return tools
}
