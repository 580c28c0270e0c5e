package config

import (
	"maps"
	"net/url"
	"slices"

	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// Issuer is somebody whose tokens open the doors, beside our own keys.
type Issuer struct {
	Issuer   string              `toml:"issuer" help:"as it names itself in tokens, such as https://login.example"`
	Audience string              `toml:"audience" help:"for whom its tokens must be made: the address clients know us by, such as https://hub.example/mcp"`
	JWKS     string              `toml:"jwks" help:"where its public keys are, if its metadata is not in the usual place"`
	Scopes   map[string][]string `toml:"scopes" help:"what words of a token's scope open; without any, chat, mcp and read open what they are called"`
	Org      string              `toml:"org" help:"the only organisation its tokens are for"`
}

// checkIssuers refuses issuers that could not be trusted.
func (c *Config) checkIssuers() error {
	for _, name := range slices.Sorted(maps.Keys(c.Issuers)) {
		i := c.Issuers[name]
		u, err := url.Parse(i.Issuer)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return fault.New(fault.Config, "issuers.%s.issuer: %q is not an address", name, i.Issuer).WithHint("such as https://login.example")
		}
		if i.Audience == "" {
			return fault.New(fault.Config, "issuers.%s: it has no audience", name).
				WithHint("say for whom tokens must be made, or tokens for others would open our doors")
		}
		for word, scopes := range i.Scopes {
			for _, s := range scopes {
				if !slices.Contains(principal.Scopes, principal.Scope(s)) {
					return fault.New(fault.Config, "issuers.%s.scopes.%s: no scope %q", name, word, s)
				}
			}
		}
	}
	return nil
}

// TokenIssuers lists the configured issuers, sorted by name.
func (c *Config) TokenIssuers() (issuers []jwt.Issuer) {
	for _, name := range slices.Sorted(maps.Keys(c.Issuers)) {
		from := c.Issuers[name]
		i := jwt.Issuer{URL: from.Issuer, Audience: from.Audience, Keys: from.JWKS, Org: from.Org}
		for word, scopes := range from.Scopes {
			if i.Scopes == nil {
				i.Scopes = map[string][]principal.Scope{}
			}
			for _, s := range scopes {
				i.Scopes[word] = append(i.Scopes[word], principal.Scope(s))
			}
		}
		issuers = append(issuers, i)
	}
	return issuers
}
