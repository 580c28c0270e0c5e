package config

import (
	"maps"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/govern/pin"
)

// PinSettings returns the trust settings of the upstreams.
func (c *Config) PinSettings() pin.Settings {
	s := pin.Settings{Default: pin.Mode(c.Trust), Modes: map[string]pin.Mode{}, Owned: map[string]bool{}}
	for name, u := range c.Upstreams {
		s.Owned[name] = true
		if u.Trust != "" {
			s.Modes[name] = pin.Mode(u.Trust)
		}
	}
	return s
}

func (c *Config) checkTrust() error {
	wrong := func(key, mode string) error {
		return fault.New(fault.Config, "%s: unknown trust mode %q", key, mode).WithHint("use open or pin")
	}
	if !slices.Contains(pin.Modes(), pin.Mode(c.Trust)) {
		return wrong("trust", c.Trust)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		if mode := c.Upstreams[name].Trust; mode != "" && !slices.Contains(pin.Modes(), pin.Mode(mode)) {
			return wrong("upstreams."+name+".trust", mode)
		}
	}
	return nil
}
