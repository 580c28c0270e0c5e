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

	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/fault"
)

// description is the metadata of an authorization server (RFC 8414, and the fields
// that OpenID providers share with it).
type description struct {
	Issuer          string   `json:"issuer"`
	Authorize       string   `json:"authorization_endpoint"`
	Token           string   `json:"token_endpoint"`
	Register        string   `json:"registration_endpoint"`
	Device          string   `json:"device_authorization_endpoint"`
	Revoke          string   `json:"revocation_endpoint,omitempty"`
	Scopes          []string `json:"scopes_supported"`
	Challenges      []string `json:"code_challenge_methods_supported"`
	TokenAuth       []string `json:"token_endpoint_auth_methods_supported"`
	Grants          []string `json:"grant_types_supported"`
	TellsIssuer     bool     `json:"authorization_response_iss_parameter_supported"`
	FetchesMetadata bool     `json:"client_id_metadata_document_supported"`

	old bool // a server without metadata
}

// place is the issuer of a tool server's tokens, and their resource.
type place struct {
	resource string
	scopes   []string // all scopes of the server, for when it requires none in particular
	issuer   string
	old      bool // the server does not name its authorization server
}

// discover finds the authorization server of a tool server.
func (f *fetcher) discover(ctx context.Context, s Server, c Challenge) (place, description, error) {
	where, err := f.resource(ctx, s, c)
	if err != nil {
		return where, description{}, err
	}
	if want := s.Settings.Issuer; want != "" && want != where.issuer {
		if !where.old {
			return where, description{}, fault.New(fault.Denied, "upstream %s uses the authorization server %s, but %s is configured", s.Name, where.issuer, want).
				WithHint("change upstreams.%s.oauth.issuer if that is correct", s.Name)
		}
		where.issuer, where.old = want, false
	}
	found, err := f.describe(ctx, where)
	if err != nil {
		return where, found, fault.Wrap(fault.CodeOf(err), err, "find the authorization server of upstream %s", s.Name)
	}
	return where, found, nil
}

// resource reads the protected resource metadata of the tool server (RFC 9728).
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
			return place{}, fault.Wrap(fault.CodeOf(err), err, "read the resource metadata of upstream %s", s.Name)
		}
		if !covers(said.Resource, f.home) {
			return place{}, fault.New(fault.Denied, "upstream %s is at %s but its metadata names the resource %q", s.Name, f.home.Host+f.home.Path, said.Resource).
				WithHint("a token for it could be used elsewhere; connect to the address in the server's metadata")
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

// resourceOf returns a server's address as the resource of its tokens.
func resourceOf(home *url.URL) string {
	u := *home
	u.Scheme, u.Host, u.Fragment, u.RawQuery = strings.ToLower(u.Scheme), strings.ToLower(u.Host), "", ""
	return strings.TrimSuffix(u.String(), "/")
}

// covers reports whether a resource is the server's address or a parent of it.
func covers(resource string, home *url.URL) bool {
	u, err := url.Parse(resource)
	if err != nil || !strings.EqualFold(u.Scheme, home.Scheme) || !strings.EqualFold(u.Host, home.Host) || u.User != nil {
		return false
	}
	above, path := strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(home.Path, "/")
	return above == path || strings.HasPrefix(path, above+"/")
}

// describe reads the metadata of the authorization server.
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
		return description{}, fault.New(fault.Upstream, "%s has no authorization server metadata", issuer.Host).
			WithHint("ask the operator of the server whether it supports MCP authorization; otherwise use headers or bearer_env")
	}
	return description{
		Issuer: where.issuer, Authorize: root + "/authorize", Token: root + "/token", Register: root + "/register",
		Challenges: []string{"S256"}, old: true,
	}, nil
}

// check refuses metadata that could redirect a login to another server.
func (f *fetcher) check(d description, where place) error {
	if d.Issuer != where.issuer && (!where.old || strings.TrimSuffix(d.Issuer, "/") != where.issuer) {
		return fault.New(fault.Denied, "the metadata of %s is that of the authorization server %q", where.issuer, d.Issuer).
			WithHint("one of them may impersonate the other; report it to the operator of the server")
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

// Locate returns the server with the one of its possible addresses that requires a
// login.
func (l *Logins) Locate(ctx context.Context, s Server, addresses []string) (Server, error) {
	var first error
	for _, address := range addresses {
		s.URL = address
		if _, known, err := l.lastChallenge(ctx, s); err != nil || known {
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

// probe sends a request without credentials to learn what the server requires.
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
		return 0, c, fault.Wrap(fault.Unavailable, errors.Unwrap(err), "reach upstream %s", s.Name).WithHint("%s", certpool.Hint(err))
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswer)
	return response.StatusCode, ParseChallenge(strings.Join(response.Header.Values("WWW-Authenticate"), ", ")), nil
}
