package server

import (
	"context"
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
	"github.com/luanette/luanette/internal/tools/search"
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
func (srv *Server) openScripts(ctx context.Context) error {
	temp, err := host.OpenTempRoot(ctx, srv.config.TempFolder())
	if err != nil {
		return err
	}
	srv.temp = temp
	srv.closeLast.add(temp.Close)
	pool := srv.config.ScriptMemory(srv.options.Env)
	javascript, err := srv.openJavaScript(pool) //nolint:contextcheck // its modules outlive the start
	if err != nil {
		return err
	}
	srv.closeLast.within("JavaScript", flushTimeout, javascript.Close)
	values, err := kv.Open(ctx, srv.store)
	if err != nil {
		return err
	}
	runner, err := srv.newRunner(javascript, pool, values) //nolint:contextcheck // its functions get the context of their run
	if err != nil {
		return err
	}
	store := srv.contents.Store
	published, err := publish.Open(ctx, srv.store, runner, store, publish.Options{
		Reserved: srv.isOwn, Shared: srv.isShared(), Changed: srv.catalog.Refresh, Use: store.Use, Events: srv.bus, Log: srv.log,
	})
	if err != nil {
		return err
	}
	store.SetPublic(func(ctx context.Context, ref cas.Ref) bool { return published.Current(ctx)[ref].Name != "" })
	sessionOptions := srv.config.Sessions.SessionOptions()
	sessionOptions.Events, sessionOptions.Node, sessionOptions.Log, sessionOptions.Pool = srv.bus, srv.jobNode(), srv.log, pool
	sessionOptions.Shares, sessionOptions.NameOf = srv.shares, srv.shares.NameOf
	sessions, err := session.Open(ctx, srv.store, runner, sessionOptions)
	if err != nil {
		return err
	}
	srv.shares.Register(principal.Session, sessions.SharedSession)
	dir := srv.config.Scripts.Folder
	if dir == "" {
		dir = filepath.Join(srv.config.Data, "scripts")
	}
	srv.scripts = &scripts{javascript, runner, store, published, sessions, publish.NewFolder(dir, published, scripttools.NewSourceWriter(runner, store), srv.log)}
	return nil
}

// newRunner returns the runner with everything that scripts may use.
func (srv *Server) newRunner(javascript *script.JavaScriptEngine, pool *memory.Pool, values *kv.Store) (*script.Runner, error) {
	web, err := webmodule.NewClient(webmodule.ClientOptions{Hosts: srv.config.Scripts.HTTPHosts, Proxy: srv.proxy()})
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "scripts.http_hosts")
	}
	return script.NewRunner(script.Options{
		Tools: srv.catalog, Upstreams: script.Upstreams{Set: srv.upstreams, CheckURL: servertools.AllowHosts(srv.config.MCP.AllowedHosts)},
		Results: srv.results, Fields: srv.fieldsOf,
		Events: srv.bus, Log: srv.log,
		Tracer: srv.telemetry.Tracer("script"), Meter: srv.telemetry.Meter("script"),
		JavaScript: javascript, Memory: pool, CPU: srv.orgs, Language: srv.scriptLanguage, KV: values, Jobs: srv.scriptJobs,
		Contents: hootenanny.Contents{Files: srv.contents, Remote: srv.remoteMusic(), IsRemote: srv.musicIsRemote}, TempDir: srv.temp.Dir(), Clock: clock.Real(), Commands: srv.scriptPrograms(),
		HTTP: web, GetWrites: srv.config.Scripts.HTTPGet == "write",
		Getenv: srv.scriptVariable, Approvals: srv.approvals, AwaitTools: srv.awaitTools, CurrentPrincipal: srv.currentPrincipal(&srv.webhooks), Scope: srv.chatScope, Flow: policy.WithKeys{Policy: srv.policy, Keys: srv.keys},
		Files: host.FilesOptions{Read: srv.config.Scripts.Read, Write: srv.config.Scripts.Write},
		Limits: script.Limits{
			Time: time.Duration(srv.config.Scripts.Timeout), Memory: int64(srv.config.Scripts.MemoryMB) << 20,
			Calls: int64(srv.config.Scripts.Calls),
		},
	}), nil
}

// awaitTools waits until an upstream was tried, so that its tools are known.
func (srv *Server) awaitTools(ctx context.Context, namespace string) {
	srv.upstreams.AwaitAttempt(ctx, principal.Of(ctx).Namespace(namespace, srv.upstreams.Has))
}

// fieldsOf returns the field names of a tool's results, from its output schema or from
// results seen before.
func (srv *Server) fieldsOf(ctx context.Context, ref tool.Ref) []string {
	info, ok := srv.catalog.Find(ctx, ref)
	if !ok {
		return nil
	}
	if info.Output != nil {
		return search.FieldNames(info.Output)
	}
	return srv.results.Fields(ref)
}

// scriptVariable is os.getenv for scripts: the variables that the configuration lists.
func (srv *Server) scriptVariable(name string) (string, bool) {
	if !slices.Contains(srv.config.Scripts.Env, name) {
		return "", false
	}
	return srv.options.Env.Lookup(name)
}

// scriptPrograms are the programs that scripts may start. They run in the first folder
// that scripts may write to, with the variables that scripts may read and PATH, HOME and
// LANG.
func (srv *Server) scriptPrograms() host.Commands {
	o := workspace.CommandOptions{
		Allow: srv.config.Scripts.Commands, Timeout: time.Duration(srv.config.Scripts.Timeout),
		Dir: os.TempDir(), Profile: srv.config.ScriptProfile(), Sandbox: srv.sandbox,
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

// startScripts publishes the scripts folder and runs startup.lua. Its hooks and event
// handlers stay active in the background.
func (srv *Server) startScripts(ctx context.Context) {
	if err := srv.scripts.folder.Sync(ctx); err != nil {
		srv.log.WarnContext(ctx, "scripts folder", "error", err)
	}
	path := srv.config.Scripts.Startup
	if path == "" {
		path = filepath.Join(config.UserFolder(srv.options.Env), "startup.lua")
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
