package smf

import "fmt"

// Info summarizes a file.
type Info struct {
	Format          int           `json:"format"`
	TrackCount      int           `json:"track_count"`
	TicksPerBeat    int           `json:"ppq"` // 0 under an SMPTE division
	TempoBPM        float64       `json:"tempo_bpm"`
	TempoChanges    []TempoChange `json:"tempo_changes"`  // every tempo event, never null
	TimeSignature   string        `json:"time_signature"` // the first, such as "4/4", which is also the default
	KeySignature    string        `json:"key_signature,omitempty"`
	DurationSeconds float64       `json:"duration_seconds"` // to the last event of the longest track
	DurationTicks   int64         `json:"duration_ticks"`
	NoteCount       int           `json:"note_count"`
	Channels        []int         `json:"channels"` // those with notes, ascending, never null
	TrackNames      []string      `json:"track_names,omitempty"`
}

// TempoChange is one tempo event.
type TempoChange struct {
	Tick    int64   `json:"tick"`
	Seconds float64 `json:"seconds"`
	BPM     float64 `json:"bpm"`
}

// Info summarizes the file. The tracks of format 2 count as played one after another.
func (f *File) Info() Info {
	info := Info{
		Format:        f.Format,
		TrackCount:    len(f.Tracks),
		TicksPerBeat:  int(f.Division.orDefault().TicksPerBeat),
		TempoBPM:      bpm(DefaultTempo),
		TimeSignature: "4/4",
		TempoChanges:  []TempoChange{},
		Channels:      []int{},
	}
	info.measure(f)
	info.count(f)
	info.sign(f)
	if len(info.TempoChanges) > 0 {
		info.TempoBPM = info.TempoChanges[0].BPM
	}
	return info
}

// measure finds durations and tempo changes.
func (info *Info) measure(f *File) {
	if f.Format != 2 {
		info.play(f.Division, f.Tracks)
		return
	}
	for i := range f.Tracks {
		info.play(f.Division, f.Tracks[i:i+1])
	}
}

// play adds tracks that sound together to what was played before.
func (info *Info) play(division Division, tracks []Track) {
	tempo := TempoMapOf(division, tracks...)
	for _, e := range tempoEvents(tracks) {
		micros, _ := e.Tempo()
		info.TempoChanges = append(info.TempoChanges, TempoChange{
			Tick:    info.DurationTicks + e.Time,
			Seconds: info.DurationSeconds + tempo.Seconds(e.Time),
			BPM:     bpm(micros),
		})
	}
	var end int64
	for _, t := range tracks {
		end = max(end, t.End())
	}
	info.DurationTicks += end
	info.DurationSeconds += tempo.Seconds(end)
}

// count finds the notes, their channels and the names of the tracks.
func (info *Info) count(f *File) {
	var used [256]bool
	for _, t := range f.Tracks {
		for i := range t.Events {
			switch e := &t.Events[i]; {
			case e.Starts():
				info.NoteCount++
				used[e.Channel] = true
			case e.Is(TrackName):
				info.TrackNames = append(info.TrackNames, string(e.Bytes))
			}
		}
	}
	for channel, yes := range used {
		if yes {
			info.Channels = append(info.Channels, channel)
		}
	}
}

// sign finds the first time and key signature; earlier tracks win a tie.
func (info *Info) sign(f *File) {
	meterAt, keyAt := int64(-1), int64(-1)
	for _, t := range f.Tracks {
		for _, e := range t.Events {
			if m, ok := e.Meter(); ok && (meterAt < 0 || e.Time < meterAt) {
				meterAt = e.Time
				info.TimeSignature = fmt.Sprintf("%d/%d", m.Numerator, m.Denominator)
			}
			if sharps, minor, ok := e.Key(); ok && (keyAt < 0 || e.Time < keyAt) {
				keyAt = e.Time
				info.KeySignature = KeyName(int(sharps), minor)
			}
		}
	}
}

// bpm turns microseconds per beat into beats per minute; 0 for a tempo of 0.
func bpm(micros int) float64 {
	if micros == 0 {
		return 0
	}
	return 60e6 / float64(micros)
}

// KeyName is the name of a key signature, such as "Bb major" for two flats, or
// "" when there are more than seven sharps or flats.
func KeyName(sharpsFlats int, minor bool) string {
	const fifths = "FCGDAEB"
	if sharpsFlats < -7 || sharpsFlats > 7 {
		return ""
	}
	mode, place := "major", sharpsFlats+1
	if minor {
		mode, place = "minor", sharpsFlats+4
	}
	octave := (place + 14) / 7 // 2 is the row without accidentals
	letter := fifths[(place+14)%7]
	accidental := map[int]string{1: "b", 2: "", 3: "#"}[octave]
	return string(letter) + accidental + " " + mode
}
