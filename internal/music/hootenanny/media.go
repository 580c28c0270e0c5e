package hootenanny

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/music/audio"
	"github.com/luanette/luanette/internal/music/smf"
	"github.com/luanette/luanette/internal/music/soundfont"
	"github.com/luanette/luanette/internal/music/synth"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/tools/toolset"
)

func (h *Backend) mediaTools() []toolset.Tool {
	return []toolset.Tool{
		define("midi_info", reads(), h.midiInfo),
		define("audio_info", reads(), h.audioInfo),
		define("time_convert", reads(), h.timeConvert),
		define("soundfont_inspect", reads(), h.soundfontInspect),
		define("soundfont_preset_inspect", reads(), h.soundfontPreset),
		define("convert_midi_to_wav", puts(), h.convertMIDI),
	}
}

type mediaIn struct {
	ArtifactID string `json:"artifact_id,omitempty" jsonschema:"id of an artifact" max:"80"`
	Hash       string `json:"hash,omitempty" jsonschema:"or the hash of a content" max:"80"`
}

// name returns the name of the content in the arguments.
func (m mediaIn) name() (string, error) {
	if (m.ArtifactID == "") == (m.Hash == "") {
		return "", invalid("give artifact_id or hash")
	}
	return m.ArtifactID + m.Hash, nil
}

// MIDIInfo summarizes a MIDI file.
type MIDIInfo struct {
	Hash string `json:"content_hash"`
	smf.Info
}

// Text is one line.
func (i MIDIInfo) Text() string {
	return fmt.Sprintf("%d notes in %d tracks, %.1f seconds at %.4g bpm, %s", i.NoteCount, i.TrackCount, i.DurationSeconds, i.TempoBPM, i.TimeSignature)
}

func (h *Backend) midiInfo(ctx context.Context, _ tool.Call, in mediaIn) (MIDIInfo, error) {
	name, err := in.name()
	if err != nil {
		return MIDIInfo{}, err
	}
	c, file, err := h.midi(ctx, name)
	if err != nil {
		return MIDIInfo{}, err
	}
	return MIDIInfo{c.Hash.String(), file.Info()}, nil
}

// midi reads a MIDI file.
func (h *Backend) midi(ctx context.Context, name string) (Content, *smf.File, error) {
	c, data, err := h.read(ctx, name, smf.MaxSize)
	if err != nil {
		return c, nil, err
	}
	file, err := smf.Decode(data)
	return c, file, err
}

// AudioInfo summarizes a WAV file.
type AudioInfo struct {
	Hash string `json:"content_hash"`
	audio.Info
	Bits  int  `json:"bits"`
	Float bool `json:"float"`
}

// Text is one line.
func (i AudioInfo) Text() string {
	text := fmt.Sprintf("%.2f seconds, %d Hz, %d channels, peak %.1f dB, mean %.1f dB", i.Duration, i.SampleRate, i.Channels, i.PeakDB, i.MeanDB)
	if i.IsSilent {
		text += ": it is silent"
	}
	return text
}

func (h *Backend) audioInfo(ctx context.Context, _ tool.Call, in mediaIn) (AudioInfo, error) {
	name, err := in.name()
	if err != nil {
		return AudioInfo{}, err
	}
	c, data, err := h.read(ctx, name, audio.MaxSize)
	if err != nil {
		return AudioInfo{}, err
	}
	clip, format, err := audio.Decode(data)
	if err != nil {
		return AudioInfo{}, err
	}
	return AudioInfo{c.Hash.String(), clip.Info(), format.Bits, format.Float}, nil
}

type timeConvertIn struct {
	Value float64 `json:"value" jsonschema:"a time"`
	From  string  `json:"from" jsonschema:"its unit" enum:"beats,seconds"`
	To    string  `json:"to" jsonschema:"the unit to convert to" enum:"beats,seconds"`
	Tempo float64 `json:"tempo_bpm,omitempty" jsonschema:"beats per minute; default: the tempo of the session's project" min:"1" max:"999"`
}

// ConvertedTime is a time in another unit.
type ConvertedTime struct {
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Tempo float64 `json:"tempo_bpm"`
}

// Text is one line.
func (t ConvertedTime) Text() string { return fmt.Sprintf("%g %s at %g bpm", t.Value, t.Unit, t.Tempo) }

func (h *Backend) timeConvert(ctx context.Context, call tool.Call, in timeConvertIn) (ConvertedTime, error) {
	if in.Tempo == 0 {
		now, err := onProject(h, h.gardenStatus)(ctx, call, projectIn{})
		if err != nil {
			return ConvertedTime{}, err
		}
		in.Tempo = now.Tempo
	}
	out := ConvertedTime{Value: in.Value, Unit: in.To, Tempo: in.Tempo}
	switch {
	case in.From == "beats" && in.To == "seconds":
		out.Value = in.Value * 60 / in.Tempo
	case in.From == "seconds" && in.To == "beats":
		out.Value = in.Value * in.Tempo / 60
	}
	return out, nil
}

