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

// OAuth is what the owner says of logins to a server. All of it may be empty.
type OAuth struct {
	ClientID     string
	ClientSecret string // or a reference to it, as ClientKey
	ClientKey    string
	Scopes       []string
	Issuer       string
	Grant        string
	RedirectPort int
}

func (o OAuth) equal(other OAuth) bool {
	return slices.Equal(o.Scopes, other.Scopes) && o.ClientID == other.ClientID && o.ClientSecret == other.ClientSecret &&
		o.ClientKey == other.ClientKey && o.Issuer == other.Issuer && o.Grant == other.Grant && o.RedirectPort == other.RedirectPort
}

// Login has the tokens for servers that people log in to. Its faults leave this
// room as they are: needs_auth ones say how to log in.
type Login interface {
	// Token is what requests to the server at spec.URL bear; "" for none.
	Token(ctx context.Context, spec Spec) (string, error)
	// Refused is asked for another token after the server refused one.
	Refused(ctx context.Context, spec Spec, status int, challenge, token string) (string, error)
}

// tokenSource gives the requests of one client their tokens.
type tokenSource struct {
	login Login
	spec  Spec
}

// tokenSource is nil for servers that have credentials already, or that are reached
// so that others could read along.
func (o *Options) tokenSource(spec Spec, u *url.URL, headers http.Header) *tokenSource {
	if o.Login == nil || headers.Get("Authorization") != "" || u.Scheme != "https" && !netguard.IsLoopback(u.Hostname()) {
		return nil
	}
	return &tokenSource{o.Login, spec}
}

// token is what dispatches bear now; empty for nothing.
func (b *tokenSource) token(ctx context.Context) (string, error) {
	return b.login.Token(ctx, b.spec)
}

// renew is another token, after one was refused.
func (b *tokenSource) renew(ctx context.Context, token string, refused *statusError) (string, error) {
	fresh, err := b.login.Refused(ctx, b.spec, refused.Code, refused.Challenge, token)
	switch {
	case fault.CodeOf(err) == fault.Unavailable:
		return "", err // it will be back; nobody has to log in
	case err != nil:
		return "", &loginError{refused, err}
	}
	return fresh, nil
}

// subscriptionFilter is a refusal together with what can be done about it.
type loginError struct {
	refused *statusError
	fix     error
}

func (w *loginError) Error() string   { return w.fix.Error() }
func (w *loginError) Unwrap() []error { return []error{w.fix, w.refused} }

// lacksScope tells that only this request is not allowed, while others are.
func lacksScope(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.Code == http.StatusForbidden && strings.Contains(status.Challenge, "insufficient_scope")
}

// loginFix is what the login has to say about an error, if anything.
func loginFix(err error) (cure *fault.Error, ok bool) {
	var w *loginError
	return cure, errors.As(err, &w) && errors.As(w.fix, &cure)
}

// Retry tries to connect at once to a server that wants credentials: there are
// some now.
func (m *Manager) Retry(name string) {
	if c, err := m.connection(name); err == nil {
		signal(c.retry)
	}
}

// Addresses are the URLs at which a server may answer, most likely first; none
// for one that is not reached over HTTP.
func (s Spec) Addresses() []string {
	var urls []string
	for _, way := range endpoints(s) {
		if (way.Transport == HTTP || way.Transport == SSE) && !slices.Contains(urls, way.URL) {
			urls = append(urls, way.URL)
		}
	}
	return urls
}
