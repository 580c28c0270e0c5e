package script

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/luanette/luanette/internal/music/smf"
	"github.com/luanette/luanette/internal/scripting/host"
)

// oddFile has events that the fields of tables cannot represent.
func oddFile() []byte {
	track := func(body ...byte) []byte {
		return append(binary.BigEndian.AppendUint32([]byte("MTrk"), uint32(len(body))), body...)
	}
	file := []byte("MThd\x00\x00\x00\x08\x00\x01\x00\x03\xe7\x28XY") // 25 frames of 40 ticks, two bytes more
	file = append(file, "XFIH\x00\x00\x00\x03\x00\xff\x80"...)
	file = append(file, track(
		0, 0xff, 0x03, 3, 'S', 0xf6, 'd', // Latin-1
		0, 0xff, 0x51, 2, 1, 2, // a tempo of two bytes
		0, 0xff, 0x58, 4, 6, 3, 36, 12, // unusual clocks
		0, 0xff, 0x58, 4, 1, 40, 24, 8, // no denominator at all
		0, 0xff, 0x59, 2, 9, 7, // no key at all
		0, 0xff, 0x60, 2, 0xde, 0xad, // unknown
		0, 0xff, 0x7f, 1, 0x41,
		0, 0xff, 0x54, 5, 1, 2, 3, 4, 5,
		0, 0xf0, 3, 0x43, 0x10, 0xf7,
		0, 0xf7, 2, 0xf3, 0x01,
		0x81, 0, 0xff, 0x2f, 0, 'e', 'n', 'd',
	)...)
	file = append(file, track(
		0, 0x90, 60, 64, 10, 60, 0, 0, 0x90, 61, 1, 0, 0xe3, 1, 2, 0, 0xd3, 9, 5, 8, 0, 0xff, 0x2f, 0,
	)...)
	file = append(file, "ABCD\x00\x00\x00\x00"...)
	file = append(file, track(0, 0xc1, 3, 0, 0xff, 0x2f, 0)...)
	return append(file, "rest"...)
}

// throughScript reads a file with midi.read and writes it with midi.write.
func throughScript(t *testing.T, source string, file []byte) []byte {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "in.mid"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, func(o *Options) { o.Files = host.FilesOptions{Write: []string{folder}} })
	params, err := json.Marshal(map[string]string{"folder": folder})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Run(t.Context(), Request{Source: source, Main: true, Params: params}); err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(filepath.Join(folder, "out.mid"))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// equalFiles compares two files event for event.
func equalFiles(t *testing.T, got, want []byte) {
	t.Helper()
	a, err := smf.Decode(got)
	if err != nil {
		t.Fatal(err)
	}
	b, err := smf.Decode(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*smf.File{a, b} { // running status does not change the music
		for _, track := range f.Tracks {
			for i := range track.Events {
				track.Events[i].Running = false
			}
		}
	}
	if x, y := fmt.Sprintf("%+v", *a), fmt.Sprintf("%+v", *b); x != y {
		t.Errorf("got  %s\nwant %s", x, y)
	}
}

func TestMIDIFilesSurvive(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"as read": `function main(p) midi.write(p.folder .. "/out.mid", midi.read(p.folder .. "/in.mid")) end`,
		"as events": `function main(p)
			local song = midi.read(p.folder .. "/in.mid")
			local dropped = table.remove(song.events, 1)
			table.insert(song.events, 1, dropped)
			local marked = { type = "note_on", note = 1, time = 0, track = 1 }
			table.insert(song.events, marked)
			song.events = midi.filter(song.events, function(e) return e ~= marked end)
			midi.write(p.folder .. "/out.mid", song)
		end`,
		"as bytes": `function main(p)
			local bytes = fs.read(p.folder .. "/in.mid")
			fs.write(p.folder .. "/out.mid", midi.encode(midi.decode(bytes)))
		end`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			odd := oddFile()
			equalFiles(t, throughScript(t, source, odd), odd)
			for seed := range uint64(5) {
				file := randomFile(t, seed)
				if got := throughScript(t, source, file); !bytes.Equal(got, file) {
					equalFiles(t, got, file)
					t.Errorf("seed %d: the bytes differ", seed)
				}
			}
		})
	}
}

