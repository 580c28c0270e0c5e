package login

import (
	"context"
	"log/slog"
	"net/url"
	"sync"

	"github.com/luanette/luanette/internal/access/oauth"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
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
	Audit       func(ctx context.Context, action, subject string, detail []byte)
	Go          func(func(context.Context)) // runs a function in the background until the server closes
	Log         *slog.Logger
}

// Service performs logins for the HTTP API of a running server.
type Service struct {
	upstreams *Upstreams
	options   ServiceOptions

	mu   sync.Mutex
	seen map[string]int64 // versions of logins that connections were retried with, by upstream
}

// NewService returns a service over the logins of a database.
func NewService(upstreams *Upstreams, options ServiceOptions) *Service {
	return &Service{upstreams: upstreams, options: options, seen: map[string]int64{}}
}

func (s *Service) spec(name string) (upstream.Spec, error) {
	status, ok := s.options.Manager.Status(name)
	if !ok || s.options.Hidden(name) {
		return upstream.Spec{}, fault.New(fault.NotFound, "no upstream %q", name).
			WithHint("`luanette upstream list` names them")
	}
	return status.Desired, nil
}

// Begin implements Logins.
func (s *Service) Begin(ctx context.Context, name string, how Method) (oauth.Begun, error) {
	spec, err := s.spec(name)
	if err != nil {
		return oauth.Begun{}, err
	}
	begun, wait, err := s.upstreams.Start(ctx, spec, how.Device, oauth.Return{URL: s.options.RedirectURL(), Bound: how.Bound})
	if err != nil || wait == nil {
		return begun, err
	}
	who := principal.Of(ctx)
	s.options.Go(func(ctx context.Context) { // the wait outlives the request
		ctx = principal.With(ctx, who)
		if err := wait(ctx); err != nil {
			s.options.Log.WarnContext(ctx, "not logged in", "upstream", name, "error", err)
			return
		}
		s.finished(ctx, name)
	})
	return begun, nil
}

// Finish implements Logins.
func (s *Service) Finish(ctx context.Context, query url.Values) (string, error) {
	name, err := s.upstreams.Finish(ctx, query)
	if err == nil {
		s.finished(ctx, name)
	}
	return name, err
}

func (s *Service) finished(ctx context.Context, name string) {
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
// has stored one since the last check: the command line, or another node.
func (s *Service) Check(ctx context.Context) error {
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
