// Package exchange gets tokens for tool servers without a login of the person: the
// company's identity provider exchanges the tokens of their sign-in (RFC 8693), or asserts
// to the tool server's authorization server who they are (ID-JAG). A token belongs to one
// upstream, one address and one person. It is never stored, and sent to that address only.
package exchange

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/queue"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/credentials/oauth"
)

// The methods of a Server.
const (
	Token = "exchange" // the provider gives a token for the server
	IDJAG = "id-jag"   // the provider gives a grant for the server's authorization server
)

// Server is a tool server, and whose account is used there.
type Server struct {
	oauth.Server
	Method   string // Token or IDJAG
	Person   string // the person's id; empty: nobody who signs in
	Audience string // of the token, instead of the server's address
	Subject  string // which token of the sign-in is exchanged; empty: the best
}

// Providers has the tokens of people's sign-ins, and asks the providers that gave them.
type Providers interface {
	// Subject returns the tokens of a person's sign-in, those that are needed not expired if
	// that is possible.
	Subject(ctx context.Context, person, org string, needed func(signin.Subject) string) (signin.Subject, error)
	// Ask sends a form to the token endpoint of the subject's provider.
	Ask(ctx context.Context, of signin.Subject, form url.Values) (signin.Issued, error)
}

// Logins gets tokens at the authorization servers of tool servers.
type Logins interface {
	Grant(ctx context.Context, s oauth.Server, c oauth.Challenge, ask func(context.Context, oauth.Place) (url.Values, error)) (oauth.Granted, error)
}

// Options are the options of an Exchanger.
type Options struct {
	Providers Providers // nil: nobody signs in
	Logins    Logins
	// Check returns an error if the owner of a token may not use the server any more. It may
	// be nil.
	Check func(owner string) error
	// SignIn is the address at which people sign in.
	SignIn string
	Clock  clock.Clock // nil: the machine's
}

// Exchanger has the tokens. It is safe for concurrent use.
type Exchanger struct {
	options Options
	turns   *queue.Lanes

	mu    sync.Mutex
	known map[string]token
}

// token is a token of one person for one server.
type token struct {
	oauth.Granted
	made time.Time
}

// New returns an Exchanger without tokens.
func New(o Options) *Exchanger {
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	return &Exchanger{options: o, turns: queue.NewLanes(queue.LaneOptions{Depth: 10_000}), known: map[string]token{}}
}

// Times of tokens.
const (
	ahead       = 30 * time.Second // before they expire, others are got
	unknownTime = 5 * time.Minute  // of tokens whose end nobody tells
	hopeless    = 10 * time.Second // a server that refuses a token this new refuses the next one too
)

// key identifies a token. Nobody can choose both the name of an upstream and an address
// with a newline.
func (s Server) key() string {
	address, _, _ := strings.Cut(s.URL, "?")
	return strings.Join([]string{s.Name, s.Owner, s.Org, address}, "\n")
}

// Token returns the token for requests to a server. It is cheap as long as one is valid.
func (e *Exchanger) Token(ctx context.Context, s Server) (string, error) {
	return e.token(ctx, s, oauth.Refusal{})
}

// Refused returns another token after the server has refused one.
func (e *Exchanger) Refused(ctx context.Context, s Server, r oauth.Refusal) (string, error) {
	had, _ := e.valid(s)
	lacks := r.Challenge.Error == oauth.InsufficientScope
	switch {
	case r.Status == http.StatusForbidden && !lacks:
		return "", fault.New(fault.Denied, "upstream %s refused the request as forbidden", s.Name).
			WithHint("your account there may not do this")
	case had.Token != r.Token || had.Token == "":
	case lacks && !slices.ContainsFunc(r.Challenge.Scopes, func(scope string) bool { return !slices.Contains(had.Scopes, scope) }):
		return "", fault.New(fault.Denied, "upstream %s requires scopes that the token already has", s.Name).WithHint("ask the operator of the server")
	case lacks && len(s.Settings.Scopes) > 0:
		return "", fault.New(fault.Denied, "upstream %s requires more scopes than are configured", s.Name).WithHint("add them to upstreams.%s.oauth.scopes", s.Name)
	case !lacks && e.options.Clock.Now().Sub(had.made) < hopeless:
		return "", fault.New(fault.NeedsAuth, "upstream %s refuses the token that was exchanged for yours", s.Name).
			WithHint("%s; if it goes on, check audience, issuer and scopes in upstreams.%s.oauth", e.signIn(), s.Name)
	}
	return e.token(ctx, s, r)
}

