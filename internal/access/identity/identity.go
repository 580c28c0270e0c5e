// Package identity is everything that people need to use the server as themselves:
// signing in, sessions, roles, and the authorization server for their clients. It connects
// the packages people, signin and authserver.
package identity

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/access/authserver"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// Options are the options of a Service.
type Options struct {
	PublicURL    string
	Providers    []signin.Provider
	Roles        people.Roles
	Registration bool // clients may register themselves
	Browsers     netguard.Browsers
	// Key encrypts stored tokens of providers.
	Key func() (secret.Text, error)
	// Client asks providers. Its addresses are the owner's.
	Client *http.Client
	// Documents fetches metadata documents of clients; nil: from the public internet only.
	Documents *http.Client
	OnLogin   func(ctx context.Context, action, from string, allowed bool)
	Audit     func(ctx context.Context, action, subject string, detail []byte)
	// OnBlock ends what else acts for a person who is blocked, in the same transaction; nil:
	// nothing else does.
	OnBlock  func(ctx context.Context, tx *db.Tx, person string) error
	Interval time.Duration // how often changes of other processes are looked for; zero: a second
	Clock    clock.Clock   // nil: the machine's
	Log      *slog.Logger
}

// Service lets people sign in. It is safe for concurrent use.
type Service struct {
	*authserver.Server // and through it the people
	signin             *signin.Service
	api                people.API
}

// Open opens everything on one database.
func Open(ctx context.Context, store *db.DB, o Options) (*Service, error) {
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Documents == nil {
		o.Documents = netguard.Outbound{}.Client()
	}
	all, err := people.Open(ctx, store, people.Options{
		Roles: o.Roles, Key: o.Key, OnBlock: o.endAll, Now: o.Clock.Now, Log: o.Log, Interval: o.Interval,
	})
	if err != nil {
		return nil, err
	}
	in, err := signin.Open(ctx, store, signin.Options{
		Providers: o.Providers, PublicURL: o.PublicURL, People: all, Browsers: o.Browsers, Client: o.Client, Key: o.Key,
		OnSignIn: o.OnLogin, Clock: o.Clock, Log: o.Log,
	})
	if err != nil {
		return nil, err
	}
	clients, err := authserver.Open(ctx, store, authserver.Options{
		Issuer: o.PublicURL, People: all, SignIn: in, Browsers: o.Browsers, Documents: o.Documents, Registration: o.Registration,
		OnGrant: o.Audit, Now: o.Clock.Now, Log: o.Log,
	})
	if err != nil {
		return nil, err
	}
	return &Service{clients, in, people.API{People: all, Audit: o.Audit}}, nil
}

// endAll ends what acts for a person besides sessions and keys.
func (o Options) endAll(ctx context.Context, tx *db.Tx, person string) error {
	if err := authserver.EndGrants(ctx, tx, person); err != nil {
		return err
	}
	if err := signin.EndTokens(ctx, tx, person); err != nil || o.OnBlock == nil {
		return err
	}
	return o.OnBlock(ctx, tx, person)
}

// Routes are the routes of all parts; none without a service.
func (s *Service) Routes() []principal.Route {
	if s == nil {
		return nil
	}
	return slices.Concat(s.signin.Routes(), s.Server.Routes(), s.api.Routes())
}

// People has all people; nil without a service.
func (s *Service) People() *people.Store {
	if s == nil {
		return nil
	}
	return s.api.People
}

// Providers are the providers at which people sign in, and what they gave for them.
func (s *Service) Providers() *signin.Service { return s.signin }

// Recheck asks the providers about sessions whose time it is.
func (s *Service) Recheck(ctx context.Context) error { return s.signin.Recheck(ctx) }

// Run follows changes of other processes and asks providers about sessions, until ctx ends.
func (s *Service) Run(ctx context.Context) {
	if s == nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { s.Store.Run(ctx) })
	both.Go(func() { s.signin.Run(ctx) })
	both.Wait()
}
