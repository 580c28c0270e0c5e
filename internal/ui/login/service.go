package login

import (
	"context"
	"log/slog"
	"net/url"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// Manager is the part of the connection manager that logins need.
type Manager interface {
	Status(name string) (upstream.Status, bool)
	List() []upstream.Status
	Retry(name string)
}

// ServiceOptions are the parts that a Service connects.
type ServiceOptions struct {
	Manager     Manager
	Hidden      func(upstream string) bool // upstreams that cannot be logged in to through the API
	RedirectURL func() string
	// Session returns who uses a browser, by its cookie; nil: people cannot sign in.
	Session func(ctx context.Context, cookie string) (principal.Principal, error)
	Audit   func(ctx context.Context, action, subject string, detail []byte)
	Go      func(func(context.Context)) // runs a function in the background until the server closes
	Log     *slog.Logger
}

// Service performs logins for the HTTP API of a running server.
type Service struct {
	upstreams *Upstreams
	options   ServiceOptions

	mu      sync.Mutex
	seen    map[string]int64 // versions of logins that connections were retried with, by upstream
	changed chan struct{}    // closed when logins may have changed
}

// NewService returns a service over the logins of a database.
func NewService(upstreams *Upstreams, options ServiceOptions) *Service {
	return &Service{upstreams: upstreams, options: options, seen: map[string]int64{}, changed: make(chan struct{})}
}

func (s *Service) spec(name string) (upstream.Spec, error) {
	status, ok := s.options.Manager.Status(name)
	if !ok || s.options.Hidden(name) {
		return upstream.Spec{}, errNoUpstream(name)
	}
	return status.Desired, nil
}

func errNoUpstream(name string) error {
	return fault.New(fault.NotFound, "no upstream %q", name).WithHint("`luanette upstream list` names them")
}

// Begin implements Logins.
func (s *Service) Begin(ctx context.Context, name string, how Method) (oauth.Begun, error) {
	spec, err := s.spec(name)
	if err != nil {
		return oauth.Begun{}, err
	}
	return s.start(ctx, spec, how.Device, oauth.Return{URL: s.options.RedirectURL(), Bound: how.Bound})
}

// start begins a login, and waits in the background for one with a device code.
func (s *Service) start(ctx context.Context, spec upstream.Spec, device bool, back oauth.Return) (oauth.Begun, error) {
	begun, wait, err := s.upstreams.Start(ctx, spec, device, back)
	if err != nil || wait == nil {
		return begun, err
	}
	who := principal.Of(ctx)
	s.options.Go(func(ctx context.Context) { // the wait outlives the request
		ctx = principal.With(ctx, who)
		if err := wait(ctx); err != nil {
			s.options.Log.WarnContext(ctx, "not logged in", "upstream", spec.Name, "error", err)
			return
		}
		s.finished(ctx, spec.Name, spec.Owner)
	})
	return begun, nil
}

// Finish implements Logins.
func (s *Service) Finish(ctx context.Context, query url.Values) (string, error) {
	name, err := s.upstreams.Finish(ctx, query)
	if err == nil {
		s.finished(ctx, name, "")
	}
	return name, err
}

// finished connects the upstream with a new login. Connections of single people look for
// theirs with every call.
func (s *Service) finished(ctx context.Context, name, owner string) {
	s.loginsChanged()
	if owner != "" {
		s.options.Audit(ctx, "upstream.login", name, ownerDetail(owner))
		return
	}
	s.options.Audit(ctx, "upstream.login", name, nil)
	s.options.Manager.Retry(name)
}

// Status implements Logins.
func (s *Service) Status(ctx context.Context, name string) (oauth.Status, error) {
	spec, err := s.spec(name)
	if err != nil {
		return oauth.Status{}, err
	}
	return s.upstreams.StatusOf(ctx, spec)
}

// Logout implements Logins.
func (s *Service) Logout(ctx context.Context, name string) (bool, error) {
	if _, err := s.spec(name); err != nil {
		return false, err
	}
	s.options.Audit(ctx, "upstream.logout", name, nil)
	return s.upstreams.Logout(ctx, name)
}

// Document implements Logins.
func (s *Service) Document() any {
	if s.upstreams.options.MetadataURL == "" {
		return nil
	}
	return s.upstreams.options.Document([]string{s.options.RedirectURL()})
}

// Check retries the upstreams that wait for a login and for which another process
// has stored one since the last check: the command line, or another node. Logins that
// another process has ended are not used any more.
func (s *Service) Check(ctx context.Context) error {
	s.upstreams.Reload()
	s.loginsChanged()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, status := range s.options.Manager.List() {
		if status.State != upstream.StateNeedsAuth {
			continue
		}
		login, err := s.upstreams.StatusOf(ctx, status.Desired)
		if err != nil {
			return err
		}
		if login.LoggedIn && login.Version != s.seen[status.Name] {
			s.seen[status.Name] = login.Version
			s.options.Manager.Retry(status.Name)
		}
	}
	return nil
}

var _ Logins = (*Service)(nil)
