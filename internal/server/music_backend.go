package server

import (
	"context"
	"slices"

	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/ui/contents"
)

// openMusic opens the music backend if it is enabled, or configured as an upstream: then
// the upstream's tools are listed, and the routes and resources lead to its contents.
func (srv *Server) openMusic(ctx context.Context) error {
	if !srv.config.Music.Enabled && !srv.musicIsRemote() {
		return nil
	}
	backend, err := srv.musicBackend(ctx)
	if err != nil {
		return err
	}
	srv.localMusic = backend
	if srv.musicIsRemote() {
		srv.log.InfoContext(ctx, "music tools come from an upstream", "upstream", hootenanny.Space)
	}
	tools := &hootenanny.LocalTools{Source: backend.Tools(), IsRemote: srv.musicIsRemote}
	srv.catalog.Add(tools)
	if srv.config.Music.Enabled {
		srv.upstreams.AddInProcess(hootenanny.Space, tools)
	}
	return nil
}

// whyHidden says why a tool is not listed.
func (srv *Server) whyHidden(name string) error {
	if err := srv.pins.WhyHidden(name); err != nil || srv.localMusic != nil || srv.musicIsRemote() {
		return err
	}
	return hootenanny.WhyOff(name)
}

// exposeMusic lists the configured music tools directly, unless they are an upstream's.
func (srv *Server) exposeMusic(now *config.Config) {
	if srv.localMusic != nil && !srv.musicIsRemote() {
		names := now.Music.Expose
		srv.catalog.Expose(hootenanny.Space, catalog.Exposure{All: slices.Contains(names, "all") || slices.Contains(names, upstream.ExposeAll), Names: names})
	}
}

// remoteMusic is the music backend behind an upstream, for as long as there is one.
func (srv *Server) remoteMusic() hootenanny.Remote {
	return hootenanny.Remote{Tools: srv.catalog, Files: srv.contents}
}

// music is the music backend of this process or of the upstream that replaces it.
func (srv *Server) music() hootenanny.Locator {
	return hootenanny.Locator{Local: srv.localMusic, Remote: srv.remoteMusic(), IsRemote: srv.musicIsRemote}
}

// musicIsRemote tells whether an upstream has the namespace of the music tools.
func (srv *Server) musicIsRemote() bool {
	_, configured := srv.current().Upstreams[hootenanny.Space]
	if configured || srv.upstreams == nil {
		return configured
	}
	_, added := srv.upstreams.Manager.Status(hootenanny.Space)
	return added
}

// limits are the limits of a namespace's calls. Tools of this process have none.
func (srv *Server) limits(namespace string) catalog.Limits {
	if namespace == hootenanny.Space && !srv.musicIsRemote() {
		return catalog.Limits{Concurrent: -1, Failures: -1}
	}
	u := srv.current().Upstreams[namespace]
	return catalog.Limits{Concurrent: u.Concurrent, Rate: u.Rate, Each: upstream.Spec{Settings: upstream.Settings{Login: u.Login}}.Personal()}
}

// musicBackend opens the music backend on the server's stores.
func (srv *Server) musicBackend(ctx context.Context) (*hootenanny.Backend, error) {
	backend, err := hootenanny.Open(ctx, srv.store, hootenanny.Options{
		Files: srv.contents, Events: srv.bus, Log: srv.log, Propagator: telemetry.Propagator(), URL: srv.address, Node: srv.node.Name(),
		Folders:  slices.Concat([]string{srv.config.TempFolder(), srv.config.Folder("jobs")}, config.AbsoluteFolders(srv.config.Scripts.Write), config.AbsoluteFolders(srv.config.Scripts.Read)),
		Services: hootenanny.Services(srv.config.Music.Services), Models: srv.config.Music.Models,
	})
	if err == nil {
		srv.closeLast.within("the music backend", flushTimeout, func(ctx context.Context) error { backend.Close(ctx); return nil })
	}
	return backend, err
}

// files serves contents over HTTP.
func (srv *Server) files() *contents.Server {
	return contents.New(srv.music(), contents.Options{
		MaxUpload: int64(srv.config.Music.UploadMB) << 20,
	})
}
