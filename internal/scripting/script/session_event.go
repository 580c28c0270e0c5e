package script

// The events of sessions. A session's id is the key to it, so only its beginning
// is told, enough to tell sessions apart.

// SessionEvent is what happened to a session.
type SessionEvent struct {
	kind     string
	Session  string `json:"session"`
	Owner    string `json:"owner,omitempty"`
	Name     string `json:"name,omitempty"`
	Language string `json:"language,omitempty"`
	Turns    int64  `json:"turns"`
	Failed   bool   `json:"failed,omitempty"` // the turn
}

// EventType is "session.created", "session.forked", "session.used",
// "session.reset" or "session.closed".
func (n SessionEvent) EventType() string { return "session." + n.kind }

// EventKey is the beginning of its id.
func (n SessionEvent) EventKey() string { return n.Session }

// shownID is how much of an id is told.
const shownID = 8

// tell publishes what happened to a session.
func (s *Sessions) tell(kind string, about Session, failed bool) {
	s.options.Events.Publish(SessionEvent{
		kind: kind, Session: about.ID[:min(shownID, len(about.ID))], Owner: about.Owner, Name: about.Name,
		Language: about.Language, Turns: about.Turns, Failed: failed,
	})
}
