package config

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config/toml"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// SetTools changes which tools of an upstream of the configuration file exist, what they
// are called and which of them clients see. The rest of the file does not change.
func SetTools(ctx context.Context, sources Sources, name string, s upstreamset.ToolSettings) error {
	loaded, err := loadEditable(sources, name)
	if err != nil {
		return err
	}
	if err := (overlay.Rule{Aliases: s.Aliases}).Validate(); err != nil {
		return err
	}
	err = edit(loaded.File, func(text string) (string, error) {
		changed := []byte(text)
		for _, v := range toolValues(s) {
			if changed, err = toml.SetValue(changed, []string{"upstreams", name}, v.key, v.value); err != nil {
				return "", noHeader(err, name)
			}
		}
		return string(changed), nil
	})
	if err != nil {
		return err
	}
	return TrustUpstreams(ctx, sources, name)
}

type keyValue struct {
	key   string
	value json.RawMessage // null: the key is left out
}

// toolValues are the settings as the file has them.
func toolValues(s upstreamset.ToolSettings) []keyValue {
	expose := any(s.Expose)
	if slices.Contains(s.Expose, upstream.ExposeAll) {
		expose = "all"
	}
	list := []keyValue{}
	for _, v := range []struct {
		key   string
		count int
		value any
	}{{"expose", len(s.Expose), expose}, {"aliases", len(s.Aliases), s.Aliases}, {"disabled_tools", len(s.Disabled), s.Disabled}} {
		raw := json.RawMessage("null")
		if v.count > 0 {
			raw, _ = json.Marshal(v.value) // texts always encode
		}
		list = append(list, keyValue{v.key, raw})
	}
	return list
}

// noHeader explains the error of a table that cannot be edited.
func noHeader(err error, name string) error {
	if errors.Is(err, toml.ErrNoHeader) {
		return fault.New(fault.Config, "the table [upstreams.%s] has no header of its own", name).WithHint("change it in the file by hand")
	}
	return err
}
