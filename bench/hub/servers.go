package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/luanette/luanette/bench/calls"
)

// servers are the processes of a run.
type servers struct {
	upstream, proxy, hub *process
	also                 *process // nil without -also
	folder               string
}

// startServers starts them all. The caller stops what was started, also after an error.
func startServers(ctx context.Context, also string) (s *servers, err error) {
	s = &servers{}
	if s.folder, err = os.MkdirTemp("", "luanette-bench-"); err != nil {
		return s, err
	}
	self, err := os.Executable()
	if err != nil {
		return s, err
	}
	if s.upstream, err = start(ctx, "/mcp", self, "-role", "upstream", "-listen"); err != nil {
		return s, err
	}
	if s.proxy, err = start(ctx, "/mcp", self, "-role", "proxy", "-upstream", s.upstream.url, "-listen"); err != nil {
		return s, err
	}
	if s.hub, err = s.startHub(ctx, "this", self, "-role", "hub"); err != nil || also == "" {
		return s, err
	}
	s.also, err = s.startHub(ctx, "also", also, "serve")
	return s, err
}

// startHub starts a luanette with everything on and approves the tools of its upstreams.
func (s *servers) startHub(ctx context.Context, name, binary string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(s.folder, name)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(folder, "luanette.toml")
	var text strings.Builder
	fmt.Fprintf(&text, "data = %q\n%s[log]\nlevel = \"error\"\n", folder, calls.Checks["on"])
	fmt.Fprintf(&text, "[upstreams.http]\nurl = %q\nexpose = \"all\"\n", s.upstream.url+"/mcp")
	fmt.Fprintf(&text, "[upstreams.stdio]\ncommand = %q\nargs = [\"-role\", \"stdio\"]\nexpose = \"all\"\n", self)
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return nil, err
	}
	p, err := start(ctx, "/health", binary, append(args, "--config", file, "--listen")...)
	if err != nil {
		return p, err
	}
	for _, upstream := range []string{"http", "stdio"} {
		if err := calls.Approve(ctx, p.url, upstream); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (s *servers) stop() {
	for _, p := range []*process{s.also, s.hub, s.proxy, s.upstream} {
		if p != nil {
			p.stop()
		}
	}
	_ = os.RemoveAll(s.folder) // the folder is temporary anyhow
}
