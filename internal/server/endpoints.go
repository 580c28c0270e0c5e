package server

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/builtin/approvaltools"
	"github.com/luanette/luanette/internal/builtin/apptools"
	"github.com/luanette/luanette/internal/builtin/jobtools"
	"github.com/luanette/luanette/internal/builtin/offertools"
	"github.com/luanette/luanette/internal/builtin/scripttools"
	"github.com/luanette/luanette/internal/builtin/searchtools"
	"github.com/luanette/luanette/internal/builtin/servertools"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/setup"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/erasure"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/offers"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/tools/toolset"
	"github.com/luanette/luanette/internal/ui/toolsapi"
	"github.com/luanette/luanette/internal/ui/web"
)

// endpoints serve clients.
type endpoints struct {
	hub       *hub.Hub
	dashboard *web.Server
	toolsAPI  *toolsapi.Server // for programs that do not speak MCP
	setup     *setup.Service
	erasure   *erasure.Service // nil if nobody can sign in
	chats
}

func openEndpoints(ctx context.Context, in *parts) (*endpoints, error) {
	e := &endpoints{dashboard: newDashboard(in), hub: newHub(in), toolsAPI: newToolsAPI(in)} //nolint:contextcheck // what they watch lives as long as the server
	e.setup = setup.For(in.config, in.options.Env, setup.Options{
		Address: in.URL, Audit: in.audit.RecordAction, Current: in.current,
		TryModel: func(ctx context.Context, m *config.ChosenModel) error {
			return m.Try(ctx, in.current(), in.options.Env, in.secrets)
		},
		Reload:  func(ctx context.Context) { _, _ = in.reloadLogged(ctx, false) }, // it is logged
		Connect: in.trialConnection, SetCosts: in.setCosts,
	})
	defer in.closeFirst.within("the MCP endpoint", flushTimeout, e.hub.Close) // before the chat
	if !in.options.Jobs {
		return e, nil
	}
	var err error
	if e.chats, err = openChat(ctx, in); err != nil {
		return nil, err
	}
	e.erasure, err = openErasure(ctx, in)
	return e, err
}

func newToolsAPI(in *parts) *toolsapi.Server {
	return toolsapi.New(toolsapi.Options{
		Tools: in.catalog, Version: in.options.Version, KeyRequired: in.auth.KeyRequired, Caller: caller,
	})
}

// trialConnection are the options of a connection beside those of the upstreams.
func (in *parts) trialConnection() upstream.Options {
	return upstream.Options{
		Log: slog.New(slog.DiscardHandler), ClientVersion: in.options.Version, CAFile: in.config.CAFile, Getenv: in.options.Env.Lookup, Environ: in.options.Env.Pairs,
		Secret: in.secrets.Find, Proxy: in.proxy(), Sandbox: in.sandbox,
	}
}

// registerTools adds our own tools to the catalog.
func (in *parts) registerTools() {
	c := &in.config.Scripts
	families := [][]toolset.Tool{
		servertools.Tools(in.upstreams, in.catalog, servertools.AllowHosts(in.config.MCP.AllowedHosts), in.orgUpstreams()),
		searchtools.Tools(in.catalog, searchtools.Options{Shapes: in.results, Reads: in.policy.Reads, Await: in.awaitTools}),
		offertools.Tools(in.offers),
		builtin.Results(in.results, in.config.MCP.ResultKB<<10),
		scripttools.Tools(in.scripts.runner, in.scripts.store, in.scripts.published, in.scripts.sessions),
		scripttools.Sessions(in.scripts.sessions),
		jobtools.Traces(in.telemetry.Traces()),
		apptools.WithPages(approvaltools.Tools(in.approvals, in.scripts.sessions)),
		scripttools.Code(in.scripts.runner, in.scripts.sessions, scripttools.CodeOptions{
			Time: time.Duration(c.CodeTime), Longest: time.Duration(c.Timeout), Memory: int64(c.CodeMB) << 20,
			Calls: int64(c.CodeCalls), ChatCalls: int64(c.ChatCalls),
		}),
		scripttools.Preview(in.scripts.runner, in.scripts.sessions, in.scripts.store, in.catalog),
	}
	if in.jobs != nil {
		families = append(families, apptools.WithPages(jobtools.Tools(in.jobs, in.scripts.store, in.scripts.runner)), jobtools.Schedules(in.jobs, in.scripts.published))
	}
	own := toolset.NewSet("", families...)
	in.ownTools.Store(&ownTools{own, in.scripts.published})
	in.catalog.Add(builtin.LimitedSet{Set: own, Keeper: in.results, Shown: in.config.MCP.ResultKB << 10})
}

