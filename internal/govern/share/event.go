package share

import (
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
)

// Subject is the share that an event is about.
type Subject struct {
	ID     string         `json:"id"`
	Kind   principal.Kind `json:"kind"`
	Thing  string         `json:"thing"`
	To     string         `json:"to"`
	ToName string         `json:"to_name"`
	Owner  string         `json:"owner"`
}

func about(s Share) Subject { return Subject{s.ID, s.Kind, s.Thing, s.To, s.ToName, s.Owner} }

// EventKey is the share's id.
func (s Subject) EventKey() string { return s.ID }

// Created is published after something was shared, or a share was changed.
type Created struct {
	Subject
	May principal.Level `json:"may"`
}

// EventType is "share.created".
func (Created) EventType() string { return "share.created" }

// Removed is published after a share was removed.
type Removed struct{ Subject }

// EventType is "share.removed".
func (Removed) EventType() string { return "share.removed" }

// publish publishes an event for the owner, and for the recipient if that is a person.
func (s *Store) publish(one Share, p event.Payload) {
	if s.options.Events == nil {
		return
	}
	s.options.Events.PublishFor(principal.Owner{ID: one.owner, Org: one.org}, p)
	if person, _, ok := principal.SplitPersonID(one.To); ok {
		s.options.Events.PublishFor(principal.Owner{ID: principal.PersonID(person, one.org), Org: one.org}, p)
	}
}
