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
	Current  bool      `json:"asked,omitempty"` // it is the one that we talk to
}

// load is what a node has to do.
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
	return plain(fmt.Sprintf("%.0f calls/min, %d under way, %s, %.0f%% cpu, %.0f MB", l.Calls, l.InFlight, counted(l.Jobs, "job", "jobs"), l.CPU, l.Memory))
}

// nodes lists them; one that is alone, or too old to know others, has none.
func (s *server) nodes(ctx context.Context) ([]node, error) {
	var answer struct {
		Node  plain
		Nodes []node
	}
	err := s.request(ctx, http.MethodGet, "api/v1/nodes", &answer)
	if fault.CodeOf(err) == fault.NotFound || err == nil && len(answer.Nodes) < 2 {
		return nil, nil
	}
	for i := range answer.Nodes {
		answer.Nodes[i].Current = answer.Nodes[i].ID == answer.Node
	}
	return answer.Nodes, err
}

// loadStale sends a request without a body to the server's own API.
func (s *server) request(ctx context.Context, method, path string, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, s.base.JoinPath(path).String(), http.NoBody)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "ask for %s", path)
	}
	answer, err := s.do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, sse.MaxEvent))
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "read the answer of %s", path)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fault.Wrap(fault.Upstream, err, "read the answer of %s", path)
	}
	return nil
}

// row is a node in a picture.
func (n *node) row(now time.Time) []cell {
	name, state := n.Name, cell{n.State, green}
	if n.Current {
		name += " (asked)"
	}
	if n.State != "up" {
		state.style = red
	}
	return []cell{{name, bold}, state, {n.Address, normal}, {n.Version, faint}, {short(now.Sub(n.Started)), faint}, {n.Load.text(), faint}}
}

// nodeColumns are those of the picture's list of nodes.
var nodeColumns = []column{{title: "Nodes"}, {title: "state"}, {title: "address"}, {title: "version"}, {title: "up", right: true}, {title: "load"}}

// nodeDetails is the page of all nodes.
func (m *model) nodeDetails() details {
	about := []plain{"This server shares its database with no other."}
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

// nodeNote is for the head: how many there are, and whether all are well.
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

// restartNote is for the head: which settings wait for a restart.
func (b *state) restartNote() string {
	if len(b.Restart) == 0 {
		return ""
	}
	return "restart needed for " + strings.Join(texts(b.Restart), ", ")
}

// at is where something happened, behind its words, when that is another node.
func at(node plain) plain {
	if node == "" {
		return ""
	}
	return " @" + node
}