// newHub builds the MCP endpoint.
func newHub(in *parts) *hub.Hub {
	exposed := in.catalog.Exposed()
	return hub.New(hub.Options{
		Name: "luanette", Title: "Luanette", Version: in.options.Version,
		Tools:        offers.Apps{Menu: in.menu, Catalog: in.catalog, Offers: in.offers, Own: in.apps},
		Menus:        builtin.Menus,
		HubMenu:      builtin.MenuFull,
		Offers:       in.offers,
		Tasks:        in.jobTasks(),
		RelayedTasks: in.tasks.Hub(),
		Upstreams:    peers{in.upstreams, in},
		Sets:         sets{in.process, in.menu},
		Logins:       in.loginService,
		SessionStore: in.sessionStore,
		Nodes:        in.hubNodes(),
		Changes:      in.offers.Changes(builtin.Changes(exposed, in.bus)),
		Principal:    caller,
		Origins:      in.config.MCP.AllowedOrigins,
		Proxies:      in.config.Browsers().Proxies,
		Limits:       hub.Limits{Idle: time.Duration(in.config.MCP.SessionIdle)},
		Log:          in.log,
		Tracer:       in.telemetry.Tracer("hub"), Meter: in.telemetry.Meter("hub"), Propagator: telemetry.Propagator(),
	})
}

// openApps makes the Apps of our own.
func (in *parts) openApps() *apptools.Apps {
	return apptools.New(apptools.Options{
		Pages: web.Apps(), Keys: secret.Box{Key: in.storedKey()}, URL: in.publicURL, Decide: in.config.MCP.DecideInApps, All: in.catalog,
	})
}

// openOffers joins all resources and prompts at /mcp.
func (in *parts) openOffers() *offers.Offers {
	all := offers.New(offers.Options{
		Resources: in.resources(), Prompts: in.prompts(), Completer: in.completions(), Skills: scripttools.Skills(in.scripts.published, in.catalog), Upstreams: peers{in.upstreams, in}, Links: in.links,
		Pages: in.pages,
	})
	in.closeFirst.plain("the subscriptions", all.Close) // after the MCP endpoint
	return all
}

// pages are those of the tools that the caller of ctx sees, without those that it may not read.
func (in *parts) pages(ctx context.Context) (list []offers.Page) {
	seen, err := in.catalog.Exposed().Visible(tool.WithApps(ctx))
	if err != nil {
		return nil
	}
	for i := range seen {
		info := &seen[i]
		if info.App.Page == "" {
			continue
		}
		page := offers.Page{Namespace: in.catalog.Real(ctx, info.Ref).Space, URI: info.App.Page}
		of := tool.Info{Ref: tool.ReadsResource.Ref(page.Namespace, page.URI), Hints: tool.Hints{ReadOnly: true}}
		if in.catalog.Lists(ctx, &of) && !slices.Contains(list, page) {
			list = append(list, page)
		}
	}
	return list
}

// newDashboard builds the endpoints of the web page and the dashboard.
func newDashboard(in *parts) *web.Server {
	return web.New(web.Options{
		Bus: in.bus, Traces: in.telemetry.Traces(), Calls: in.history, Process: rand.Text(),
		Config:        func(to principal.Principal, w io.Writer) error { return in.current().VisibleTo(to).Show(w) },
		OnFirstReader: in.announceReader,
	})
}

// resources are the MCP resources of the server.
func (in *parts) resources() *builtin.Resources {
	families := [][]builtin.Resource{
		servertools.Resources(in.catalog, in.upstreams, in.catalog),
		builtin.CostResources(in.catalog, in.menu),
		builtin.SetResources(in.menu, in.setsFor),
		scripttools.Resources(in.scripts.store),
		in.apps.Resources(),
		jobtools.TraceResources(in.telemetry.Traces()),
	}
	if in.jobs != nil {
		families = append(families, jobtools.Resources(in.jobs))
	}
	if in.localMusic != nil {
		families = append(families, builtin.MusicResources(in.music()))
	}
	return builtin.NewResources(families...)
}

// prompts are the MCP prompts of the server.
func (in *parts) prompts() *builtin.Prompts {
	return scripttools.Prompts(in.scripts.runner, in.scripts.store, in.catalog)
}

// completions suggest values for arguments.
func (in *parts) completions() builtin.Completions {
	all := []builtin.Completions{builtin.NamespaceCompletions(in.catalog), scripttools.Completions(in.scripts.store)}
	if in.jobs != nil {
		all = append(all, jobtools.Completions(in.jobs))
	}
	return builtin.Join(all...)
}
