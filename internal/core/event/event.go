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
	"encoding/json"
	"slices"
	"strings"
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
	// How many events are missing: exact if the reader was too slow; of all types if the
	// reader asked for events older than the bus stores; 0 if that is not known.
	Count uint64 `json:"count"`
}

// EventType is "event.missed".
func (Missed) EventType() string { return "event.missed" }

// types are all types of events that the server publishes, in order.
var types = []string{
	"approval.agreed", "approval.requested", "approval.settled",
	"artifact.created",
	"artifact.deleted",
	"beat.tick",
	"catalog.changed",
	"chat.turn_ended", "chat.turn_finished", "chat.turn_started",
	"config.update",
	"event.missed",
	"hook.failed",
	"job.finished", "job.needs_auth", "job.paused", "job.progress", "job.started", "job.state_changed", "job.submitted",
	"key.created", "key.revoked",
	"log.line",
	"marker.reached",
	"node.gone", "node.joined",
	"pin.decided",
	"region.entered", "region.left",
	"sandbox.connection", "sandbox.connection_refused", "sandbox.refused",
	"script.invalidate", "script.published",
	"session.closed", "session.created", "session.forked", "session.reset", "session.used",
	"share.created", "share.removed",
	"tool.call_ended", "tool.call_started", "tool.changed", "tool.flagged", "tool.held", "tool.shadowed",
	"transport.state_changed",
	"upstream.asleep", "upstream.connected", "upstream.connecting", "upstream.dropped", "upstream.failed", "upstream.garbage",
	"upstream.installed", "upstream.installing", "upstream.lists_refreshed", "upstream.lost", "upstream.needs_auth", "upstream.reconnecting", "upstream.removed", "upstream.slow_start", "upstream.stderr",
	"upstream.tools_refreshed", "upstream.upgraded",
	"webhook.received", "webhook.refused",
}

// forAll are the types, and families of types, that concern everybody if the program itself
// publishes them: which tools and servers there are, and what plays. Everything else that
// has no owner is for those who see everything, so that a new type is hidden until it is
// listed here.
var forAll = []string{
	"backend.", "beat.", "catalog.", "config.update", "event.missed", "marker.", "node.", "pin.decided", "region.", "script.invalidate", "script.published",
	"tool.changed", "tool.flagged", "tool.held", "tool.shadowed", "transport.",
	"upstream.asleep", "upstream.connected", "upstream.connecting", "upstream.failed", "upstream.installed", "upstream.installing", "upstream.lists_refreshed", "upstream.lost", "upstream.needs_auth",
	"upstream.reconnecting", "upstream.removed", "upstream.slow_start", "upstream.tools_refreshed", "upstream.upgraded",
}

// concernsAll reports whether events of a type, without an owner, are for everybody.
func concernsAll(kind string) bool {
	return slices.ContainsFunc(forAll, func(t string) bool { return t == kind || strings.HasSuffix(t, ".") && strings.HasPrefix(kind, t) })
}

// openFamilies begin types that scripts and backends choose.
var openFamilies = []string{"script.", "backend."}

// Types returns all types of events that the server publishes by itself, sorted.
func Types() []string { return slices.Clone(types) }

// Exists reports whether events of a type, or with a prefix ("upstream.*"), can be
// published.
func Exists(pattern string) bool {
	for _, family := range openFamilies {
		if strings.HasPrefix(pattern, family) {
			return true
		}
	}
	prefix, isPrefix := strings.CutSuffix(pattern, "*")
	if !isPrefix {
		return slices.Contains(types, pattern)
	}
	matches := func(kind string) bool { return strings.HasPrefix(kind, prefix) }
	return slices.ContainsFunc(types, matches) || slices.ContainsFunc(openFamilies, matches)
}
