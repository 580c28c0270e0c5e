package hub

import (
	"context"
	"fmt"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// audience is clients that are shown the same lists: those of one principal with one menu.
type audience struct {
	audienceKey
	who principal.Principal
}

type audienceKey struct {
	viewer string // all of the principal that decides what it sees
	menu   string
}

func audienceOf(ctx context.Context, menu string) *audience {
	who := principal.Of(ctx)
	return &audience{audienceKey{viewerOf(who), menu}, who}
}

// viewerOf identifies a principal with its rights.
func viewerOf(who principal.Principal) string {
	return fmt.Sprintf("%q %q %q %q %q %q %q", who.ID, who.Org, who.Person, who.Grant, who.Scopes, who.Namespaces, who.Tools)
}

// in is a context in which the audience asks for a list.
func (a *audience) in(ctx context.Context) context.Context {
	return principal.With(tool.WithMenu(ctx, a.menu), a.who)
}

// audiences are those of the sessions and listeners; viewers also those of sessions that are
// not ready yet.
func (e *endpoint) audiences() (all map[audienceKey]*audience, viewers map[string]bool) {
	all, viewers = map[audienceKey]*audience{}, map[string]bool{}
	for _, s := range e.sessions.list() {
		viewers[s.viewer.Load().viewer] = true
		if s.ready.Load() {
			a := s.audience()
			all[a.audienceKey] = a
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for l := range e.listeners {
		all[l.audience.audienceKey], viewers[l.audience.viewer] = l.audience, true
	}
	return all, viewers
}

// identify notes whose session it is, and with which rights, which may have changed since
// it began.
func (s *session) identify(ctx context.Context) { s.viewer.Store(audienceOf(ctx, "")) }

// audience is the one that the session belongs to.
func (s *session) audience() *audience {
	a := *s.viewer.Load()
	a.menu = s.menu
	return &a
}
