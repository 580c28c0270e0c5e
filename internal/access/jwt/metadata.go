package jwt

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/luanette/luanette/internal/core/principal"
)

// Path is where RFC 9728 has clients look who makes tokens.
const Path = "/.well-known/oauth-protected-resource"

// ServeHTTP tells them, whichever page they ask from.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	document := &oauthex.ProtectedResourceMetadata{Resource: s.resource(r), BearerMethodsSupported: []string{"header"}, ResourceName: "Luanette"}
	for _, i := range s.issuers {
		document.AuthorizationServers = append(document.AuthorizationServers, i.URL)
		for _, word := range i.words() {
			if !slices.Contains(document.ScopesSupported, word) {
				document.ScopesSupported = append(document.ScopesSupported, word)
			}
		}
	}
	auth.ProtectedResourceMetadataHandler(document).ServeHTTP(w, r)
}

// Metadata is the address of that document, as the client of a request reaches it.
func (s *Server) Metadata(r *http.Request) string { return s.origin(r) + Path }

// resource is what we are to the client of a request, and has to ask a token for: the
// audience that names the address it came to, else one that is an address, else, with
// audiences that are mere names, where it came to.
func (s *Server) resource(r *http.Request) string {
	found := ""
	for _, i := range s.issuers {
		u := i.address()
		if u == nil {
			continue
		}
		if strings.EqualFold(u.Host, r.Host) {
			return i.Audience
		}
		if found == "" {
			found = i.Audience
		}
	}
	if found == "" {
		found = s.origin(r) + "/mcp"
	}
	return found
}

// origin is how the client of a request knows us. Behind a proxy that ends TLS only
// the audience tells that it came by https.
func (s *Server) origin(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	for _, i := range s.issuers {
		if u := i.address(); u != nil && strings.EqualFold(u.Host, r.Host) {
			scheme = u.Scheme
		}
	}
	return scheme + "://" + r.Host
}

// address is the audience where that is the address of something.
func (i Issuer) address() *url.URL {
	u, err := url.Parse(i.Audience)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil
	}
	return u
}

// ScopeName is what to ask an issuer for to be let in where a scope is needed; empty where
// there is none, or issuers have several.
func (s *Server) ScopeName(scope principal.Scope) (word string) {
	for n, i := range s.issuers {
		its := i.word(scope)
		if n > 0 && its != word {
			return ""
		}
		word = its
	}
	return word
}

// word is the one that opens a scope and the least beside it.
func (i Issuer) word(scope principal.Scope) (best string) {
	least := 0
	for _, word := range i.words() {
		opens := i.opens(word)
		much := len(opens)
		if slices.Contains(opens, principal.Admin) {
			much += len(principal.Scopes) // it opens everything
		}
		if (principal.Principal{Org: i.Org, Scopes: opens}).May(scope, i.Org) && (best == "" || much < least) {
			best, least = word, much
		}
	}
	return best
}

// words are all that mean something in a token's scope.
func (i Issuer) words() (all []string) {
	if i.Scopes == nil {
		for _, s := range principal.DefaultScopes {
			all = append(all, string(s))
		}
		return all
	}
	for word := range i.Scopes {
		all = append(all, word)
	}
	slices.Sort(all)
	return all
}
