package server

import "github.com/luanette/luanette/internal/config"

// applyLive applies settings that can change while the server runs to the parts that do
// not read the configuration themselves.
func (srv *Server) applyLive(before *config.Loaded) {
	now := &srv.current().Config
	srv.telemetry.SetLevel(logLevel(now.Log.Level))
	if now.GCPercent != before.GCPercent {
		now.TuneCollector(srv.options.Env)
	}
	srv.exposeMusic(now)
	srv.catalog.Pin(now.MCP.Pinned)
	srv.catalog.ReloadLimits()
	if srv.menu != nil && (now.MCP.Menu != before.MCP.Menu || now.MCP.ListScripts != before.MCP.ListScripts) {
		srv.menu.Set(now.MCP.Menu, now.MCP.ListScripts)
	}
}
