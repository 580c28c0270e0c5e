package upstreamset

import (
	"cmp"
	"context"
	"fmt"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// For returns the status as the principal of ctx sees it: if each has a connection of its
// own, that one's state, and whether it needs a login.
func (s Status) For(ctx context.Context) Status {
	if s.manager == nil {
		return s
	}
	own, ok := s.manager.PersonStatus(ctx, s.Namespace)
	if !ok {
		return s
	}
	s.State, s.Since, s.LastLine, s.Stale = string(own.State), own.Since, own.LastLine, own.Stale
	s.Error, s.Attempt, s.NextTry, s.Tools = own.LastError, own.Attempt, own.NextTry, own.Tools
	s.Hint = cmp.Or(own.Hint, fmt.Sprintf("everybody has a connection of their own; %d are connected", s.People))
	return s
}

// Hides returns which tools are not listed for a principal: those that also hides, and those
// that only others have at an upstream where each has a connection of its own. nil: none.
func (u *Set) Hides(who principal.Principal, also func(*tool.Info) bool) func(*tool.Info) bool {
	if u == nil {
		return also
	}
	others := u.Manager.Hides(who)
	if others == nil {
		return also
	}
	return func(info *tool.Info) bool {
		if also != nil && also(info) {
			return true
		}
		ref := info.Ref
		if name, err := u.Overlay.OriginalName(context.Background(), ref); err == nil { // from memory
			ref.Name = name
		}
		return others(ref)
	}
}
