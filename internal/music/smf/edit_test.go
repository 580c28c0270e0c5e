package smf

import (
	"math"
	"reflect"
	"slices"
	"testing"
)

// times lists the absolute times of events.
func times(events []Event) (list []int64) {
	for _, e := range events {
		list = append(list, e.Time)
	}
	return list
}

// deltas lists the deltas of events.
func deltas(events []Event) (list []uint32) {
	for _, e := range events {
		list = append(list, e.Delta)
	}
	return list
}

func TestMerge(t *testing.T) {
	t.Parallel()
	a := Track{Events: []Event{Note(0, 0, 60, 1), Release(480, 0, 60), End(480)}}
	b := Track{Events: []Event{Note(0, 1, 40, 1), Note(240, 1, 41, 1), End(960)}}
	c := Track{Events: []Event{Note(480, 2, 50, 1)}} // not closed
	got := Merge(a, b, c).Events
	want := []Event{a.Events[0], b.Events[0], b.Events[1], a.Events[1], c.Events[0], End(960)}
	Deltas(want)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if empty := Merge().Events; len(empty) != 1 || !empty[0].Is(EndOfTrack) {
		t.Errorf("merge of nothing: %+v", empty)
	}
}

func TestTransposeClamps(t *testing.T) {
	t.Parallel()
	events := []Event{Note(0, 0, 60, 1), Release(1, 0, 120), {Kind: Aftertouch, Data1: 3}, Control(2, 0, 7, 100), Program(3, 0, 5)}
	Transpose(events, 12)
	if got, want := []uint8{events[0].Data1, events[1].Data1, events[2].Data1, events[3].Data1, events[4].Data1}, []uint8{72, 127, 15, 7, 5}; !slices.Equal(got, want) {
		t.Errorf("up: got %v, want %v", got, want)
	}
	Transpose(events, math.MinInt)
	if events[0].Data1 != 0 || events[3].Data1 != 7 {
		t.Errorf("down: got %v", events)
	}
}

func TestQuantize(t *testing.T) {
	t.Parallel()
	events := []Event{Note(7, 0, 60, 1), Release(115, 0, 60), Note(60, 0, 64, 1), Release(250, 0, 64), End(259)}
	Quantize(events, 120)
	if got, want := times(events), []int64{0, 120, 120, 240, 240}; !slices.Equal(got, want) {
		t.Errorf("times: got %v, want %v", got, want)
	}
	if got, want := deltas(events), []uint32{0, 120, 0, 120, 0}; !slices.Equal(got, want) {
		t.Errorf("deltas: got %v, want %v", got, want)
	}
	before := slices.Clone(events)
	Quantize(events, 0)
	if !reflect.DeepEqual(events, before) {
		t.Error("a grid of 0 changed something")
	}
}

func TestQuantizeKeepsShortNotes(t *testing.T) {
	t.Parallel()
	events := []Event{Note(0, 0, 60, 1), Release(30, 0, 60), Note(118, 0, 60, 1), Release(130, 0, 60), End(130)}
	Quantize(events, 120)
	want := []Event{Note(0, 0, 60, 1), Release(120, 0, 60), Note(120, 0, 60, 1), Release(240, 0, 60), End(240)}
	Deltas(want)
	if !reflect.DeepEqual(events, want) {
		t.Errorf("got  %+v\nwant %+v", events, want)
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	events := []Event{Note(0, 0, 60, 1), Control(10, 0, 7, 1), Release(20, 0, 60)}
	got := Filter(events, func(e Event) bool { return e.Kind != ControlChange })
	if !slices.Equal(times(got), []int64{0, 20}) || !slices.Equal(deltas(got), []uint32{0, 20}) {
		t.Errorf("got %+v", got)
	}
}

func TestTimesAndDeltas(t *testing.T) {
	t.Parallel()
	events := []Event{{Delta: 5}, {Delta: 0}, {Delta: 10}}
	Times(events)
	if want := []int64{5, 5, 15}; !slices.Equal(times(events), want) {
		t.Errorf("got %v, want %v", times(events), want)
	}
	Deltas(events)
	if want := []uint32{5, 0, 10}; !slices.Equal(deltas(events), want) {
		t.Errorf("got %v, want %v", deltas(events), want)
	}
}

func TestBendGoesBothWays(t *testing.T) {
	t.Parallel()
	for _, value := range []int{-8192, -1, 0, 1, 8191} {
		if got := Bend(0, 0, value).Bend(); got != value {
			t.Errorf("got %d, want %d", got, value)
		}
	}
	if got := Bend(0, 0, 99999).Bend(); got != 8191 {
		t.Errorf("got %d, want 8191", got)
	}
}
