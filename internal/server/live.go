package server

import "github.com/luanette/luanette/internal/config"

// current is the configuration that holds: that of the start with what has taken effect
// since. Parts that heed changes ask here, all others srv.config.
func (srv *Server) current() *config.Loaded {
	if current := srv.latest.Load(); current != nil {
		return current
	}
	return srv.config
}

func (srv *Server) restartNeeded() []string { return srv.current().RestartNeeded() }

// applyLive brings the parts that are set by hand in line with the configuration that
// holds now; others ask for it themselves.
func (srv *Server) applyLive(before *config.Loaded) {
	config := &srv.current().Config
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
