package synth

import (
	"cmp"
	"math"
	"slices"

	"github.com/luanette/luanette/internal/music/smf"
)

// event is an event for the synthesizer, at a time in seconds.
type event struct {
	smf.Event
	at float64
}

// timed returns the events of a file by time, and its length. The tracks of a format 2
// file follow one another.
func timed(music *smf.File) (events []event, seconds float64) {
	if music.Format != 2 {
		return together(music.Division, music.Tracks, 0)
	}
	for i := range music.Tracks {
		more, end := together(music.Division, music.Tracks[i:i+1], seconds)
		events, seconds = append(events, more...), end
	}
	return events, seconds
}

// together returns the events of simultaneous tracks that start at a time.
func together(division smf.Division, tracks []smf.Track, start float64) (events []event, end float64) {
	tempo := smf.TempoMapOf(division, tracks...)
	end = start
	for _, t := range tracks {
		end = math.Max(end, start+tempo.Seconds(t.End()))
		for _, e := range t.Events {
			if e.Kind.OnChannel() || e.Kind == smf.SysEx {
				events = append(events, event{e, start + tempo.Seconds(e.Time)})
			}
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return events, end
}
