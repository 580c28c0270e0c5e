package smf

import (
	"math"
	"reflect"
	"testing"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestInfo(t *testing.T) {
	t.Parallel()
	f := &File{Format: 1, Division: Division{TicksPerBeat: 100}, Tracks: []Track{
		{Events: []Event{SetTempo(0, 1_000_000), SetMeter(0, 6, 8), SetKey(0, -2, true), SetTempo(200, 250_000), End(200)}},
		{Events: []Event{TextEvent(0, TrackName, "lead"), Note(0, 3, 60, 1), Note(100, 3, 60, 0), Note(100, 9, 35, 1), Release(400, 9, 35), End(400)}},
	}}
	want := Info{
		Format: 1, TrackCount: 2, TicksPerBeat: 100, TempoBPM: 60, TimeSignature: "6/8", KeySignature: "G minor",
		TempoChanges:    []TempoChange{{0, 0, 60}, {200, 2, 240}},
		DurationSeconds: 2.5, DurationTicks: 400, NoteCount: 2, Channels: []int{3, 9}, TrackNames: []string{"lead"},
	}
	if got := f.Info(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestInfoOfAnEmptyFile(t *testing.T) {
	t.Parallel()
	want := Info{TicksPerBeat: 480, TempoBPM: 120, TimeSignature: "4/4", TempoChanges: []TempoChange{}, Channels: []int{}}
	if got := (&File{}).Info(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestInfoOfIndependentTracks(t *testing.T) {
	t.Parallel()
	f := &File{Format: 2, Division: Division{TicksPerBeat: 100}, Tracks: []Track{
		{Events: []Event{SetTempo(0, 1_000_000), End(100)}},
		{Events: []Event{SetTempo(100, 250_000), End(200)}},
	}}
	got := f.Info()
	if !near(got.DurationSeconds, 1+0.5+0.25) || got.DurationTicks != 300 {
		t.Errorf("got %v s, %d ticks", got.DurationSeconds, got.DurationTicks)
	}
	if want := []TempoChange{{0, 0, 60}, {200, 1.5, 240}}; !reflect.DeepEqual(got.TempoChanges, want) {
		t.Errorf("got %v, want %v", got.TempoChanges, want)
	}
}

func TestTempoMap(t *testing.T) {
	t.Parallel()
	f := &File{Tracks: []Track{{Events: []Event{SetTempo(480, 1_000_000), SetTempo(960, 250_000)}}}}
	m := TempoMapOf(f.Division, f.Tracks...)
	for tick, seconds := range map[int64]float64{0: 0, 240: .25, 480: .5, 720: 1, 960: 1.5, 1440: 1.75} {
		if got := m.Seconds(tick); !near(got, seconds) {
			t.Errorf("tick %d: got %v s, want %v", tick, got, seconds)
		}
	}
}

func TestSMPTETimeIgnoresTempo(t *testing.T) {
	t.Parallel()
	for frames, seconds := range map[uint8]float64{25: 40, 30: 1000. / 30, 29: 1001. / 30} {
		f := &File{Division: Division{FramesPerSecond: frames, TicksPerFrame: 40},
			Tracks: []Track{{Events: []Event{SetTempo(0, 1), End(40_000)}}}}
		if got := f.Info().DurationSeconds; !near(got, seconds) {
			t.Errorf("%d frames: got %v s, want %v", frames, got, seconds)
		}
	}
}

func TestKeyName(t *testing.T) {
	t.Parallel()
	tests := []struct {
		sharps int
		minor  bool
		want   string
	}{
		{0, false, "C major"}, {0, true, "A minor"}, {-1, false, "F major"}, {-2, false, "Bb major"}, {6, false, "F# major"},
		{7, false, "C# major"}, {-7, false, "Cb major"}, {7, true, "A# minor"}, {-7, true, "Ab minor"}, {3, true, "F# minor"},
		{2, true, "B minor"}, {5, false, "B major"}, {8, false, ""},
	}
	for _, test := range tests {
		if got := KeyName(test.sharps, test.minor); got != test.want {
			t.Errorf("%d, %v: got %q, want %q", test.sharps, test.minor, got, test.want)
		}
	}
}
