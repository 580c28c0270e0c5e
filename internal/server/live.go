package server

import "github.com/luanette/luanette/internal/config"

// now is the configuration that holds: that of the start with what has taken effect
// since. Parts that heed changes ask here, all others srv.config.
func (srv *Server) now() *config.Loaded {
	if current := srv.current.Load(); current != nil {
		return current
	}
	return srv.config
}

func (srv *Server) restartNeeded() []string { return srv.now().RestartNeeded() }

// tune brings the parts that are set by hand in line with the configuration that
// holds now; others ask for it themselves.
func (srv *Server) tune(before *config.Loaded) {
	config := &srv.now().Config
	srv.telemetry.SetLevel(logLevel(config.Log.Level))
	if config.GCPercent != before.GCPercent {
		TuneCollector(config.GCPercent, srv.options.Env)
	}
	srv.exposeMusic(config)
	srv.catalog.Pin(config.MCP.Pinned)
	srv.catalog.ReloadLimits()
	if srv.menu != nil && (config.MCP.Mode != before.MCP.Mode || config.MCP.CodeThreshold != before.MCP.CodeThreshold) {
		srv.menu.Set(config.MCP.Mode, config.MCP.CodeThreshold)
	}
}
