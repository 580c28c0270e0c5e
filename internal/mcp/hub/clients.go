package hub

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// Client is a program that used the hub.
type Client struct {
	Name    string    `json:"name"` // as it calls itself
	Version string    `json:"version,omitempty"`
	Seen    time.Time `json:"seen"` // when it last connected or listed something
}

// maxClients is how many clients are remembered, and maxClientName the length of what
// they say about themselves.
const (
	maxClients    = 100
	maxClientName = 100
)

// clients are the programs that used the hub lately.
type clients struct {
	mu    sync.Mutex
	known map[Client]time.Time // by name and version
}

// describe returns what a client says about itself; ok is false if that is too long.
func describe(info json.RawMessage) (name, version string, ok bool) {
	name, _ = rawjson.GetText(info, "name")
	version, _ = rawjson.GetText(info, "version")
	return name, version, name != "" && len(name) <= maxClientName && len(version) <= maxClientName
}

// agentOf is a client's name and version, such as "claude-code 2.1.0", or "".
func agentOf(info json.RawMessage) string {
	name, version, ok := describe(info)
	if !ok {
		return ""
	}
	return strings.TrimSpace(name + " " + version)
}

// add notes a client by what it says about itself. A client without a name is not noted.
func (c *clients) add(info json.RawMessage, now time.Time) {
	name, version, ok := describe(info)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.known[Client{Name: name, Version: version}]; !there && len(c.known) >= maxClients {
		return
	}
	if c.known == nil {
		c.known = map[Client]time.Time{}
	}
	c.known[Client{Name: name, Version: version}] = now
}

// Clients returns the programs that used the hub since it was made, the last one first.
func (h *Hub) Clients() []Client {
	h.clients.mu.Lock()
	defer h.clients.mu.Unlock()
	list := []Client{}
	for c, seen := range h.clients.known {
		c.Seen = seen
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Client) int { return cmp.Or(b.Seen.Compare(a.Seen), cmp.Compare(a.Name, b.Name)) })
	return list
}
