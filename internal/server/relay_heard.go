package server

import (
	"sync"
	"sync/atomic"
	"time"
)

// heard is how many events each node has told, this one included.
type heard struct {
	own   atomic.Uint64 // told by this node
	tuned atomic.Bool   // something may have been heard before, or somebody looks on
	begun chan struct{} // closed when what others tell arrives for the first time

	patience time.Duration // with nodes that are asked for their number; zero: numberTime

	mu      sync.Mutex
	gapped  bool               // something may have been missed since
	tellers map[string]*teller // by id
}

// teller is another node that told of events.
type teller struct {
	name     string
	told     uint64
	doubtful bool // more may have been told
	lost     bool // and it did not say when it was asked
}

// doubt says that something may have been missed; unless again, before anything was
// heard.
func (d *heard) doubt(again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gapped = d.gapped || again
	for _, t := range d.tellers {
		t.doubtful = true
	}
}

// silent are the names of nodes that did not say how many events they told, since
// that was in doubt. One that never does any more is named once; one that does is
// still known, and what it told meanwhile is counted.
func (d *heard) silent() (names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.tellers {
		if t.doubtful && !t.lost {
			t.lost = true
			names = append(names, t.name)
		}
	}
	return names
}

// meet makes a node known of which nothing was heard before. What it told before is
// missing if something may have been missed since we listen; else it was told before
// that.
func (d *heard) meet(told *relayed) *teller {
	if d.tellers == nil {
		d.tellers = map[string]*teller{}
	}
	for id, t := range d.tellers {
		if t.lost && t.name == told.Node { // it is its successor
			delete(d.tellers, id)
		}
	}
	t := &teller{name: told.Node}
	if !d.gapped {
		t.told = told.Before
	}
	d.tellers[told.ID] = t
	return t
}

// count takes out of a batch what was heard before, and tells how many events were
// told between that and the batch.
func (d *heard) count(told *relayed) (missing uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tellers[told.ID]
	if t == nil {
		t = d.meet(told)
	}
	t.doubtful, t.lost = false, false
	before, after := t.told, told.Before+uint64(len(told.Events))
	switch {
	case told.Before > before:
		missing = told.Before - before
	case after <= before:
		told.Events = nil
		return 0
	default:
		told.Events = told.Events[before-told.Before:]
	}
	t.told = after
	return missing
}
