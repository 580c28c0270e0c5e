package upstreamset

import (
	"cmp"
	"context"
	"fmt"
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
