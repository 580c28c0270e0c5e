package config

import (
	"maps"
	"net/url"
	"slices"

	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// Issuer is an authorization server whose tokens are accepted in addition to our own
// keys.
type Issuer struct {
	Issuer   string              `toml:"issuer" help:"the iss claim of its tokens, such as https://login.example"`
	Audience string              `toml:"audience" help:"required aud claim: the public URL of this server, such as https://hub.example/mcp"`
	JWKS     string              `toml:"jwks,omitempty" help:"URL of its public keys, if its metadata is not at the standard path"`
	Scopes   map[string][]string `toml:"scopes,omitempty" help:"maps words of the scope claim to our scopes; if omitted, chat, mcp and read map to themselves"`
	Org      string              `toml:"org,omitempty" help:"the organisation its tokens are limited to"`
}

// checkIssuers refuses issuers without a valid URL, an audience or known scopes.
func (c *Config) checkIssuers() error {
	for _, name := range slices.Sorted(maps.Keys(c.Issuers)) {
		i := c.Issuers[name]
		u, err := url.Parse(i.Issuer)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return fault.New(fault.Config, "issuers.%s.issuer: %q is not an address", name, i.Issuer).WithHint("such as https://login.example")
		}
		if i.Audience == "" {
			return fault.New(fault.Config, "issuers.%s: it has no audience", name).
				WithHint("set audience, otherwise tokens issued for other services would be accepted")
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
