package main

import (
	"context"
	"strings"
	"time"

	"github.com/luanette/luanette/bench/calls"
)

// row is one way by which calls reach the tool.
type row struct {
	name   string
	server *process
	path   string
	era    string // of the client
	tool   string
	proxy  int // index of the reverse proxy's row in the same era; -1 without one
	also   int // index of the other binary's row; -1 without one
}

// rows are all ways to the tool whose names contain a text, and those they are compared
// with.
func (s *servers) rows(only string) []row {
	var rows []row
	for _, era := range []string{calls.Legacy, calls.Modern} {
		title := map[string]string{calls.Legacy: "sessions era", calls.Modern: "stateless era"}[era]
		proxy := len(rows) + 1
		rows = append(rows,
			row{name: title + ", upstream alone", server: s.upstream, path: "/mcp", era: era, tool: "echo", proxy: proxy, also: -1},
			row{name: title + ", reverse proxy", server: s.proxy, path: "/mcp", era: era, tool: "echo", proxy: proxy, also: -1})
		for _, over := range []string{"http", "stdio"} {
			for _, path := range []string{"/mcp", "/mcp/" + over} {
				r := row{name: title + ", " + path + " over " + over, server: s.hub, path: path, era: era, tool: "echo", proxy: -1, also: -1}
				if path == "/mcp" {
					r.tool = over + "__echo"
				}
				if over == "http" {
					r.proxy = proxy
				}
				if !strings.Contains(r.name, only) {
					continue
				}
				if s.also != nil {
					other := r
					other.name, other.server = r.name+", other binary", s.also
					r.also = len(rows)
					rows = append(rows, other)
				}
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// cost is what one call took in a round: half of the calls at most p50, and the server's
// CPU for each.
type cost struct{ p50, cpu time.Duration }

// measure calls for a while, after a shorter while to warm up.
func (r row) measure(ctx context.Context, clients int, length time.Duration) (c cost, err error) {
	callers, err := calls.Connect(ctx, r.server.url+r.path, r.era, r.tool, clients)
	if err != nil {
		callers.Close()
		return c, err
	}
	defer callers.Close()
	if _, err := callers.Call(ctx, length/4); err != nil {
		return c, err
	}
	before, err := r.server.cpu()
	if err != nil {
		return c, err
	}
	times, err := callers.Call(ctx, length)
	if err != nil {
		return c, err
	}
	after, err := r.server.cpu()
	return cost{calls.Quantile(times, 50), (after - before) / time.Duration(max(1, len(times)))}, err
}
