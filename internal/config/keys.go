package config

import (
	"maps"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// Key is an API key of the configuration.
type Key struct {
	Hash       string   `toml:"hash,omitempty" help:"sha256: followed by the hash of the key"`
	Env        string   `toml:"env,omitempty" help:"variable that holds the key, instead of hash"`
	Scopes     []string `toml:"scopes,omitempty" help:"its scopes: chat, mcp, read, org (administration of one organisation) or admin (everything)"`
	Org        string   `toml:"org,omitempty" help:"the organisation it is limited to"`
	User       string   `toml:"user,omitempty" help:"the user it is limited to"`
	Namespaces []string `toml:"namespaces,omitempty" help:"the namespaces it is limited to; * matches any text"`
	Tools      []string `toml:"tools,omitempty" help:"the tools it is limited to, as namespace.tool or the name of one of our tools; * matches any text"`
	Rate       int      `toml:"rate,omitempty" help:"how many requests a minute it may make"`
	Concurrent int      `toml:"concurrent,omitempty" help:"how many tool calls may run for it at a time"`
	Budget     int      `toml:"budget,omitempty" help:"how many tool calls a day it may make"`
	Expires    string   `toml:"expires,omitempty" help:"expiry date, such as 2027-01-31"`
}

// hidden returns a copy without the hash.
func (c Key) hidden() Key {
	if c.Hash != "" {
		c.Hash = hiddenValue
	}
	return c
}

// FixedKeys returns the keys of the configuration, and ENGINE_API_KEY, which has every
// scope.
func (c *Config) FixedKeys(env Environment) (keys []apikey.Key, err error) {
	if token := env["ENGINE_API_KEY"]; token != "" {
		keys = append(keys, apikey.Key{Name: "ENGINE_API_KEY", Hash: apikey.HashOf(token), Fixed: true, Rights: apikey.Rights{Scopes: []principal.Scope{principal.Admin}}})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Keys)) {
		key, err := c.Keys[name].read(name, env)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// read returns the key that the configuration describes.
func (c Key) read(name string, env Environment) (key apikey.Key, err error) {
	bad := func(format string, args ...any) (apikey.Key, error) {
		return key, fault.New(fault.Config, "keys."+name+": "+format, args...)
	}
	key = apikey.Key{Name: name, Fixed: true, Rights: apikey.Rights{
		Org: c.Org, User: c.User, Namespaces: c.Namespaces, Tools: c.Tools,
		Limits: principal.Limits{Rate: c.Rate, Concurrent: c.Concurrent, Budget: c.Budget},
	}}
	switch {
	case c.Hash != "" && c.Env != "" || c.Hash == "" && c.Env == "":
		return bad("it needs either hash or env")
	case c.Hash != "":
		if key.Hash, err = apikey.ParseHash(c.Hash); err != nil {
			return key, fault.Wrap(fault.Config, err, "keys.%s", name)
		}
	default:
		token := env[c.Env]
		if token == "" {
			return key, fault.New(fault.Config, "keys.%s: the variable %s is not set", name, c.Env).
				WithHint("set it to the key, or give the key's hash instead of env")
		}
		key.Hash = apikey.HashOf(token)
	}
	for _, scope := range c.Scopes {
		key.Scopes = append(key.Scopes, principal.Scope(scope))
	}
	if c.Expires != "" {
		if key.Expires, err = time.Parse(time.DateOnly, c.Expires); err != nil {
			return bad("expires must look like 2027-01-31, not %q", c.Expires)
		}
	}
	if err := key.Check(); err != nil {
		return key, fault.Wrap(fault.Config, err, "keys.%s", name).WithHint("%s", fault.HintOf(err))
	}
	return key, nil
}