type soundfontIn struct {
	Hash  string `json:"soundfont_hash" jsonschema:"hash of a SoundFont, or the id of its artifact" min:"12" max:"80"`
	Drums bool   `json:"include_drum_map,omitempty" jsonschema:"list the sounds of the drum kits by key"`
}

// Font describes a SoundFont.
type Font struct {
	Hash     string             `json:"soundfont_hash"`
	Info     soundfont.Info     `json:"info"`
	Presets  []soundfont.Preset `json:"presets"`
	HasDrums bool               `json:"has_drum_presets"`
	Drums    []soundfont.Kit    `json:"drum_map,omitempty"`
}

// Text has a line for each preset.
func (f Font) Text() string {
	lines := []string{fmt.Sprintf("%s: %d presets, %d samples", f.Info.Name, f.Info.Presets, f.Info.Samples)}
	for _, p := range f.Presets {
		lines = append(lines, fmt.Sprintf("%d:%d %s", p.Bank, p.Program, p.Name))
	}
	return strings.Join(lines, "\n")
}

func (h *Backend) soundfontInspect(ctx context.Context, _ tool.Call, in soundfontIn) (Font, error) {
	c, f, err := h.font(ctx, in.Hash)
	if err != nil {
		return Font{}, err
	}
	out := Font{Hash: c.Hash.String(), Info: f.Info, Presets: append([]soundfont.Preset{}, f.Presets...), HasDrums: f.HasDrums()}
	if in.Drums {
		out.Drums = f.Kits()
	}
	return out, nil
}

// font reads the description of a SoundFont.
func (h *Backend) font(ctx context.Context, name string) (Content, *soundfont.Font, error) {
	c, r, done, err := h.openContent(ctx, name)
	if err != nil {
		return Content{}, nil, err
	}
	defer done()
	f, err := soundfont.Read(r, c.Size)
	return c, f, err
}

// openContent opens a content for random access: its file, or its bytes in memory if
// it has none.
func (h *Backend) openContent(ctx context.Context, name string) (c Content, r io.ReaderAt, done func(), err error) {
	if c, err = h.files.FindFile(ctx, name); err != nil {
		return c, nil, nil, err
	}
	if c.Path != "" {
		file, err := os.Open(c.Path)
		if err != nil {
			return c, nil, nil, fault.Wrap(fault.Internal, err, "open content")
		}
		return c, file, func() { _ = file.Close() }, nil
	}
	c, data, err := h.read(ctx, name, synth.MaxFont)
	return c, bytes.NewReader(data), func() {}, err
}

type soundfontPresetIn struct {
	Hash    string `json:"soundfont_hash" jsonschema:"hash of a SoundFont, or the id of its artifact" min:"12" max:"80"`
	Bank    int    `json:"bank" jsonschema:"bank of the preset; drum kits are in 128" min:"0" max:"65535"`
	Program int    `json:"program" jsonschema:"number of the preset in its bank" min:"0" max:"127"`
}

// FontPreset is a preset with its regions.
type FontPreset struct {
	soundfont.Preset
	Regions []soundfont.Region `json:"regions"`
}

// Text has a line for each region.
func (p FontPreset) Text() string {
	lines := []string{fmt.Sprintf("%d:%d %s", p.Bank, p.Program, p.Name)}
	for _, r := range p.Regions {
		lines = append(lines, fmt.Sprintf("keys %d to %d, velocities %d to %d: %s", r.KeyLow, r.KeyHigh, r.VelocityLow, r.VelocityHigh, r.Sample))
	}
	return strings.Join(lines, "\n")
}

func (h *Backend) soundfontPreset(ctx context.Context, _ tool.Call, in soundfontPresetIn) (FontPreset, error) {
	_, f, err := h.font(ctx, in.Hash)
	if err != nil {
		return FontPreset{}, err
	}
	p, err := f.Preset(in.Bank, in.Program)
	if err != nil {
		return FontPreset{}, err
	}
	return FontPreset{p, f.Regions(p)}, nil
}

type convertIn struct {
	Input string `json:"input_hash" jsonschema:"hash of a MIDI file, or the id of its artifact" min:"12" max:"80"`
	Font  string `json:"soundfont_hash" jsonschema:"hash of a SoundFont, or the id of its artifact" min:"12" max:"80"`
	Rate  int    `json:"sample_rate,omitempty" jsonschema:"samples per second; default 44100" min:"8000" max:"192000"`

	Gain      *float64 `json:"gain,omitempty" jsonschema:"decibels to add; default 0" min:"-60" max:"60"`
	Normalize *bool    `json:"normalize,omitempty" jsonschema:"bring the loudest sample to -1 dB, before gain; default true, and false if gain is given"`
	Lineage
}

