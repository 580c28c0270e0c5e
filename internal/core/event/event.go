// Package event is a typed bus for what happens in the program. Packages publish
// small structs; logs, the HUD, notifications and waiting calls subscribe.
//
// Publishing never waits for subscribers, and all subscribers see events in the order
// of their sequence numbers. Each subscription chooses one of two modes:
//
//   - Every (must-deliver-bounded): each event in order, up to Options.Buffer
//     unread ones. Past that bound the oldest unread are dropped, and in their
//     place stands one Missed event that says how many there were.
//   - Latest (latest-wins): of the events with the same type and key only the
//     newest is held. A slow reader sees fewer events but never one that was
//     already superseded when it was read. More than Options.Buffer different
//     unread ones are dropped as above.
//
// The bus stores the most recent events, so that a reader that was disconnected can
// continue after the last sequence number it saw (Options.After).
//
// Locks: the bus's lock may be held while a subscription's is taken, never the
// other way round.
package event

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
)

// Payload is the data of an event. Its type is dotted words, the package first:
// "upstream.connected". A payload is shared by all subscribers and must not be changed
// after it was published.
type Payload interface {
	EventType() string
}

// Keyed is a payload about one of several things of a kind; the key is the name of an
// upstream or the id of a job. For Latest, events of one type with different keys do
// not replace each other. EventKey is called while locks are held, so it must only
// return a field.
type Keyed interface {
	Payload
	EventKey() string
}

// Event is a published payload with its sequence number.
type Event struct {
	Seq  uint64    `json:"seq"` // 1, 2, 3 … over the life of the bus
	Time time.Time `json:"time"`
	Type string    `json:"type"`
	Data any       `json:"data"` // the published Payload
	// Node is the node where it happened, if that is another one.
	Node string `json:"node,omitempty"`
	// Owner is whose it is. The zero Owner is the program; an Owner that is only an
	// organisation is the program, about what that organisation has.
	Owner principal.Owner `json:"-"`
	// Readers are the IDs of people who see it besides: those who must do something about it.
	Readers []string `json:"-"`
}

// VisibleTo reports whether a principal may see the event: if it may see what belongs to
// the owner, if it is one of the readers or a key of one, or if the event is of a type that
// concerns everybody.
func (e *Event) VisibleTo(who principal.Principal) bool {
	about := e.Owner.Org
	if e.Owner == (principal.Owner{Org: about}) && (about == "" || about == who.ActingOrg()) && concernsAll(e.Type) || who.Sees(e.Owner) {
		return true
	}
	return who.Person == "" && slices.Contains(e.Readers, who.ID)
}

// Remote is a payload that another node published, as it was received.
type Remote struct {
	Type    string
	Key     string
	Data    json.RawMessage
	Owner   principal.Owner
	Readers []string
}

// EventType returns the type of the payload.
func (r Remote) EventType() string { return r.Type }

// EventKey returns the key of the payload.
func (r Remote) EventKey() string { return r.Key }

// MarshalJSON returns the payload as its node wrote it.
func (r Remote) MarshalJSON() ([]byte, error) { return r.Data, nil }

// Missed replaces events that a subscription dropped. Its event has the sequence
// number of the newest of them.
type Missed struct {
	// Count is how many events are missing. It is exact if the reader was too slow. If
	// the reader asked for events older than the bus stores, it counts those of all
	// types. Zero means unknown, because After was not a number of this bus.
	Count uint64 `json:"count"`
}

// EventType is "event.missed".
func (Missed) EventType() string { return "event.missed" }

// On iterates over the events of sub whose payload is a T, with the payload in its own
// type, until sub or ctx ends. Other events, Missed included, are skipped.
//
//	for e, up := range event.On[upstream.Connected](ctx, sub) { … }
func On[T Payload](ctx context.Context, sub *Subscription) iter.Seq2[Event, T] {
	return func(yield func(Event, T) bool) {
		for e := range sub.All(ctx) {
			if data, ok := e.Data.(T); ok && !yield(e, data) {
				return
			}
		}
	}
}
