package server

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// IssuerConfig is somebody whose tokens open the doors, beside our own keys.
type IssuerConfig struct {
	Issuer   string              `toml:"issuer" help:"as it names itself in tokens, such as https://login.example"`
	Audience string              `toml:"audience" help:"for whom its tokens must be made: the address clients know us by, such as https://hub.example/mcp"`
	JWKS     string              `toml:"jwks" help:"where its public keys are, if its metadata is not in the usual place"`
	Scopes   map[string][]string `toml:"scopes" help:"what words of a token's scope open; without any, chat, mcp and read open what they are called"`
	Org      string              `toml:"org" help:"the only organisation its tokens are for"`
}

// checkIssuers refuses issuers that could not be trusted.
func (c *Config) checkIssuers() error {
	for _, name := range slices.Sorted(mapKeys(c.Issuers)) {
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

// trustIssuers lets tokens of the configured issuers in.
func (h *House) trustIssuers(o *httpauth.Options) {
	if len(h.config.Issuers) == 0 {
		return
	}
	var issuers []jwt.Issuer
	for _, name := range slices.Sorted(mapKeys(h.config.Issuers)) {
		c := h.config.Issuers[name]
		i := jwt.Issuer{URL: c.Issuer, Audience: c.Audience, Keys: c.JWKS, Org: c.Org}
		for word, scopes := range c.Scopes {
			if i.Scopes == nil {
				i.Scopes = map[string][]principal.Scope{}
			}
			for _, s := range scopes {
				i.Scopes[word] = append(i.Scopes[word], principal.Scope(s))
			}
		}
		issuers = append(issuers, i)
	}
	from := h.outward()
	from.loopback = true // the owner names issuers, which may be on this machine
	client := &http.Client{Transport: from.transport()}
	h.tokens = jwt.New(issuers, client)
	o.Tokens = h.tokens
}

// oauthRoutes tell clients who makes the tokens that we take.
func (h *House) oauthRoutes() []principal.Route {
	if h.tokens == nil {
		return nil
	}
	return []principal.Route{
		{Pattern: jwt.Path, Handler: h.tokens},
		{Pattern: jwt.Path + "/mcp", Handler: h.tokens},
	}
}
