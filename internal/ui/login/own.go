package login

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/store/db"
)

// OwnLogin is the login of a person to an upstream, as the API shows it.
type OwnLogin struct {
	Upstream string    `json:"upstream"`
	State    string    `json:"state"`             // none, active or needs_login
	Account  string    `json:"account,omitempty"` // of the person there, if the server tells
	Scopes   []string  `json:"scopes,omitempty"`
	Expires  time.Time `json:"expires,omitzero"` // of the token; it is renewed by itself if that is possible
	Connect  string    `json:"connect"`          // the page on which the person logs in
	Link     string    `json:"link,omitempty"`   // the same, with the address of this server
}

// OwnLogins returns the logins of whoever asks to all upstreams that require one of each
// person.
func (s *Service) OwnLogins(ctx context.Context) ([]OwnLogin, error) {
	if _, err := ownAccount(principal.Of(ctx)); err != nil {
		return nil, err
	}
	names := []string{}
	for _, status := range s.options.Manager.List() {
		if hasOwnLogins(status.Desired) {
			names = append(names, status.Name)
		}
	}
	list := []OwnLogin{}
	for _, name := range principal.Of(ctx).Visible(names) {
		own, err := s.ownLogin(ctx, name)
		if fault.CodeOf(err) == fault.NotFound {
			continue // it is hidden, or was removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		list = append(list, own)
	}
	slices.SortFunc(list, func(a, b OwnLogin) int { return strings.Compare(a.Upstream, b.Upstream) })
	return list, nil
}

// hasOwnLogins reports whether people log in to an upstream one by one.
func hasOwnLogins(spec upstream.Spec) bool {
	return spec.Owner == "" && spec.Login == upstream.LoginEach && spec.OAuth.Grant != oauth.GrantCredentials && len(spec.Addresses()) > 0
}

// ownLogin returns the login of the principal in ctx to one upstream.
func (s *Service) ownLogin(ctx context.Context, name string) (OwnLogin, error) {
	spec, err := s.ownSpec(ctx, name)
	if err != nil {
		return OwnLogin{}, err
	}
	status, err := s.upstreams.StatusOf(ctx, spec)
	name = principal.Of(ctx).NameOf(spec.Name)
	own := OwnLogin{
		Upstream: name, State: status.State, Account: status.Account, Scopes: status.Scopes, Expires: status.Expires,
		Connect: ConnectPath + url.PathEscape(name),
	}
	if connect := s.upstreams.options.Connect; connect != nil {
		own.Link = connect(name)
	}
	return own, err
}

// ownSpec returns the spec of an upstream for the account of the principal in ctx. The name is
// the principal's: that of an upstream of its organisation comes before one of the server.
func (s *Service) ownSpec(ctx context.Context, name string) (upstream.Spec, error) {
	who := principal.Of(ctx)
	spec, err := s.spec(who.Namespace(name, func(space string) bool { _, ok := s.options.Manager.Status(space); return ok }))
	switch {
	case err != nil || !who.CanSee(spec.Name, ""):
		return upstream.Spec{}, fault.New(fault.NotFound, "no upstream %q", name).
			WithHint("it may be of another organisation than the one that you act in; GET /api/v1/me/logins lists those that you log in to")
	case spec.Login != upstream.LoginEach:
		return spec, fault.New(fault.Conflict, "people do not log in to upstream %s one by one", name).
			WithHint("an administrator changes that with login = \"each\"")
	}
	spec.Owner, spec.Person.Org = who.LoginOwner(), who.Org
	return spec, nil
}

// BeginOwn begins the login of the principal in ctx.
func (s *Service) BeginOwn(ctx context.Context, name string, back oauth.Return) (oauth.Begun, error) {
	spec, err := s.ownSpec(ctx, name)
	if err != nil {
		return oauth.Begun{}, err
	}
	back.URL = s.options.RedirectURL()
	begun, err := s.start(ctx, spec, false, back)
	begun.Upstream = principal.Of(ctx).NameOf(begun.Upstream)
	return begun, err
}

// FinishOwn completes the login of a person.
func (s *Service) FinishOwn(ctx context.Context, query url.Values, by oauth.Visitor) (oauth.Finished, error) {
	done, err := s.upstreams.FinishOwn(ctx, query, by)
	if err == nil {
		s.finished(ctx, done.Upstream, done.Owner)
	}
	done.Upstream = principal.Of(ctx).NameOf(done.Upstream)
	return done, err
}

// EndOwn ends the login of the principal in ctx.
func (s *Service) EndOwn(ctx context.Context, name string) error {
	if _, err := ownAccount(principal.Of(ctx)); err != nil {
		return err
	}
	spec, err := s.ownSpec(ctx, name)
	if err != nil {
		return err
	}
	was, err := s.upstreams.End(ctx, spec.Name, spec.Owner)
	if err == nil && !was {
		err = fault.New(fault.NotFound, "you are not logged in to %s", name)
	}
	if err != nil {
		return err
	}
	s.options.Audit(ctx, "upstream.logout", spec.Name, ownerDetail(spec.Owner))
	return nil
}

// LoggedIn reports whether the principal in ctx has a login of its own to an upstream.
func (s *Service) LoggedIn(ctx context.Context, name string) (bool, error) {
	spec, err := s.ownSpec(ctx, name)
	if err != nil {
		return false, err
	}
	status, err := s.upstreams.StatusOf(ctx, spec)
	return status.LoggedIn, err
}

// AwaitLogin waits until the principal in ctx has a login of its own to an upstream.
func (s *Service) AwaitLogin(ctx context.Context, name string) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if in, err := s.LoggedIn(ctx, name); err != nil || in {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// loginsChanged wakes up all that wait for a login.
func (s *Service) loginsChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// EndOf ends all logins of a person, by their id, in a transaction of others: they have left.
func EndOf(ctx context.Context, tx *db.Tx, person string) error {
	return oauth.EndOf(ctx, tx, principal.PersonPrefix+person)
}