// options are the settings of the synthesizer.
func (in convertIn) options(progress func(float64)) synth.Options {
	o := synth.Options{Rate: in.Rate, Normalize: in.Gain == nil, Progress: progress}
	if in.Gain != nil {
		o.Gain = *in.Gain
	}
	if in.Normalize != nil {
		o.Normalize = *in.Normalize
	}
	return o
}

// convertMIDI checks the arguments and starts a job.
func (h *Backend) convertMIDI(ctx context.Context, call tool.Call, in convertIn) (StartedJob, error) {
	if _, _, err := h.midi(ctx, in.Input); err != nil {
		return StartedJob{}, err
	}
	if _, _, err := h.font(ctx, in.Font); err != nil {
		return StartedJob{}, err
	}
	return h.begin(ctx, call, in, in.Lineage)
}

// JobOutput is the result of a job that created artifacts.
type JobOutput struct {
	Status      string          `json:"status"`
	ArtifactID  string          `json:"artifact_id"`
	Hash        string          `json:"content_hash"`
	URL         string          `json:"artifact_url,omitempty"`
	ArtifactIDs []string        `json:"artifact_ids,omitempty"`
	Hashes      []string        `json:"content_hashes,omitempty"`
	Message     string          `json:"message"`
	Details     json.RawMessage `json:"details,omitempty"`
}

// outputOf is the result of a job with these artifacts. Its single fields describe
// the first one.
func (h *Backend) outputOf(message string, list ...Artifact) JobOutput {
	m := JobOutput{Status: "completed", Message: message}
	for _, a := range list {
		m.ArtifactIDs = append(m.ArtifactIDs, a.ID())
		m.Hashes = append(m.Hashes, a.Hash.String())
	}
	if len(list) > 0 {
		m.ArtifactID, m.Hash, m.URL = list[0].ID(), list[0].Hash.String(), h.artifactURL(list[0].ID())
	}
	return m
}

// render is the job of convert_midi_to_wav. It starts from the beginning after a
// restart, which costs only time and gives the same result.
func (h *Backend) render(ctx context.Context, t Task, in convertIn) (any, error) {
	select {
	case h.players <- struct{}{}:
		defer func() { <-h.players }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	source, music, err := h.midi(ctx, in.Input)
	if err != nil {
		return nil, err
	}
	c, r, done, err := h.openContent(ctx, in.Font)
	if err != nil {
		return nil, err
	}
	defer done()
	t.Progress(0, "reading the SoundFont")
	font, err := synth.Load(r, c.Size)
	if err != nil {
		return nil, err
	}
	if in.Parent == "" {
		if a, err := h.stored(ctx, source.Hash.String()); err == nil {
			in.Parent = artifact.ID(a.Hash)
		}
	}
	var played synth.Result
	sound := streamed(func(w io.Writer) (err error) {
		buffered := bufio.NewWriterSize(w, 64<<10)
		played, err = font.Play(ctx, buffered, music, in.options(everyPercent(t)))
		if err != nil {
			return err
		}
		return buffered.Flush()
	})
	defer func() { _ = sound.Close() }()
	a, err := h.create(ctx, sound, newArtifact{Lineage: in.Lineage, mime: "audio/wav", by: t.Tool})
	if err != nil {
		return nil, err
	}
	m := h.outputOf(fmt.Sprintf("%.1f seconds of sound", played.Seconds), a)
	m.Details, err = json.Marshal(map[string]any{"duration_seconds": played.Seconds, "sample_rate": played.Rate, "gain_db": played.Gain, "peak_db": audio.Decibels(played.Peak), "clipped": played.Peak > 1})
	return m, err
}

// stream reads what another goroutine writes.
type stream struct {
	*io.PipeReader
	over chan struct{}
}

// streamed runs write in a goroutine while the stream is read.
func streamed(write func(w io.Writer) error) *stream {
	r, w := io.Pipe()
	s := &stream{r, make(chan struct{})}
	go func() {
		defer close(s.over)
		_ = w.CloseWithError(write(w)) // never fails
	}()
	return s
}

// Close stops the writer and waits for it.
func (s *stream) Close() error {
	err := s.PipeReader.Close()
	<-s.over
	return err
}

// everyPercent reports the progress of a job in steps of one percent.
func everyPercent(t Task) func(float64) {
	last := -1
	return func(part float64) {
		if percent := int(part * 100); percent > last {
			last = percent
			t.Progress(part, "playing")
		}
	}
}
