package smf

import (
	"cmp"
	"slices"
)

// byTime orders events by time alone, for stable sorts.
func byTime(a, b Event) int { return cmp.Compare(a.Time, b.Time) }

// Merge merges tracks into one, by absolute time; events of the same tick
// stay in the order of their tracks. The one end_of_track is the latest.
// It does not modify the tracks.
func Merge(tracks ...Track) Track {
	var end int64
	parts := make([][]Event, 0, len(tracks))
	for _, t := range tracks {
		end = max(end, t.End())
		part := slices.DeleteFunc(slices.Clone(t.Events), func(e Event) bool { return e.Is(EndOfTrack) })
		if !slices.IsSortedFunc(part, byTime) {
			slices.SortStableFunc(part, byTime)
		}
		parts = append(parts, part)
	}
	events := append(mergeAll(parts), End(end))
	Deltas(events)
	return Track{Events: events}
}

// mergeAll merges sorted lists pair by pair.
func mergeAll(parts [][]Event) []Event {
	switch len(parts) {
	case 0:
		return nil
	case 1:
		return parts[0]
	}
	half := len(parts) / 2
	a, b := mergeAll(parts[:half]), mergeAll(parts[half:])
	out := make([]Event, 0, len(a)+len(b)+1)
	for len(a) > 0 && len(b) > 0 {
		if a[0].Time <= b[0].Time {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// Transpose moves every note, in place, by semitones; notes that would leave
// 0–127 stop at its edge.
func Transpose(events []Event, semitones int) {
	semitones = min(max(semitones, -127), 127)
	for i := range events {
		if e := &events[i]; e.pitched() {
			e.Data1 = uint8(min(max(int(e.Data1)+semitones, 0), 127))
		}
	}
}

// Quantize moves every event, in place, to the nearest multiple of grid ticks;
// halfway goes up, a grid of 0 or less changes nothing. A note that would
// vanish because both its ends fall on one tick lasts one grid step instead;
// the events are in order of time afterwards.
func Quantize(events []Event, grid int64) {
	if grid <= 0 {
		return
	}
	slices.SortStableFunc(events, byTime)
	type key struct{ channel, note uint8 }
	type start struct{ was, is int64 }
	sounding := map[key]start{}
	moved := false
	var latest int64
	for i := range events {
		e := &events[i]
		was := e.Time
		e.Time = (was + grid/2) / grid * grid
		k := key{e.Channel, e.Data1}
		switch on, ok := sounding[k]; {
		case e.Starts():
			sounding[k] = start{was, e.Time}
		case e.Stops() && ok:
			if on.was < was && on.is == e.Time {
				e.Time += grid
				moved = true
			}
			delete(sounding, k)
		case e.Is(EndOfTrack):
			e.Time = max(e.Time, latest)
		}
		latest = max(latest, e.Time)
	}
	if moved {
		slices.SortStableFunc(events, byTime)
	}
	Deltas(events)
}

// Filter returns the events for which keep returns true, with unchanged times and
// new deltas. It does not modify the given events.
func Filter(events []Event, keep func(Event) bool) []Event {
	var filtered []Event
	for _, e := range events {
		if keep(e) {
			filtered = append(filtered, e)
		}
	}
	Deltas(filtered)
	return filtered
}
