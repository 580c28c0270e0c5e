package upstream

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
)

// OAuth is the configuration of logins to a server. All fields may be empty.
type OAuth struct {
	ClientID     string
	ClientSecret string // or a reference to it, as ClientKey
	ClientKey    string
	Scopes       []string
	Issuer       string
	Grant        string
	RedirectPort int
	Audience     string // of tokens that are exchanged, instead of the server's address
	Subject      string // which token of a sign-in is exchanged
	TokenURL     string // where tokens are, if the description of an API says it; never configured
}

func (o OAuth) equal(other OAuth) bool {
	return slices.Equal(o.Scopes, other.Scopes) && o.ClientID == other.ClientID && o.ClientSecret == other.ClientSecret &&
		o.ClientKey == other.ClientKey && o.Issuer == other.Issuer && o.Grant == other.Grant && o.RedirectPort == other.RedirectPort &&
		o.Audience == other.Audience && o.Subject == other.Subject
}

// Login has the tokens for servers that require a login. Callers see its faults
// unchanged: those with the code needs_auth say how to log in.
type Login interface {
	// Token is the bearer token for requests to the server at spec.URL; "" for none.
	Token(ctx context.Context, spec Spec) (string, error)
	// Refused returns another token after the server has refused one.
	Refused(ctx context.Context, spec Spec, status int, challenge, token string) (string, error)
}

// tokenSource has the tokens for the requests of one client.
type tokenSource struct {
	login Login
	spec  Spec
}

// tokenSource is nil for servers that have credentials already, and for servers
// over plain HTTP on other hosts, where a token could be read on the way.
func (o *Options) tokenSource(spec Spec, u *url.URL, header http.Header) *tokenSource {
	if o.Login == nil || header.Get("Authorization") != "" || u.Scheme != "https" && !netguard.IsLoopback(u.Hostname()) {
		return nil
	}
	return &tokenSource{o.Login, spec}
}

// token is the current token; empty for none.
func (s *tokenSource) token(ctx context.Context) (string, error) {
	return s.login.Token(ctx, s.spec)
}

// renew returns another token after one was refused.
func (s *tokenSource) renew(ctx context.Context, token string, refused *statusError) (string, error) {
	renewed, err := s.login.Refused(ctx, s.spec, refused.Code, refused.Challenge, token)
	switch {
	case fault.CodeOf(err) == fault.Unavailable:
		return "", err // temporary: a new login would not help
	case err != nil:
		return "", &loginError{refused, err}
	}
	return renewed, nil
}

// loginError is a refused request, together with the fault that says what to do.
type loginError struct {
	refused *statusError
	fix     error
}

func (e *loginError) Error() string   { return e.fix.Error() }
func (e *loginError) Unwrap() []error { return []error{e.fix, e.refused} }

// lacksScope reports whether only this request is forbidden, while others are
// allowed.
func lacksScope(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.Code == http.StatusForbidden && strings.Contains(status.Challenge, "insufficient_scope")
}

// loginFix is the fault in err that says how to log in, if there is one.
func loginFix(err error) (fix *fault.Error, ok bool) {
	var e *loginError
	return fix, errors.As(err, &e) && errors.As(e.fix, &fix)
}

// Addresses are the URLs at which a server may answer, the most likely first. There
// are none for a server that is not reached over HTTP.
func (s Spec) Addresses() []string {
	var urls []string
	if s.API.BaseURL != "" {
		return []string{strings.TrimSuffix(s.API.BaseURL, "/")}
	}
	for _, e := range endpoints(s) {
		if (e.Transport == HTTP || e.Transport == SSE) && !slices.Contains(urls, e.URL) {
			urls = append(urls, e.URL)
		}
	}
	return urls
}
