package server

import (
	"slices"
	"testing"
	"testing/synctest"
)

// say is a word of a node that told so many events before, and these now.
func say(id string, before, now int) *relayed {
	return &relayed{Node: id[:1], ID: id, Before: uint64(before), Events: make([]relayedEvent, now)}
}

// number is what a node answers to who asked how many events it told.
func number(id string, before int) *relayed {
	answer := say(id, before, 0)
	answer.To = "me"
	return answer
}

func (d *heard) wants(t *testing.T, told *relayed, missing uint64, left int) {
	t.Helper()
	what := *told
	if got := d.count(told); got != missing || len(told.Events) != left {
		t.Errorf("of %+v: %d missing and %d new events, want %d and %d", what, got, len(told.Events), missing, left)
	}
}

// What a node told before we first listened is not missing, whichever word of it is
// heard first.
func TestWhatWasToldBeforeIsNotMissing(t *testing.T) {
	t.Parallel()
	var d heard
	d.doubt(false)
	d.wants(t, say("b1", 7, 2), 0, 2)
	d.wants(t, number("b1", 9), 0, 0)
	d.wants(t, number("c1", 5), 0, 0)
	d.wants(t, say("c1", 5, 1), 0, 1)
}

// A node that began to tell while we were deaf told from one: whichever word of it is
// heard first, what came before is missing.
func TestANodeThatIsMetAfterAGapTellsWhatIsMissing(t *testing.T) {
	t.Parallel()
	var d heard
	d.doubt(false)
	d.doubt(true)
	d.wants(t, say("b1", 7, 2), 7, 2)
	d.wants(t, number("b1", 9), 0, 0)
	d.wants(t, number("c1", 5), 5, 0)
	d.wants(t, say("d1", 0, 3), 0, 3)
}

// A node that does not answer, twice, and comes back has told things meanwhile.
func TestANodeThatWasSilentIsStillKnown(t *testing.T) {
	t.Parallel()
	var d heard
	d.doubt(false)
	d.wants(t, say("b1", 10, 1), 0, 1)
	d.doubt(true)
	if names := d.silent(); !slices.Equal(names, []string{"b"}) {
		t.Errorf("silent are %v", names)
	}
	d.doubt(true)
	if names := d.silent(); len(names) != 0 {
		t.Errorf("again silent are %v", names)
	}
	d.wants(t, say("b1", 15, 1), 4, 1)
	d.doubt(true)
	d.silent()
	d.wants(t, say("b2", 0, 1), 0, 1) // it was restarted, and the one before is not waited for
	if len(d.tellers) != 1 {
		t.Errorf("%d nodes are known", len(d.tellers))
	}
}

// Who was let in before other nodes were heard is told what was missed. The tests of
// nodes see that doors open when they are.
func TestDoorsOpenBeforeOthersAreHeard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var h Server
		h.heard.begun = make(chan struct{})
		h.hearBeforeOpening(t.Context())
		again := h.heard.tuned.Swap(true) // as when others are heard at last
		h.heard.doubt(again)
		h.heard.wants(t, number("b1", 3), 3, 0)
	})
}
