package config

import (
	"encoding/json"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// UpstreamRevert says how calls of a tool are undone, by another tool of the same
// upstream.
type UpstreamRevert struct {
	Tool      string         `toml:"tool" help:"the tool that undoes a call"`
	Arguments map[string]any `toml:"arguments,omitempty" help:"its arguments; $arguments/… and $result/… stand for parts of the call"`
}

// Revert returns how calls of a tool are undone.
func (c *Config) Revert(ref tool.Ref) (r tool.Revert, ok bool) {
	declared, ok := c.Upstreams[ref.Space].Revert[ref.Name]
	if !ok {
		return r, false
	}
	arguments, err := json.Marshal(declared.Arguments)
	if err != nil || declared.Arguments == nil {
		arguments = json.RawMessage("{}")
	}
	return tool.Revert{Tool: declared.Tool, Arguments: arguments}, true
}

// checkReverts refuses declarations without a tool.
func (u Upstream) checkReverts(name string) error {
	for undone, r := range u.Revert {
		if r.Tool == "" {
			return fault.New(fault.Config, "upstreams.%s.revert.%s: needs tool, the name of the tool that undoes a call", name, undone)
		}
	}
	return nil
}
