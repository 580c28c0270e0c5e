package terminal

import (
	"context"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
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

// loadNodes lists the nodes. The list is empty if there is only one, or if the server
// has no such endpoint.
func loadNodes(ctx context.Context, s *server, _ time.Time) (store, error) {
	var response struct {
		Node  plain
		Nodes []node
	}
	err := ignoreMissing(s.get(ctx, "/api/v1/nodes", &response))
	if len(response.Nodes) < 2 {
		response.Nodes = nil
	}
	for i := range response.Nodes {
		response.Nodes[i].Current = response.Nodes[i].ID == response.Node
	}
	return func(b *state) { b.Nodes = response.Nodes }, err
}

// nodesView lists the servers that share a database.
type nodesView struct{}

func (nodesView) name() string { return "nodes" }

func (nodesView) columns() []column {
	return []column{
		{title: "Name", width: 20},
		{title: "State", width: 9},
		{title: "Up", width: 6, right: true},
		{title: "Version", width: 10, from: 100},
		{title: "Address", width: 26, from: 80},
		{title: "Load", from: 56},
	}
}

func (nodesView) rows(b *state, _ scope, now time.Time) (rows []row) {
	for i := range b.Nodes {
		n := &b.Nodes[i]
		name, state := n.Name, cell{text: n.State, style: green}
		if n.Current {
			name += " (this node)"
		}
		if n.State != "up" {
			state.style = red
		}
		rows = append(rows, row{string(n.ID), []cell{
			{text: name, style: bold}, state, lasting(now.Sub(n.Started)), {text: n.Version, style: faint}, {text: n.Address}, {text: n.Load.text(), style: faint, order: n.Load.rate()},
		}})
	}
	return rows
}

// open shows one node.
func (nodesView) open(m *model, _ scope, row string) tea.Cmd {
	for i := range m.shown().Nodes {
		if n := m.shown().Nodes[i]; string(n.ID) == row {
			return m.push(&document{name: n.Name, body: func(_ *state, _ int, now time.Time) []styled {
				return slices.Concat(field("node", n.Name), field("state", n.State), field("address", n.Address), field("version", n.Version),
					field("started", n.Started.In(now.Location()).Format(time.DateTime)), field("last seen", clockTime(n.LastSeen, now)), field("load", n.Load.text()), field("id", n.ID))
			}})
		}
	}
	return nil
}

func (nodesView) actions(scope) []action { return nil }

func (nodesView) empty(scope) plain {
	return "this server does not share its database with other nodes"
}
func (nodesView) needs() lists { return lists{} }

// rate is the calls per minute, by which loads are sorted.
func (l *load) rate() float64 {
	if l == nil {
		return 0
	}
	return l.Calls
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

// at is the suffix that names another node.
func at(node plain) plain {
	if node == "" {
		return ""
	}
	return " @" + node
}
