package server

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/ui/contents"
)

// tempFolder holds the temporary folders of scripts, whose files they may upload.
func (srv *Server) tempFolder() string { return srv.dataFolder("temp") }

// dataFolder is the absolute path of a folder in the data folder.
func (srv *Server) dataFolder(name string) string {
	path, err := filepath.Abs(filepath.Join(srv.config.Data, name))
	if err != nil {
		return filepath.Join(srv.config.Data, name)
	}
	return path
}

// openMusic opens the music backend if it is enabled. Its tools are listed unless an
// upstream has their namespace.
func (srv *Server) openMusic(ctx context.Context) error {
	if !srv.config.Hoot.Enabled {
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
	srv.catalog.Add(&hootenanny.LocalTools{Source: backend.Tools(), IsRemote: srv.musicIsRemote})
	return nil
}

// exposeMusic lists the configured music tools directly, unless they are an upstream's.
func (srv *Server) exposeMusic(now *config.Config) {
	if srv.localMusic != nil && !srv.musicIsRemote() {
		names := now.Hoot.Expose
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
	if _, configured := srv.current().Upstreams[hootenanny.Space]; configured {
		return true
	}
	if srv.upstreams == nil {
		return false
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
	return catalog.Limits{Concurrent: u.Concurrent, Rate: u.Rate}
}

// musicBackend opens the music backend on the server's stores.
func (srv *Server) musicBackend(ctx context.Context) (*hootenanny.Backend, error) {
	s := srv.config.Hoot.Services
	return hootenanny.Open(ctx, srv.store, hootenanny.Options{
		Store: hootenanny.NewStore(srv.contents), Events: srv.bus, Log: srv.log, Propagator: telemetry.Propagator(), URL: srv.address,
		Folders: slices.Concat([]string{srv.tempFolder(), srv.dataFolder("jobs")}, config.AbsoluteFolders(srv.config.Scripts.Write), config.AbsoluteFolders(srv.config.Scripts.Read)),
		Services: hootenanny.Services{
			Orpheus: s.Orpheus, OrpheusClassifier: s.Classifier, OrpheusBridge: s.Bridge, OrpheusLoops: s.Loops,
			MusicGen: s.MusicGen, CLAP: s.CLAP, YuE: s.YuE, BeatThis: s.BeatThis,
		},
	})
}

// address is the URL of our HTTP server; "" if there is none.
func (srv *Server) address() string {
	if srv.config.Hoot.URL != "" {
		return strings.TrimRight(srv.config.Hoot.URL, "/")
	}
	base, _ := srv.listening.Load().(string)
	return base
}

// files serves contents over HTTP.
func (srv *Server) files() *contents.Server {
	return contents.New(srv.music(), contents.Options{
		Browsers: netguard.Browsers{Origins: srv.config.MCP.AllowedOrigins}, MaxUpload: int64(srv.config.Hoot.UploadMB) << 20,
	})
}

// makeTempFolder creates that folder.
func (srv *Server) makeTempFolder() error {
	if err := os.MkdirAll(srv.tempFolder(), 0o700); err != nil {
		return fault.Wrap(fault.Config, err, "make temp folder")
	}
	return nil
}
