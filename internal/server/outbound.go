package server

import (
	"slices"

	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/config"
)

// outbound decides which addresses clients may make the server connect to. This machine
// is allowed if only this machine can reach the server: its clients are its owner.
func (srv *Server) outbound() netguard.Outbound {
	allowed := srv.config.MCP.AllowedHosts
	return netguard.Outbound{Allowed: allowed, Loopback: config.ListensLocally(srv.config.Listen) || slices.Contains(allowed, "localhost")}
}
