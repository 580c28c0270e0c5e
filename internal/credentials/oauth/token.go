package oauth

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
)

const grantDevice = "urn:ietf:params:oauth:grant-type:device_code"

// tokens is the response of a token endpoint.
type tokens struct {
	Access  string    `json:"access"`
	Refresh string    `json:"refresh,omitempty"`
	Account string    `json:"account,omitempty"` // the name of the person, if the server tells
	Scopes  []string  `json:"scopes,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
}

// refused is the error response of an authorization server.
type refused struct {
	host, code, text string
}

func (r *refused) Error() string {
	text := r.host + " refuses: " + r.code
	if r.text != "" {
		text += " (" + r.text + ")"
	}
	return text
}

// ends reports whether the refusal of a refresh token ends the login: the token is no longer
// valid, or the client it was issued to is not. Others may pass, such as a limit of requests
// or a wrong secret in the configuration.
func (r *refused) ends(who client) bool {
	switch r.code {
	case "invalid_grant":
		return true
	case "invalid_client", "unauthorized_client":
		return !who.Configured
	}
	return false
}

// refusal parses an error response (RFC 6749, 5.2). The text of the server is shown to
// people, cleaned and shortened; it contains nothing that was sent.
func refusal(host string, status int, body []byte) error {
	var said struct {
		Code string `json:"error"`
		Text string `json:"error_description"`
	}
	if json.Unmarshal(body, &said) != nil || said.Code == "" {
		said.Code = fmt.Sprintf("status %d", status)
	}
	if status >= 500 {
		return fault.New(fault.Unavailable, "%s answered %d", host, status)
	}
	return &refused{host, printable(said.Code), printable(said.Text)}
}

// printable returns text of another server without unprintable characters, and
// shortened.
func printable(text string) string {
	return redact.Cut(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, text), 200)
}

// grant sends a token request.
func (l *Logins) grant(ctx context.Context, f *fetcher, s Server, at description, who client, form url.Values) (tokens, error) {
	endpoint, err := f.parse(at.Token)
	if err != nil {
		return tokens{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.String(), nil)
	if err != nil {
		return tokens{}, err
	}
	if err := l.addClientAuth(request, s, at, who, form); err != nil {
		return tokens{}, err
	}
	status, answer, err := f.post(request, form)
	if err != nil {
		return tokens{}, err
	}
	if status != http.StatusOK {
		return tokens{}, refusal(endpoint.Host, status, answer)
	}
	var got struct {
		Access  string      `json:"access_token"`
		Kind    string      `json:"token_type"`
		Refresh string      `json:"refresh_token"`
		ID      string      `json:"id_token"`
		Scope   *string     `json:"scope"`
		Seconds json.Number `json:"expires_in"`
	}
	if json.Unmarshal(answer, &got) != nil || got.Access == "" {
		return tokens{}, fault.New(fault.Upstream, "the response of %s has no token", endpoint.Host)
	}
	if !strings.EqualFold(got.Kind, "Bearer") {
		return tokens{}, fault.New(fault.Upstream, "%s issues tokens of the unsupported type %q", endpoint.Host, printable(got.Kind))
	}
	if strings.ContainsFunc(got.Access, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return tokens{}, fault.New(fault.Upstream, "%s issued a token that is not valid in a header", endpoint.Host)
	}
	t := tokens{Access: got.Access, Refresh: got.Refresh, Account: accountOf(got.ID), Scopes: strings.Fields(form.Get("scope"))}
	if got.Scope != nil {
		t.Scopes = strings.Fields(*got.Scope)
	}
	if seconds, err := got.Seconds.Float64(); err == nil && seconds > 0 {
		t.Expires = l.options.Clock.Now().Add(time.Duration(min(seconds, 10*365*24*3600) * float64(time.Second)))
	}
	return t, nil
}

// accountOf returns the name of the person of an ID token; empty if it has none. It comes
// from the issuer itself and is only shown, so that its signature does not matter.
func accountOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	var said struct {
		Email string `json:"email"`
		Name  string `json:"preferred_username"`
		Sub   string `json:"sub"`
	}
	if err != nil || json.Unmarshal(body, &said) != nil {
		return ""
	}
	return printable(cmp.Or(said.Email, said.Name, said.Sub))
}

// post sends a form.
func (f *fetcher) post(request *http.Request, form url.Values) (status int, body []byte, err error) {
	text := form.Encode()
	request.Body = readCloser(text)
	request.ContentLength = int64(len(text))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	return f.do(request)
}

// addClientAuth adds the client authentication to a token request.
func (l *Logins) addClientAuth(request *http.Request, s Server, at description, who client, form url.Values) error {
	known := who.Secret
	if who.Configured && who.Auth != authNone {
		reference := s.Settings.ClientSecret
		if who.Auth == authKey {
			reference = s.Settings.ClientKey
		}
		found, err := l.options.Resolve(reference)
		if err != nil {
			return fault.Wrap(fault.CodeOf(err), err, "find the client's secret for upstream %s", s.Name)
		}
		known = found.Reveal()
	}
	switch who.Auth {
	case authBasic:
		request.SetBasicAuth(url.QueryEscape(who.ID), url.QueryEscape(known))
	case authPost:
		form.Set("client_id", who.ID)
		form.Set("client_secret", known)
	case authKey:
		assertion, err := assert(known, who.ID, at.Issuer, l.options.Clock.Now())
		if err != nil {
			return fault.Wrap(fault.Config, err, "sign for upstream %s", s.Name)
		}
		form.Set("client_id", who.ID)
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", assertion)
	default:
		form.Set("client_id", who.ID)
	}
	return nil
}
