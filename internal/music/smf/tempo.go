package smf

import "sort"

// TempoMap converts between ticks and seconds.
type TempoMap struct {
	steps []tempoStep
}

// tempoStep says that from tick, which is at seconds, a tick lasts perTick seconds.
type tempoStep struct {
	tick    int64
	seconds float64
	perTick float64
}

// TempoMap collects the tempo changes of all tracks. For a format 2 file, whose
// tracks do not sound together, use TempoMapOf with each track alone.
func (f *File) TempoMap() *TempoMap { return TempoMapOf(f.Division, f.Tracks...) }

// TempoMapOf collects the tempo changes of tracks that sound together. Under an
// SMPTE division tempo events have no effect.
func TempoMapOf(division Division, tracks ...Track) *TempoMap {
	division = division.orDefault()
	if division.SMPTE() {
		return &TempoMap{steps: []tempoStep{{perTick: division.secondsPerTick()}}}
	}
	m := &TempoMap{}
	perBeat := float64(division.TicksPerBeat) * 1e6
	m.add(0, DefaultTempo/perBeat)
	for _, e := range tempoEvents(tracks) {
		micros, _ := e.Tempo()
		m.add(e.Time, float64(micros)/perBeat)
	}
	return m
}

// tempoEvents are the well-formed tempo changes of the tracks by time.
func tempoEvents(tracks []Track) []Event {
	var found []Event
	for _, t := range tracks {
		for i := range t.Events {
			if _, ok := t.Events[i].Tempo(); ok {
				found = append(found, t.Events[i])
			}
		}
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].Time < found[j].Time })
	return found
}

// add appends a step; a step at the tick of the last one replaces it.
func (m *TempoMap) add(tick int64, perTick float64) {
	step := tempoStep{tick: tick, seconds: m.Seconds(tick), perTick: perTick}
	if last := len(m.steps) - 1; last >= 0 && m.steps[last].tick == tick {
		m.steps[last] = step
		return
	}
	m.steps = append(m.steps, step)
}

// Seconds is the time of a tick since the start.
func (m *TempoMap) Seconds(tick int64) float64 {
	s := m.step(func(s tempoStep) bool { return s.tick > tick })
	return s.seconds + float64(tick-s.tick)*s.perTick
}

// Ticks is the tick at a time in seconds, with its fraction.
func (m *TempoMap) Ticks(seconds float64) float64 {
	s := m.step(func(s tempoStep) bool { return s.seconds > seconds })
	if s.perTick == 0 {
		return float64(s.tick)
	}
	return float64(s.tick) + (seconds-s.seconds)/s.perTick
}

// step is the last one before the first that is past; the zero step when there is none.
func (m *TempoMap) step(past func(tempoStep) bool) tempoStep {
	if i := sort.Search(len(m.steps), func(i int) bool { return past(m.steps[i]) }); i > 0 {
		return m.steps[i-1]
	}
	if len(m.steps) > 0 {
		return m.steps[0]
	}
	return tempoStep{}
}
