package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/luanette/luanette/internal/base/httpserver"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/jobs/jobrunner"
	"github.com/luanette/luanette/internal/jobs/musicjob"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// BuildMusic builds a server with the music backend only, for its own process.
func BuildMusic(ctx context.Context, config *config.Loaded, options Options) (*Server, error) {
	p, _, err := newProcess(ctx, config, options, event.New(event.BusOptions{}), telemetry.Options{Service: hootenanny.Space})
	if err != nil {
		return nil, err
	}
	if addr, err := net.ResolveTCPAddr("tcp", config.Listen); err == nil { // the server in front serves the contents
		p.listening.Store(httpserver.URL(addr))
	}
	backend, err := openOnlyMusic(ctx, p)
	if err != nil {
		return nil, errors.Join(err, p.Close(ctx))
	}
	return &Server{parts: &parts{process: p, tooling: &tooling{localMusic: backend}}}, nil
}

func openOnlyMusic(ctx context.Context, p *process) (*hootenanny.Backend, error) {
	a, err := openAccess(ctx, p, nil, nil)
	if err != nil {
		return nil, err
	}
	shares, err := openShares(ctx, p, a)
	if err != nil {
		return nil, err
	}
	contents, err := openContents(ctx, p, shares, nil) // no quota: there are no organisations
	if err != nil {
		return nil, err
	}
	backend, err := openBackend(ctx, p, contents)
	if err != nil {
		return nil, err
	}
	queue, err := openQueue(ctx, p, jobrunner.Runner{Music: backend}, job.Options{Shares: shares, CurrentPrincipal: a.currentPrincipal})
	if err != nil {
		return nil, err
	}
	backend.SetJobs(musicjob.Queue{Jobs: queue})
	return backend, nil
}

// ServeMusic serves the music tools over ZeroMQ, and nothing else, until ctx ends; then it
// closes the server. Arguments are checked here too: not every client has a catalog.
func (srv *Server) ServeMusic(ctx context.Context, listen, broadcast string) error {
	checked := catalog.New(catalog.Options{
		Sources: []tool.Source{srv.localMusic.Tools()}, Steps: []tool.Step{catalog.CheckArguments()}, Log: srv.log,
	})
	b, err := srv.openBridge(ctx, backend{Name: hootenanny.Space, Listen: listen, Broadcast: broadcast, Source: checked})
	if err != nil {
		return errors.Join(err, srv.Close(ctx))
	}
	fmt.Fprintf(srv.options.Stderr, "luanette %s is listening on %s\n", srv.options.Version, b.Addr())
	for _, line := range [][2]string{{"serves", hootenanny.Space}, {"events", b.Broadcasts()}, {"data", srv.config.Data}, {"config", orNone(srv.config.File)}} {
		fmt.Fprintf(srv.options.Stderr, "  %-8s %s\n", line[0], line[1])
	}
	return errors.Join(b.Serve(ctx), srv.Close(ctx))
}

// isMusic reports whether a namespace is that of the music tools.
func isMusic(namespace string) bool { return namespace == hootenanny.Space }

// openMusic opens the music backend if it is enabled, or configured as an upstream: then
// the upstream's tools are listed, and the routes and resources lead to its contents.
func openMusic(ctx context.Context, p *process, s *storage, src *sources) (*hootenanny.Backend, error) {
	remote := src.musicIsRemote()
	if !p.config.Music.Enabled && !remote {
		return nil, nil
	}
	backend, err := openBackend(ctx, p, s.contents)
	if err != nil {
		return nil, err
	}
	if remote {
		p.log.InfoContext(ctx, "music tools come from an upstream", "upstream", hootenanny.Space)
	}
	tools := &hootenanny.LocalTools{Source: backend.Tools(), IsRemote: src.musicIsRemote}
	src.catalog.Add(tools)
	if p.config.Music.Enabled {
		src.upstreams.AddInProcess(hootenanny.Space, tools)
	}
	return backend, nil
}

// openBackend opens the music backend.
func openBackend(ctx context.Context, p *process, files *artifact.Files) (*hootenanny.Backend, error) {
	backend, err := hootenanny.Open(ctx, p.store, hootenanny.Options{
		Files: files, Events: p.bus, Log: p.log, Propagator: telemetry.Propagator(), URL: p.address, Node: p.node.Name(),
		Folders: slices.Concat([]string{p.config.TempFolder(), p.config.Folder("jobs")},
			config.AbsoluteFolders(p.config.Scripts.Write), config.AbsoluteFolders(p.config.Scripts.Read)),
		Services: hootenanny.Services(p.config.Music.Services), Models: p.config.Music.Models,
	})
	if err == nil {
		p.closeLast.within("the music backend", flushTimeout, func(ctx context.Context) error { backend.Close(ctx); return nil })
	}
	return backend, err
}

// remoteMusic tells whether an upstream has the namespace of the music tools.
func remoteMusic(p *process, manager *upstream.Manager) func() bool {
	return func() bool {
		_, configured := p.current().Upstreams[hootenanny.Space]
		_, added := manager.Status(hootenanny.Space)
		return configured || added
	}
}

// exposeMusic lists the configured music tools directly, unless they are an upstream's.
func (t *tooling) exposeMusic(names []string) {
	if t.localMusic != nil && !t.musicIsRemote() {
		t.catalog.Expose(hootenanny.Space, catalog.Exposure{All: slices.Contains(names, "all") || slices.Contains(names, upstream.ExposeAll), Names: names})
	}
}

// music is the music backend of this process or of the upstream that replaces it.
func (in *parts) music() hootenanny.Locator {
	return hootenanny.Locator{Local: in.localMusic, Remote: hootenanny.Remote{Tools: in.catalog, Files: in.contents}, IsRemote: in.musicIsRemote}
}
