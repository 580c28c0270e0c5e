package oauth

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// description is what an authorization server says of itself (RFC 8414, and the
// fields OpenID providers share with it).
type description struct {
	Issuer          string   `json:"issuer"`
	Authorize       string   `json:"authorization_endpoint"`
	Token           string   `json:"token_endpoint"`
	Register        string   `json:"registration_endpoint"`
	Device          string   `json:"device_authorization_endpoint"`
	Scopes          []string `json:"scopes_supported"`
	Challenges      []string `json:"code_challenge_methods_supported"`
	TokenAuth       []string `json:"token_endpoint_auth_methods_supported"`
	Grants          []string `json:"grant_types_supported"`
	TellsIssuer     bool     `json:"authorization_response_iss_parameter_supported"`
	FetchesMetadata bool     `json:"client_id_metadata_document_supported"`

	old bool // of a server before metadata was asked for
}

// place is where a tool server's tokens come from, and what they are for.
type place struct {
	resource string
	scopes   []string // the server's, when it asks for none
	issuer   string
	old      bool // the server tells nothing of its authorization server
}

// discover finds the authorization server of a tool server.
func (f *fetcher) discover(ctx context.Context, s Server, c Challenge) (place, description, error) {
	where, err := f.resource(ctx, s, c)
	if err != nil {
		return where, description{}, err
	}
	if want := s.Settings.Issuer; want != "" && want != where.issuer {
		if !where.old {
			return where, description{}, fault.New(fault.Denied, "upstream %s sends us to %s, not to %s as configured", s.Name, where.issuer, want).
				WithHint("change upstreams.%s.oauth.issuer if that is right", s.Name)
		}
		where.issuer, where.old = want, false
	}
	found, err := f.describe(ctx, where)
	if err != nil {
		return where, found, fault.Wrap(fault.CodeOf(err), err, "find the authorization server of upstream %s", s.Name)
	}
	return where, found, nil
}

// resource reads what the tool server says of itself (RFC 9728).
func (f *fetcher) resource(ctx context.Context, s Server, c Challenge) (place, error) {
	root := *f.home
	root.Path, root.RawPath, root.RawQuery, root.Fragment = "", "", "", ""
	wellKnown := root.String() + "/.well-known/oauth-protected-resource"
	pages := []string{wellKnown}
	if path := strings.TrimSuffix(f.home.EscapedPath(), "/"); path != "" {
		pages = []string{wellKnown + path, wellKnown}
	}
	if c.Metadata != "" {
		pages = append([]string{c.Metadata}, pages...)
	}
	for _, page := range pages {
		var said struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported"`
		}
		err := f.get(ctx, page, &said)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil {
			return place{}, fault.Wrap(fault.CodeOf(err), err, "read what upstream %s says of itself", s.Name)
		}
		if !covers(said.Resource, f.home) {
			return place{}, fault.New(fault.Denied, "upstream %s is at %s but calls itself %q", s.Name, f.home.Host+f.home.Path, said.Resource).
				WithHint("a token for it could be used elsewhere; connect to the address that the server calls its own")
		}
		if len(said.Servers) == 0 {
			return place{}, fault.New(fault.Upstream, "upstream %s names no authorization server", s.Name)
		}
		issuer := said.Servers[0]
		if want := s.Settings.Issuer; slices.Contains(said.Servers, want) {
			issuer = want
		}
		return place{resource: said.Resource, scopes: said.Scopes, issuer: issuer}, nil
	}
	// Before revision 2025-06-18 a server was its own authorization server.
	return place{resource: resourceOf(f.home), issuer: root.String(), old: true}, nil
}

// resourceOf is a server's address as tokens for it name it.
func resourceOf(home *url.URL) string {
	u := *home
	u.Scheme, u.Host, u.Fragment, u.RawQuery = strings.ToLower(u.Scheme), strings.ToLower(u.Host), "", ""
	return strings.TrimSuffix(u.String(), "/")
}

// covers tells whether a resource is the server's address or above it.
func covers(resource string, home *url.URL) bool {
	u, err := url.Parse(resource)
	if err != nil || !strings.EqualFold(u.Scheme, home.Scheme) || !strings.EqualFold(u.Host, home.Host) || u.User != nil {
		return false
	}
	above, path := strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(home.Path, "/")
	return above == path || strings.HasPrefix(path, above+"/")
}

// describe reads what the authorization server says of itself.
func (f *fetcher) describe(ctx context.Context, where place) (description, error) {
	issuer, err := f.parse(where.issuer)
	if err != nil {
		return description{}, err
	}
	root := issuer.Scheme + "://" + issuer.Host
	path := strings.TrimSuffix(issuer.EscapedPath(), "/")
	pages := []string{root + "/.well-known/oauth-authorization-server" + path, root + "/.well-known/openid-configuration" + path}
	if path != "" {
		pages = append(pages, root+path+"/.well-known/openid-configuration")
	}
	for _, page := range pages {
		var found description
		err := f.get(ctx, page, &found)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil {
			return description{}, err
		}
		return found, f.check(found, where)
	}
	if !where.old {
		return description{}, fault.New(fault.Upstream, "%s does not describe itself", issuer.Host).
			WithHint("ask whoever runs the server whether it supports MCP authorization; else use headers or bearer_env")
	}
	return description{
		Issuer: where.issuer, Authorize: root + "/authorize", Token: root + "/token", Register: root + "/register",
		Challenges: []string{"S256"}, old: true,
	}, nil
}

// check refuses descriptions that could send a login astray.
func (f *fetcher) check(d description, where place) error {
	if d.Issuer != where.issuer && (!where.old || strings.TrimSuffix(d.Issuer, "/") != where.issuer) {
		return fault.New(fault.Denied, "%s describes the authorization server %q", where.issuer, d.Issuer).
			WithHint("one of them pretends to be the other; tell whoever runs the server")
	}
	for _, endpoint := range []string{d.Authorize, d.Token, d.Register, d.Device} {
		if endpoint == "" {
			continue
		}
		if _, err := f.parse(endpoint); err != nil {
			return err
		}
	}
	if d.Token == "" {
		return fault.New(fault.Upstream, "%s has no token endpoint", d.Issuer)
	}
	return nil
}

// Locate finds out which of a server's possible addresses wants a login.
func (l *Logins) Locate(ctx context.Context, s Server, addresses []string) (Server, error) {
	var first error
	for _, address := range addresses {
		s.URL = address
		if _, heard, err := l.heard(ctx, s); err != nil || heard {
			return s, err
		}
		if have, err := l.load(ctx, s); err != nil || have.Access != "" {
			return s, err
		}
	}
	for _, address := range addresses {
		s.URL = address
		f, err := l.fetcher(s)
		if err != nil {
			return s, err
		}
		status, _, err := f.probe(ctx, s)
		if status == http.StatusUnauthorized {
			return s, nil
		}
		if first == nil {
			first = err
		}
	}
	s.URL = addresses[0]
	return s, first
}

// probe asks the server without credentials, to hear what it wants.
func (f *fetcher) probe(ctx context.Context, s Server) (status int, c Challenge, err error) {
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"luanette","version":"1"}}}`)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return 0, c, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	response, err := f.client.Do(request)
	if err != nil {
		return 0, c, fault.Wrap(fault.Unavailable, errors.Unwrap(err), "reach upstream %s", s.Name)
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswer)
	return response.StatusCode, ParseChallenge(strings.Join(response.Header.Values("WWW-Authenticate"), ", ")), nil
}
