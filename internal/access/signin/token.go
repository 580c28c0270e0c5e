package signin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/fault"
)

type endpoints = jwt.Endpoints

// tokens is what a provider's token endpoint gives.
type tokens struct {
	Access  string      `json:"access_token"`
	ID      string      `json:"id_token,omitempty"`
	Refresh string      `json:"refresh_token,omitempty"`
	Seconds json.Number `json:"expires_in,omitempty"`
	Expires time.Time   `json:"expires,omitzero"` // of the access token, by our clock
}

// endOf is when an access token that was just given expires.
func (s *Service) endOf(got tokens) time.Time {
	seconds, err := got.Seconds.Float64()
	if err != nil || seconds <= 0 {
		return s.options.Clock.Now().Add(unknownTime)
	}
	return s.options.Clock.Now().Add(time.Duration(min(seconds, 365*24*3600) * float64(time.Second)))
}

// Limits of a provider's answers.
const (
	answerTime = 15 * time.Second
	maxAnswer  = 1 << 20
)

// errGone is the refusal of a refresh token that is not good any more.
var errGone = errors.New("the provider does not know the session any more")

// exchange requests tokens for a code or a refresh token.
func (s *Service) exchange(ctx context.Context, p *provider, at endpoints, form url.Values) (got tokens, err error) {
	err = s.ask(ctx, p, at, form, &got)
	var no *refused
	if errors.As(err, &no) && no.code == "invalid_grant" {
		return got, fault.Wrap(fault.Denied, errGone, "sign in at %s", p.Issuer).WithHint("sign in again")
	}
	if errors.As(err, &no) {
		return got, fault.Wrap(fault.Upstream, err, "sign in at %s", p.Issuer).WithHint("check client_id and client_secret in [identity.%s]", p.Name)
	}
	got.Expires = s.endOf(got)
	return got, err
}

// refused is the error response of a provider (RFC 6749, 5.2).
type refused struct {
	issuer, code string
	status       int
}

func (r *refused) Error() string {
	return fmt.Sprintf("%s gives no token: status %d %s", r.issuer, r.status, printable(r.code))
}

// needsPerson are the refusals that end when the person signs in again.
var needsPerson = []string{"insufficient_user_authentication", "invalid_grant", "invalid_request", "login_required", "interaction_required"}

// fault says who can do something about a refusal.
func (r *refused) fault() error {
	switch {
	case r.status >= http.StatusInternalServerError || r.code == "":
		return fault.Wrap(fault.Unavailable, r, "ask the provider")
	case slices.Contains(needsPerson, r.code):
		return fault.Wrap(fault.NeedsAuth, r, "ask the provider").WithHint("sign in again")
	}
	return fault.Wrap(fault.Denied, r, "ask the provider").WithHint("ask an administrator whether the provider lets this server exchange tokens")
}

