package script

import (
	"context"

	"github.com/luanette/luanette/internal/core/principal"
)

// The events of sessions. The id of a session gives access to it, so events have only
// its first characters.

// SessionEvent is published when a session changes.
type SessionEvent struct {
	kind     string
	Session  string `json:"session"`
	Owner    string `json:"owner,omitempty"`
	Name     string `json:"name,omitempty"`
	Language string `json:"language,omitempty"`
	Turns    int64  `json:"turns"`
	Failed   bool   `json:"failed,omitempty"` // the turn failed
}

// EventType is "session.created", "session.forked", "session.used",
// "session.reset" or "session.closed".
func (n SessionEvent) EventType() string { return "session." + n.kind }

// EventKey is the beginning of the session's id.
func (n SessionEvent) EventKey() string { return n.Session }

// shownID is the number of characters of an id in events.
const shownID = 8

// publish publishes an event of a session.
func (s *Sessions) publish(ctx context.Context, kind string, about Session, failed bool) {
	s.options.Events.PublishFor(principal.OwnerOf(ctx), SessionEvent{
		kind: kind, Session: about.ID[:min(shownID, len(about.ID))], Owner: about.Owner, Name: about.Name,
		Language: about.Language, Turns: about.Runs, Failed: failed,
	})
}