// randomFile is a file of several tracks with all kinds of events.
func randomFile(t *testing.T, seed uint64) []byte {
	t.Helper()
	dice := rand.New(rand.NewPCG(seed, 1))
	f := smf.File{Format: 1, Division: smf.Division{TicksPerBeat: 96}}
	for range 1 + dice.IntN(4) {
		f.Tracks = append(f.Tracks, smf.Track{Events: randomEvents(dice, 60)})
	}
	data, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func randomEvents(dice *rand.Rand, count int) []smf.Event {
	var events []smf.Event
	var now int64
	seven := func() uint8 { return uint8(dice.IntN(128)) }
	for range count {
		now += int64(dice.IntN(40))
		channel := uint8(dice.IntN(16))
		events = append(events, []smf.Event{
			smf.Note(now, channel, seven(), 1+seven()/2),
			smf.Release(now, channel, seven()),
			{Time: now, Kind: smf.NoteOn, Channel: channel, Data1: seven()},
			smf.Control(now, channel, seven(), seven()),
			smf.Program(now, channel, seven()),
			smf.Bend(now, channel, dice.IntN(16384)-8192),
			{Time: now, Kind: smf.Aftertouch, Channel: channel, Data1: seven(), Data2: seven()},
			{Time: now, Kind: smf.ChannelAftertouch, Channel: channel, Data1: seven()},
			smf.SetTempo(now, 1+dice.IntN(smf.MaxTempo)),
			smf.SetMeter(now, 1+seven(), 1<<dice.IntN(6)),
			smf.SetKey(now, int8(dice.IntN(15)-7), dice.IntN(2) == 0),
			smf.TextEvent(now, smf.Marker, "Größe"),
			{Time: now, Kind: smf.SysEx, Bytes: []byte{seven(), 0xf7}},
		}[dice.IntN(13)])
	}
	return append(events, smf.End(now+10))
}

// TestMIDIEditsAgreeWithGo checks that transpose, quantize and merge of the prelude
// agree with package smf.
func TestMIDIEditsAgreeWithGo(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		dice := rand.New(rand.NewPCG(seed, 2))
		grid, semitones := int64(1+dice.IntN(60)), dice.IntN(60)-30
		track := smf.Track{Events: randomEvents(dice, 80)}
		file := smf.File{Tracks: []smf.Track{track}}
		in, err := file.Encode()
		if err != nil {
			t.Fatal(err)
		}
		transposed(track.Events, semitones)
		quantized(track.Events, grid)
		both := merged(track, smf.Track{Events: []smf.Event{smf.Note(7, 0, 1, 1), smf.End(7)}})
		want, err := (&smf.File{Tracks: []smf.Track{both}}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		got := throughScript(t, fmt.Sprintf(`function main(p)
			local song = midi.read(p.folder .. "/in.mid")
			midi.transpose(song.tracks[1].events, %d)
			midi.quantize(song.events, %d)
			local one = { events = { { type = "note_on", note = 1, velocity = 1, time = 7 }, { type = "meta", meta_type = "end_of_track", time = 7 } } }
			midi.write(p.folder .. "/out.mid", midi.merge { song, one })
		end`, semitones, grid), in)
		equalFiles(t, got, want)
	}
}

// transposed moves every note, in place, by semitones; notes that would leave
// 0–127 stop at its edge.
func transposed(events []smf.Event, semitones int) {
	semitones = min(max(semitones, -127), 127)
	for i := range events {
		if e := &events[i]; e.Kind == smf.NoteOn || e.Kind == smf.NoteOff || e.Kind == smf.Aftertouch {
			e.Data1 = uint8(min(max(int(e.Data1)+semitones, 0), 127))
		}
	}
}

// quantized moves every event, in place, to the nearest multiple of grid ticks;
// halfway goes up, a grid of 0 or less changes nothing. A note that would
// vanish because both its ends fall on one tick lasts one grid step instead;
// the events are in order of time afterwards.
func quantized(events []smf.Event, grid int64) {
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
		case e.Is(smf.EndOfTrack):
			e.Time = max(e.Time, latest)
		}
		latest = max(latest, e.Time)
	}
	if moved {
		slices.SortStableFunc(events, byTime)
	}
	smf.Deltas(events)
}

// merged merges tracks by absolute time; events of the same tick stay in the order of
// their tracks. The one end_of_track is the latest.
func merged(tracks ...smf.Track) smf.Track {
	var end int64
	var events []smf.Event
	for _, t := range tracks {
		end = max(end, t.End())
		for _, e := range t.Events {
			if !e.Is(smf.EndOfTrack) {
				events = append(events, e)
			}
		}
	}
	slices.SortStableFunc(events, byTime)
	events = append(events, smf.End(end))
	smf.Deltas(events)
	return smf.Track{Events: events}
}

func byTime(a, b smf.Event) int { return cmp.Compare(a.Time, b.Time) }