// ask sends a form to a provider's token endpoint, as our client there.
func (s *Service) ask(ctx context.Context, p *provider, at endpoints, form url.Values, into any) error {
	form.Set("client_id", p.ClientID)
	secret := ""
	if p.Secret != nil {
		text, err := p.Secret()
		if err != nil {
			return err
		}
		secret = text.Reveal()
	}
	inBody := at.SendsSecretInBody()
	if secret != "" && inBody {
		form.Set("client_secret", secret)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.Token, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header["Idempotency-Key"] = nil // not sent: repeat it if the provider had closed the connection
	if secret != "" && !inBody {
		request.SetBasicAuth(url.QueryEscape(p.ClientID), url.QueryEscape(secret)) // RFC 6749 section 2.3.1
	}
	status, body, err := s.send(request)
	if err != nil {
		return err
	}
	if status == http.StatusOK && json.Unmarshal(body, into) == nil {
		return nil
	}
	var said struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal(body, &said) // the status says enough
	return (&refused{p.Issuer, said.Error, status}).fault()
}

// userInfo returns what the provider tells about a person besides the ID token. Many
// providers keep name, address and groups out of it.
func (s *Service) userInfo(ctx context.Context, at endpoints, token string, id jwt.Claims) (about jwt.Claims, err error) {
	if at.UserInfo == "" || token == "" {
		return nil, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.UserInfo, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	status, body, err := s.send(request)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK || !json.Valid(body) { // an encrypted answer, for example
		return nil, nil // the ID token alone identifies the person
	}
	if err := json.Unmarshal(body, &about); err != nil {
		return nil, fault.Wrap(fault.Upstream, err, "read what %s tells about the person", request.URL.Host)
	}
	if about.Text("sub") != id.Text("sub") {
		return nil, fault.New(fault.Denied, "the provider describes somebody else than the person who signs in")
	}
	return about, nil
}

func (s *Service) send(request *http.Request) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(request.Context(), answerTime)
	defer cancel()
	request.Header.Set("Accept", "application/json")
	client := *s.options.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // secrets are for this address only
	response, err := client.Do(request.WithContext(ctx))
	if err != nil {
		if withURL := (*url.Error)(nil); errors.As(err, &withURL) {
			err = withURL.Err // the address may hold secrets
		}
		return 0, nil, fault.Wrap(fault.Unavailable, err, "ask %s", request.URL.Host)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return 0, nil, fault.Wrap(fault.Unavailable, err, "ask %s", request.URL.Host)
	}
	return response.StatusCode, body, nil
}

// identity is how the provider identifies a person. Microsoft's subjects are unique
// within a tenant.
func (p *provider) identity(claims jwt.Claims) people.Identity {
	return people.Identity{Issuer: p.Issuer, Tenant: claims.Text("tid"), Subject: claims.Text("sub")}
}

// arrival returns the person that claims describe. about may be nil.
func (p *provider) arrival(id, about jwt.Claims) (people.Arrival, error) {
	text := func(name string) string { return cmp.Or(id.Text(name), about.Text(name)) }
	email := text("email")
	a := people.Arrival{
		Identity: p.identity(id), Source: p.Name, Email: email,
		Name: cmp.Or(text("name"), text("preferred_username"), email, id.Text("sub")),
	}
	_, domain, _ := strings.Cut(email, "@")
	a.Verified = email != "" && (id.True("email_verified") || id["email"] == nil && about.True("email_verified"))
	if len(p.Domains) > 0 && !p.isDomain(text("hd")) && !(a.Verified && p.isDomain(domain)) {
		return a, fault.New(fault.Denied, "%s is not of %s", a.Name, strings.Join(p.Domains, " or ")).
			WithHint("sign in with an account of your organisation")
	}
	groups, err := p.groups(id, about)
	if err != nil {
		return a, err
	}
	a.Roles = p.memberships(groups)
	if len(a.Roles) == 0 {
		return a, fault.New(fault.Denied, "%s is in no organisation on this server", a.Name).
			WithHint("ask an administrator: organisations come from groups at the provider")
	}
	return a, nil
}

// groups returns the groups of a person by both descriptions.
func (p *provider) groups(id, about jwt.Claims) ([]string, error) {
	groups, ok := id.List(p.Groups)
	more, also := about.List(p.Groups)
	if !ok || !also {
		return nil, fault.New(fault.Denied, "the claim %s of %s is not a list", p.Groups, p.Issuer).
			WithHint("ask an administrator: the provider must send groups as a list of texts, or groups_claim must name another claim")
	}
	return slices.Concat(groups, more), nil
}

func (p *provider) isDomain(domain string) bool {
	return domain != "" && slices.ContainsFunc(p.Domains, func(d string) bool { return strings.EqualFold(d, domain) })
}

// memberships returns the roles of groups in each organisation of the person, without
// repetition.
func (p *provider) memberships(groups []string) map[string][]string {
	all := slices.Clone(p.Everybody)
	for _, group := range groups {
		all = append(all, p.Roles[group]...)
	}
	roles := map[string][]string{}
	if p.Org != "" || len(p.Orgs) == 0 {
		roles[p.Org] = all
	}
	for _, group := range groups {
		for _, m := range p.Orgs[group] {
			if _, there := roles[m.Org]; !there {
				roles[m.Org] = all
			}
			roles[m.Org] = slices.Concat(roles[m.Org], m.Roles)
		}
	}
	for org := range roles {
		roles[org] = slices.Compact(slices.Sorted(slices.Values(roles[org])))
	}
	return roles
}

// first returns the organisation in which a person's session begins.
func (p *provider) first(of people.Person) string {
	orgs := of.Orgs()
	if slices.Contains(orgs, p.Org) || len(orgs) == 0 {
		return p.Org
	}
	return orgs[0]
}

// recheck is how often a provider is asked whether a session may go on.
const recheck = 15 * time.Minute

// Run asks providers again about sessions that have a refresh token, until ctx ends: the
// roles follow the groups, and a session ends when the provider ended it.
func (s *Service) Run(ctx context.Context) {
	for s.options.Clock.Sleep(ctx, time.Minute) == nil {
		if err := s.Recheck(ctx); err != nil && ctx.Err() == nil {
			s.options.Log.WarnContext(ctx, "sessions not checked", "error", err)
		}
	}
}

// Recheck asks about the sessions whose time it is.
func (s *Service) Recheck(ctx context.Context) error {
	due, err := s.options.People.Due(ctx, s.options.Clock.Now().Add(-recheck))
	for _, stored := range due {
		if _, known := s.providers[stored.Provider]; !known || stored.Tokens.Kept == "" {
			continue
		}
		if mine, claimErr := s.options.People.Claim(ctx, stored); claimErr != nil || !mine {
			err = errors.Join(err, claimErr)
			continue
		}
		if oneErr := s.recheckOne(ctx, stored); oneErr != nil {
			err = errors.Join(err, fmt.Errorf("check a session of %s: %w", stored.Provider, oneErr))
		}
	}
	return err
}

// recheckOne asks about one session. An error that may pass leaves the session as it is.
func (s *Service) recheckOne(ctx context.Context, stored people.Stored) error {
	k, err := s.load(ctx, "id = $1", stored.Tokens.Kept)
	if err == nil {
		_, err = s.renew(ctx, k)
	}
	if code := fault.CodeOf(err); code == fault.Denied || code == fault.NeedsAuth {
		return s.options.People.End(ctx, stored)
	}
	return err
}
