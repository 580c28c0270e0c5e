package exchange

import (
	"context"
	"net/url"
	"strings"

	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/credentials/oauth"
)

// Grants and types of tokens (RFC 8693, RFC 7523, ID-JAG).
const (
	grantExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
	grantBearer   = "urn:ietf:params:oauth:grant-type:jwt-bearer"

	tokenType   = "urn:ietf:params:oauth:token-type:"
	typeAccess  = tokenType + "access_token"
	typeID      = tokenType + "id_token"
	typeRefresh = tokenType + "refresh_token"
	typeIDJAG   = tokenType + "id-jag"
)

// GrantBehalf of a server's settings is the exchange of Microsoft Entra, which has another
// form.
const GrantBehalf = "on-behalf-of"

// The subjects of a Server.
const (
	SubjectAccess  = "access_token"
	SubjectID      = "id_token"
	SubjectRefresh = "refresh_token"
)

// Subjects are all of them.
var Subjects = []string{SubjectAccess, SubjectID, SubjectRefresh}

// subject returns the token of a person's sign-in that is exchanged, and its type.
func (e *Exchanger) subject(ctx context.Context, s Server) (from signin.Subject, text, kind string, err error) {
	wanted := s.Subject
	if wanted == "" && s.Method == IDJAG {
		wanted = SubjectID
	}
	choose := func(have signin.Subject) string {
		switch wanted {
		case SubjectID:
			return have.ID
		case SubjectRefresh:
			return have.Refresh
		default:
			return have.Access
		}
	}
	if from, err = e.options.Providers.Subject(ctx, s.Person, s.Org, choose); err != nil {
		return from, "", "", err
	}
	kind = map[string]string{SubjectID: typeID, SubjectRefresh: typeRefresh, SubjectAccess: typeAccess, "": typeAccess}[wanted]
	text = choose(from)
	if text == "" && s.Subject == "" && from.Refresh != "" { // a provider that renews no ID tokens knows its refresh token
		text, kind = from.Refresh, typeRefresh
	}
	if text == "" {
		err = fault.New(fault.NeedsAuth, "the sign-in at the provider has ended").
			WithHint("sign in again; with the scope offline_access in [identity] it lasts longer")
	}
	return from, text, kind, err
}

// atProvider lets the person's provider exchange a token, as our client there.
func (e *Exchanger) atProvider(ctx context.Context, s Server, c oauth.Challenge) (oauth.Granted, error) {
	scopes := s.Settings.Scopes
	if len(scopes) == 0 {
		scopes = c.Scopes
	}
	address, _, _ := strings.Cut(s.URL, "?")
	from, form, err := e.exchangeForm(ctx, s, oauth.Place{Resource: address, Scopes: scopes})
	if err != nil {
		return oauth.Granted{}, err
	}
	got, err := e.options.Providers.Ask(ctx, from, form)
	if err == nil && got.Kind != "" && got.Kind != typeAccess && got.Kind != tokenType+"jwt" {
		err = fault.New(fault.Upstream, "the provider exchanged the token for one of another type")
	}
	return oauth.Granted{Token: got.Token, Scopes: scopes, Expires: got.Expires}, err
}

// exchangeForm is the request to exchange a token of the person for one of the place.
func (e *Exchanger) exchangeForm(ctx context.Context, s Server, at oauth.Place) (signin.Subject, url.Values, error) {
	from, text, kind, err := e.subject(ctx, s)
	if err != nil {
		return from, nil, err
	}
	form := url.Values{}
	if s.Settings.Grant == GrantBehalf {
		form.Set("grant_type", grantBearer)
		form.Set("requested_token_use", "on_behalf_of")
		form.Set("assertion", text)
	} else {
		form.Set("grant_type", grantExchange)
		form.Set("subject_token", text)
		form.Set("subject_token_type", kind)
		form.Set("requested_token_type", typeAccess)
		if s.Audience != "" {
			form.Set("audience", s.Audience)
		} else {
			form.Set("resource", at.Resource)
		}
	}
	if len(at.Scopes) > 0 {
		form.Set("scope", strings.Join(at.Scopes, " "))
	}
	return from, form, nil
}

// form is the request to the authorization server of the tool server.
func (e *Exchanger) form(ctx context.Context, s Server, at oauth.Place) (url.Values, error) {
	if s.Method != IDJAG {
		_, form, err := e.exchangeForm(ctx, s, at)
		return form, err
	}
	assertion, err := e.assertion(ctx, s, at)
	return url.Values{"grant_type": {grantBearer}, "assertion": {assertion}, "resource": {at.Resource}}, err
}

// assertion lets the person's provider assert to an authorization server who they are.
// Authorization servers take an assertion once, so that each is a new one.
func (e *Exchanger) assertion(ctx context.Context, s Server, at oauth.Place) (string, error) {
	if at.Issuer != s.Settings.Issuer { // the client and its secret are of that one
		return "", fault.New(fault.Denied, "the authorization server of upstream %s is %q, and not the configured one", s.Name, at.Issuer).
			WithHint("set upstreams.%s.oauth.issuer if that is correct", s.Name)
	}
	from, text, kind, err := e.subject(ctx, s)
	if err != nil {
		return "", err
	}
	form := url.Values{
		"grant_type": {grantExchange}, "requested_token_type": {typeIDJAG}, "subject_token": {text}, "subject_token_type": {kind},
		"audience": {at.Issuer}, "resource": {at.Resource},
	}
	if len(at.Scopes) > 0 {
		form.Set("scope", strings.Join(at.Scopes, " "))
	}
	got, err := e.options.Providers.Ask(ctx, from, form)
	if err == nil && got.Kind != typeIDJAG {
		err = fault.New(fault.Upstream, "the provider does not give identity assertion grants").
			WithHint("ask an administrator whether it supports ID-JAG; otherwise use login = \"each\"")
	}
	return got.Token, err
}
