package terminal

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/sse"
)

// node is one of the servers that share a database, as /api/v1/nodes lists them.
type node struct {
	ID       plain     `json:"id"`
	Name     plain     `json:"name"`
	State    plain     `json:"state"` // up, draining or silent
	Address  plain     `json:"address,omitempty"`
	Version  plain     `json:"version,omitempty"`
	Started  time.Time `json:"started"`
	LastSeen time.Time `json:"heard"`
	Load     *load     `json:"load,omitempty"`
	Current  bool      `json:"asked,omitempty"` // the node that we are connected to
}

// load is the current load of a node.
type load struct {
	Calls    float64 `json:"calls_per_minute"`
	InFlight int     `json:"in_flight"`
	Jobs     int     `json:"jobs"`
	Sessions int     `json:"sessions"`
	CPU      float64 `json:"cpu_percent"`
	Memory   float64 `json:"memory_mb"`
}

func (l *load) text() plain {
	if l == nil {
		return ""
	}
	return plain(fmt.Sprintf("%.0f calls/min, %d in flight, %s, %.0f%% cpu, %.0f MB", l.Calls, l.InFlight, counted(l.Jobs, "job", "jobs"), l.CPU, l.Memory))
}

// nodes lists the nodes. The list is empty if there is only one, or if the server has
// no such endpoint.
func (s *server) nodes(ctx context.Context) ([]node, error) {
	var response struct {
		Node  plain
		Nodes []node
	}
	err := s.request(ctx, http.MethodGet, "api/v1/nodes", &response)
	if fault.CodeOf(err) == fault.NotFound || err == nil && len(response.Nodes) < 2 {
		return nil, nil
	}
	for i := range response.Nodes {
		response.Nodes[i].Current = response.Nodes[i].ID == response.Node
	}
	return response.Nodes, err
}

// request sends a request without a body to the server's HTTP API.
func (s *server) request(ctx context.Context, method, path string, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, s.base.JoinPath(path).String(), http.NoBody)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "request %s", path)
	}
	response, err := s.do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(response.Body, sse.MaxEvent))
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "read the response of %s", path)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fault.Wrap(fault.Upstream, err, "read the response of %s", path)
	}
	return nil
}

// row is a node as a row of a table.
func (n *node) row(now time.Time) []cell {
	name, state := n.Name, cell{n.State, green}
	if n.Current {
		name += " (this node)"
	}
	if n.State != "up" {
		state.style = red
	}
	return []cell{{name, bold}, state, {n.Address, normal}, {n.Version, faint}, {short(now.Sub(n.Started)), faint}, {n.Load.text(), faint}}
}

// nodeColumns are the columns of the list of nodes.
var nodeColumns = []column{{title: "Nodes"}, {title: "state"}, {title: "address"}, {title: "version"}, {title: "up", right: true}, {title: "load"}}

// nodeDetails shows all nodes.
func (m *model) nodeDetails() details {
	about := []plain{"This server does not share its database with other nodes."}
	if nodes := m.shown().Nodes; len(nodes) > 0 {
		rows := make([]row, len(nodes))
		for i := range nodes {
			rows[i].cells = nodes[i].row(m.now())
		}
		var text strings.Builder
		writeRows(&text, nodeColumns, rows, 0)
		about = lines(strings.TrimRight(text.String(), "\n"))
	}
	return details{title: "Nodes", about: about}
}

// nodeNote is the header's note about nodes: how many, and how many are silent.
func (b *state) nodeNote() string {
	if len(b.Nodes) == 0 {
		return ""
	}
	silent := 0
	for i := range b.Nodes {
		if b.Nodes[i].State == "silent" {
			silent++
		}
	}
	if silent > 0 {
		return styles[red].Render(fmt.Sprintf("%d nodes, %d silent", len(b.Nodes), silent))
	}
	return fmt.Sprintf("%d nodes", len(b.Nodes))
}

// restartNote is the header's note about settings that need a restart.
func (b *state) restartNote() string {
	if len(b.Restart) == 0 {
		return ""
	}
	return "restart needed for " + strings.Join(texts(b.Restart), ", ")
}

// at is the suffix that names another node.
func at(node plain) plain {
	if node == "" {
		return ""
	}
	return " @" + node
}
