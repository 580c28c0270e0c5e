package upstream

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// record is what is stored of a server between runs. It contains nothing of the
// spec that could be a secret; Server identifies the server that it is about.
type record struct {
	Server       string            `json:"server"`
	Detected     detection         `json:"verdict"`
	Revision     string            `json:"revision,omitempty"`
	ServerInfo   json.RawMessage   `json:"server_info,omitempty"`
	Capabilities json.RawMessage   `json:"capabilities,omitempty"`
	Instructions json.RawMessage   `json:"instructions,omitempty"`
	Tools        []json.RawMessage `json:"tools"`
}

// loadCache uses the stored record of the server, unless the previous generation
// has passed on a newer one. A lazy server with a record need not be started yet.
func (c *connection) loadCache() {
	stored, found := c.opts.loadRecord(c.currentSpec())
	tools := stored.tools(c.name)
	c.update(func() {
		if found = found && c.cached.Server == ""; found {
			c.cached, c.detected, c.tools, c.stale, c.lastStartOK = stored, stored.Detected, tools, true, true
		}
		if c.opts.OnDemand || c.cached.Server != "" && (c.spec.Start == Lazy || c.spec.lazy() && !c.listsOnly()) {
			c.state = StateAsleep
		}
	})
	if found && len(tools.tools) > 0 {
		names, _, _ := diff(nil, tools.tools)
		c.publish(ToolsRefreshed{Upstream: c.name, ToolCount: len(names), Added: names})
	}
}

// saveCache stores what is known of the server.
func (c *connection) saveCache() {
	c.mu.Lock()
	s, retired := c.session, c.retired
	if s == nil || retired {
		c.mu.Unlock()
		return
	}
	_, revision := s.describe()
	c.cached = record{
		Server: identity(c.spec), Detected: c.detected, Revision: revision,
		ServerInfo: s.serverInfo, Capabilities: s.capabilities, Instructions: s.instructions,
		Tools: definitions(c.tools.tools),
	}
	r, tools := c.cached, c.tools.forAnother()
	c.mu.Unlock()
	if c.owner != "" {
		c.listing.learn(c.owner, tools, r)
		return
	}
	if err := c.opts.saveRecord(c.name, r); err != nil {
		c.log.Warn("not cached", "error", err)
	}
}

// identity identifies the server of a spec, without its credentials.
func identity(s Spec) string {
	raw, err := json.Marshal([]any{s.URL + s.Mock + s.API.Source, s.Command, s.Args, s.Cwd, s.transport(), protocolOf(s)})
	if err != nil {
		return "" // strings always encode
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// loadRecord reads the record of a spec's server; ok is false if there is none.
func (o *Options) loadRecord(spec Spec) (r record, ok bool) {
	if o.CacheDir == "" {
		return r, false
	}
	data, err := os.ReadFile(o.recordPath(spec.Name))
	if err != nil {
		return r, false
	}
	if err := json.Unmarshal(data, &r); err != nil || r.Server != identity(spec) {
		return record{}, false
	}
	r.Detected.Endpoint = endpointByDigest(spec, r.Detected.Endpoint)
	return r, true
}

// endpointByDigest finds the endpoint whose URL is stored as a digest.
func endpointByDigest(spec Spec, stored endpoint) endpoint {
	for _, e := range endpoints(spec) {
		if e.Transport == stored.Transport && digest(e.URL) == stored.URL {
			return e
		}
	}
	return endpoint{}
}

// digest stands for a URL, which may contain secrets.
func digest(address string) string {
	if address == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(address))
	return hex.EncodeToString(sum[:])
}

// saveRecord writes the record to a new file, which then replaces the old one.
func (o *Options) saveRecord(name string, r record) error {
	if o.CacheDir == "" {
		return nil
	}
	r.Detected.Endpoint.URL = digest(r.Detected.Endpoint.URL)
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false) // definitions stay as the server wrote them
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("cache upstream %s: %w", name, err)
	}
	if err := os.MkdirAll(o.CacheDir, 0o700); err != nil {
		return fmt.Errorf("cache upstream %s: %w", name, err)
	}
	file, err := os.CreateTemp(o.CacheDir, name+".*.tmp")
	if err != nil {
		return fmt.Errorf("cache upstream %s: %w", name, err)
	}
	_, err = file.Write(data.Bytes())
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), o.recordPath(name))
	}
	if err != nil {
		_ = os.Remove(file.Name()) // err is the one to report
		return fmt.Errorf("cache upstream %s: %w", name, err)
	}
	return nil
}

func (o *Options) recordPath(name string) string {
	return filepath.Join(o.CacheDir, "upstream-"+name+".json")
}

// tools reads the stored definitions with the same checks as a server's list.
func (r record) tools(name string) *toolList {
	l := &toolList{headers: map[string][]wire.HeaderParam{}}
	seen := map[string]bool{}
	for _, definition := range r.Tools {
		l.add(name, definition, seen, r.Detected.Era)
	}
	l.sort()
	l.findTaskSupport(r.Capabilities)
	return l
}

func definitions(tools []tool.Info) []json.RawMessage {
	raw := make([]json.RawMessage, len(tools))
	for i, info := range tools {
		raw[i] = info.Raw
	}
	return raw
}
