package eventrelay

import (
	"slices"
	"testing"
	"testing/synctest"
)

// batch returns a message of a node that sent before events earlier, and now more.
func batch(id string, before, now int) *message {
	return &message{Node: id[:1], ID: id, Before: uint64(before), Events: make([]relayedEvent, now)}
}

// count is a node's reply to a node that asked for its count.
func count(id string, before int) *message {
	reply := batch(id, before, 0)
	reply.To = "me"
	return reply
}

func (c *counts) want(t *testing.T, m *message, missing uint64, left int) {
	t.Helper()
	what := *m
	if got := c.update(m); got != missing || len(m.Events) != left {
		t.Errorf("of %+v: %d missing and %d new events, want %d and %d", what, got, len(m.Events), missing, left)
	}
}

// Events that a node sent before this one listened are not missing.
func TestEarlierEventsAreNotMissing(t *testing.T) {
	t.Parallel()
	var c counts
	c.doubt(false)
	c.want(t, batch("b1", 7, 2), 0, 2)
	c.want(t, count("b1", 9), 0, 0)
	c.want(t, count("c1", 5), 0, 0)
	c.want(t, batch("c1", 5, 1), 0, 1)
}

// A node whose first message arrives after a gap sent its first events in the gap.
func TestEventsInAGapAreMissing(t *testing.T) {
	t.Parallel()
	var c counts
	c.doubt(false)
	c.doubt(true)
	c.want(t, batch("b1", 7, 2), 7, 2)
	c.want(t, count("b1", 9), 0, 0)
	c.want(t, count("c1", 5), 5, 0)
	c.want(t, batch("d1", 0, 3), 0, 3)
}

// The count of a node that does not reply is stored until it sends again or restarts.
func TestSilentNodeIsStillKnown(t *testing.T) {
	t.Parallel()
	var c counts
	c.doubt(false)
	c.want(t, batch("b1", 10, 1), 0, 1)
	c.doubt(true)
	if names := c.silent(); !slices.Equal(names, []string{"b"}) {
		t.Errorf("silent are %v", names)
	}
	c.doubt(true)
	if names := c.silent(); len(names) != 0 {
		t.Errorf("again silent are %v", names)
	}
	c.want(t, batch("b1", 15, 1), 4, 1)
	c.doubt(true)
	c.silent()
	c.want(t, batch("b2", 0, 1), 0, 1) // it was restarted
	if len(c.senders) != 1 {
		t.Errorf("%d nodes are known", len(c.senders))
	}
}

// If Ready times out, events that other nodes sent before the first notification count
// as missing.
func TestReadyTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{})
		r.Ready(t.Context())
		again := r.receiving.Swap(true) // as receive does at the first notification
		r.counts.doubt(again)
		r.counts.want(t, count("b1", 3), 3, 0)
	})
}
