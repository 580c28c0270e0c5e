package config

import "maps"

// Isolate removes what reaches out of the process, for tests: upstreams that are not
// recordings, files of other programs, and the rights of scripts outside of the sandbox.
func (c *Config) Isolate() {
	maps.DeleteFunc(c.Upstreams, func(_ string, u Upstream) bool { return u.Mock == "" })
	c.MCP.Import = nil
	c.Telemetry.OTLPEndpoint = ""
	s := &c.Scripts
	s.Startup, s.Read, s.Write, s.Env, s.Commands, s.HTTPHosts = "", nil, nil, nil, nil, nil
}
