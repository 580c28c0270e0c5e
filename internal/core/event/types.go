package event

import (
	"slices"
	"strings"
)

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
	"upstream.lost", "upstream.needs_auth", "upstream.reconnecting", "upstream.removed", "upstream.slow_start", "upstream.stderr",
	"upstream.tools_refreshed",
	"webhook.received", "webhook.refused",
}

// forAll are the types, and families of types, that concern everybody if the program itself
// publishes them: which tools and servers there are, and what plays. Everything else that
// has no owner is for those who see everything, so that a new type is hidden until it is
// listed here.
var forAll = []string{
	"backend.", "beat.", "catalog.", "config.update", "event.missed", "marker.", "node.", "pin.decided", "region.", "script.invalidate", "script.published",
	"tool.changed", "tool.flagged", "tool.held", "tool.shadowed", "transport.",
	"upstream.asleep", "upstream.connected", "upstream.connecting", "upstream.failed", "upstream.lost", "upstream.needs_auth",
	"upstream.reconnecting", "upstream.removed", "upstream.slow_start", "upstream.tools_refreshed",
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
