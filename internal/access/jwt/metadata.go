package jwt

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
)

// Path is where clients find the protected resource metadata (RFC 9728).
const Path = "/.well-known/oauth-protected-resource"

// ServeHTTP serves the metadata, to pages of any origin.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	document := &oauthex.ProtectedResourceMetadata{Resource: s.resource(r), BearerMethodsSupported: []string{"header"}, ResourceName: "Luanette"}
	for _, i := range s.listed {
		document.AuthorizationServers = append(document.AuthorizationServers, i.URL)
		for _, word := range i.scopeValues() {
			if !slices.Contains(document.ScopesSupported, word) {
				document.ScopesSupported = append(document.ScopesSupported, word)
			}
		}
	}
	auth.ProtectedResourceMetadataHandler(document).ServeHTTP(w, r)
}

// Metadata returns the address of that document as the client of a request reaches it.
func (s *Server) Metadata(r *http.Request) string { return s.base(r) + Path }

// resource returns the resource for which the client of a request must request a
// token: the audience with the host of the request, else the first audience that is a
// URL, else the address of the request.
func (s *Server) resource(r *http.Request) string {
	found := ""
	for _, i := range s.listed {
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
		found = s.base(r) + "/mcp"
	}
	return found
}

// base returns the address of the server as the client of a request sees it. Behind a
// proxy that terminates TLS, only the audience shows that the client used https. A server
// that knows its public address repeats no other name that a request gives it.
func (s *Server) base(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	for _, i := range s.listed {
		if u := i.address(); u != nil && strings.EqualFold(u.Host, r.Host) {
			return u.Scheme + "://" + u.Host + netguard.Base(r)
		}
	}
	if host := (&url.URL{Host: r.Host}).Hostname(); s.own != "" && !netguard.IsLoopback(host) {
		return s.own
	}
	return scheme + "://" + r.Host + netguard.Base(r)
}

// address returns the audience as a URL, or nil if it is not one.
func (i Issuer) address() *url.URL {
	u, err := url.Parse(i.Audience)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil
	}
	return u
}

// ScopeName returns the scope value to request from an issuer for a scope. It is empty
// if there is none, or if the issuers differ.
func (s *Server) ScopeName(scope principal.Scope) (word string) {
	for n, i := range s.listed {
		its := i.scopeValue(scope)
		if n > 0 && its != word {
			return ""
		}
		word = its
	}
	return word
}

// scopeValue returns the value that grants a scope and the fewest others.
func (i Issuer) scopeValue(scope principal.Scope) (best string) {
	least := 0
	for _, word := range i.scopeValues() {
		opens := i.grants(word)
		much := len(opens)
		if slices.Contains(opens, principal.Admin) {
			much += len(principal.Scopes) // it grants everything
		}
		if (principal.Principal{Org: i.Org, Scopes: opens}).May(scope, i.Org) && (best == "" || much < least) {
			best, least = word, much
		}
	}
	return best
}

// scopeValues returns all values that have a meaning in a token's scope.
func (i Issuer) scopeValues() (all []string) {
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