func (e *Exchanger) signIn() string { return "sign in again: " + e.options.SignIn }

// token returns a valid token that is not the refused one.
func (e *Exchanger) token(ctx context.Context, s Server, r oauth.Refusal) (string, error) {
	if e.options.Check != nil {
		if err := e.options.Check(s.Owner); err != nil {
			return "", err
		}
	}
	if have, ok := e.valid(s); ok && have.Token != r.Token {
		return have.Token, nil
	}
	var got token
	err := e.turns.Do(ctx, s.key(), func(ctx context.Context) (err error) {
		var ok bool
		if got, ok = e.valid(s); ok && got.Token != r.Token { // somebody else got it meanwhile
			return nil
		}
		if got, err = e.get(ctx, s, r.Challenge); err == nil {
			e.remember(s, got)
		}
		return err
	})
	return got.Token, e.explained(s, err)
}

// explained adds to an error where to sign in.
func (e *Exchanger) explained(s Server, err error) error {
	if fault.CodeOf(err) == fault.NeedsAuth && s.Person != "" {
		return fault.Wrap(fault.NeedsAuth, err, "upstream %s needs your sign-in", s.Name).WithHint("%s", e.signIn())
	}
	return err
}

// valid returns a token that does not expire soon.
func (e *Exchanger) valid(s Server) (token, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	have, ok := e.known[s.key()]
	return have, ok && e.options.Clock.Now().Add(ahead).Before(have.Expires)
}

// remember keeps a token, and forgets those that have expired.
func (e *Exchanger) remember(s Server, got token) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.options.Clock.Now()
	for key, have := range e.known {
		if now.After(have.Expires) {
			delete(e.known, key)
		}
	}
	e.known[s.key()] = got
}

// get gets a new token.
func (e *Exchanger) get(ctx context.Context, s Server, c oauth.Challenge) (got token, err error) {
	switch {
	case !s.Trusted:
		return got, fault.New(fault.Denied, "upstream %s is not of the configuration, so no token is exchanged for it", s.Name)
	case e.options.Providers == nil:
		return got, fault.New(fault.Config, "upstream %s needs people who sign in", s.Name).WithHint("configure [identity.NAME]; docs/people.md")
	case s.Settings.Issuer == "" && (s.Method == IDJAG || s.Settings.ClientID != ""): // else the upstream chose who gets tokens of the person
		return got, fault.New(fault.Config, "upstream %s has no upstreams.%s.oauth.issuer", s.Name, s.Name)
	case s.Person == "":
		why, hint := principal.LacksLogin(s.Owner)
		return got, fault.New(fault.NeedsAuth, "upstream %s is used with the account of each person: %s", s.Name, cmp.Or(why, "nobody is signed in")).
			WithHint("%s", cmp.Or(hint, e.signIn()))
	}
	if s.Method == Token && s.Settings.ClientID == "" {
		got.Granted, err = e.atProvider(ctx, s, c)
	} else {
		got.Granted, err = e.options.Logins.Grant(ctx, s.Server, c, func(ctx context.Context, at oauth.Place) (url.Values, error) {
			return e.form(ctx, s, at)
		})
	}
	if err != nil {
		return got, err
	}
	got.made = e.options.Clock.Now()
	if got.Expires.IsZero() {
		got.Expires = got.made.Add(unknownTime)
	}
	return got, nil
}
