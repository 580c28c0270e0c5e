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

// record is what is kept of a server over restarts. It holds nothing of the
// spec that could be a secret; Server tells whether it still is the same one.
type record struct {
	Server       string            `json:"server"`
	Verdict      detection         `json:"verdict"`
	Revision     string            `json:"revision,omitempty"`
	ServerInfo   json.RawMessage   `json:"server_info,omitempty"`
	Capabilities json.RawMessage   `json:"capabilities,omitempty"`
	Instructions json.RawMessage   `json:"instructions,omitempty"`
	Tools        []json.RawMessage `json:"tools"`
}

// identity names the server a spec means, without its credentials.
func identity(s Spec) string {
	raw, err := json.Marshal([]any{s.URL, s.Command, s.Args, s.Cwd, s.transport(), protocolOf(s)})
	if err != nil {
		return "" // strings always encode
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// loadRecord reads what is known of a spec's server; ok is false when nothing is.
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
	r.Verdict.Way = endpointByDigest(spec, r.Verdict.Way)
	return r, true
}

// endpointByDigest finds the way that is kept by the digest of its address.
func endpointByDigest(spec Spec, kept endpoint) endpoint {
	for _, way := range endpoints(spec) {
		if way.Transport == kept.Transport && digest(way.URL) == kept.URL {
			return way
		}
	}
	return endpoint{}
}

// digest stands for an address, in which there may be secrets.
func digest(address string) string {
	if address == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(address))
	return hex.EncodeToString(sum[:])
}

// saveRecord keeps r, replacing the file as a whole.
func (o *Options) saveRecord(name string, r record) error {
	if o.CacheDir == "" {
		return nil
	}
	r.Verdict.Way.URL = digest(r.Verdict.Way.URL)
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false) // definitions stay as they were written
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
		_ = os.Remove(file.Name()) // err says more
		return fmt.Errorf("cache upstream %s: %w", name, err)
	}
	return nil
}

func (o *Options) recordPath(name string) string {
	return filepath.Join(o.CacheDir, "upstream-"+name+".json")
}

// visibleTools reads the definitions of a record again, through the same checks.
func (r record) tools(name string) *toolList {
	l := &toolList{headers: map[string][]wire.HeaderParam{}}
	seen := map[string]bool{}
	for _, definition := range r.Tools {
		l.add(name, definition, seen, r.Verdict.Era)
	}
	l.sort()
	return l
}

func definitions(tools []tool.Info) []json.RawMessage {
	raw := make([]json.RawMessage, len(tools))
	for i, info := range tools {
		raw[i] = info.Raw
	}
	return raw
}
