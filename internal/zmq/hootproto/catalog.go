package hootproto

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Catalog is the body of a Ready: the capabilities of a backend.
type Catalog struct {
	// Protocol is the oldest version that the backend understands, Protocols are all.
	// Without Protocols it understands only that one.
	Protocol  string   `json:"protocol"`
	Protocols []string `json:"protocols,omitempty"`
	Tools     []Tool   `json:"tools"`
	// AcceptsBinary says that requests may have bodies of content type Binary.
	AcceptsBinary bool `json:"accepts_binary"`
	// AcceptsCancel says that the backend supports Cancel.
	AcceptsCancel bool `json:"accepts_cancel,omitempty"`
	// AcceptsMsgPack says that the backend prefers requests in MessagePack.
	AcceptsMsgPack bool `json:"accepts_msgpack,omitempty"`
	// Broadcasts is the endpoint of the backend's PUB socket, if it has one.
	Broadcasts string `json:"broadcasts,omitempty"`
	// Invalid says why entries of a decoded catalog are not in Tools.
	Invalid []string `json:"-"`
}

// UnmarshalJSON reads a catalog. Entries that are not tools are left out and
// described in Invalid.
func (c *Catalog) UnmarshalJSON(raw []byte) error {
	type plain Catalog
	wire := struct {
		*plain
		Tools []json.RawMessage `json:"tools"`
	}{plain: (*plain)(c)}
	*c = Catalog{}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return err
	}
	for i, entry := range wire.Tools {
		var t Tool
		if err := t.read(entry); err != nil {
			c.Invalid = append(c.Invalid, "entry "+strconv.Itoa(i+1)+": "+err.Error())
			continue
		}
		c.Tools = append(c.Tools, t)
	}
	return nil
}

// Newest returns the newest version that the backend and this package understand,
// or "" if there is none.
func (c *Catalog) Newest() string {
	offered := append(slices.Clone(c.Protocols), c.Protocol)
	known := Protocols()
	for i := len(known) - 1; i >= 0; i-- {
		if slices.Contains(offered, known[i]) {
			return known[i]
		}
	}
	return ""
}

// Tool is one entry of a Catalog. Instead of an object, a backend may send only
// the name as a string.
type Tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	// ReadOnly says that calling it changes nothing, Idempotent that calling it
	// twice has the same effect as once. Only such calls are retried.
	ReadOnly   bool `json:"read_only,omitempty"`
	Idempotent bool `json:"idempotent,omitempty"`
	// Destructive says that calling it may destroy something.
	Destructive bool `json:"destructive,omitempty"`
	// ClosedWorld says that it uses only the backend's own data.
	ClosedWorld bool `json:"closed_world,omitempty"`
}

// read reads and checks an entry of a catalog. The error names the tool.
func (t *Tool) read(entry json.RawMessage) error {
	err := json.Unmarshal(entry, t)
	if err == nil {
		return t.Validate()
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field == "":
		return fmt.Errorf("%.60s is neither a tool nor its name", entry)
	case errors.As(err, &wrong):
		return fmt.Errorf("tool %q: %s must not be a %s", t.Name, wrong.Field, wrong.Value)
	}
	return fmt.Errorf("tool %q: %w", t.Name, err)
}

// Validate reports what in the tool is against docs/backends.md.
func (t *Tool) Validate() error {
	if !validName(t.Name) {
		return fmt.Errorf("tool %.60q: a name has 1 to %d letters, digits, _ or -", t.Name, maxName)
	}
	for _, schema := range []struct {
		name string
		raw  json.RawMessage
	}{{"input_schema", t.InputSchema}, {"output_schema", t.OutputSchema}} {
		if len(schema.raw) > 0 && schema.raw[0] != '{' && string(schema.raw) != "null" {
			return fmt.Errorf("tool %q: %s must be an object", t.Name, schema.name)
		}
	}
	return nil
}

// maxName is the longest name of a tool, in bytes.
const maxName = 128

func validName(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// UnmarshalJSON reads a tool, or only its name.
func (t *Tool) UnmarshalJSON(raw []byte) error {
	*t = Tool{}
	if raw[0] == '"' {
		return json.Unmarshal(raw, &t.Name)
	}
	type plain Tool
	return json.Unmarshal(raw, (*plain)(t))
}
