package hootenanny

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/music/abc"
	"github.com/luanette/luanette/internal/music/audio"
	"github.com/luanette/luanette/internal/music/smf"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// generation is a request to a model and what its answer becomes.
type generation struct {
	service service
	request any
	kin     Lineage
	sources []string // names of the contents that were sent; "" is ignored
	words   string   // what the model was asked in words, for the description
	expects []string // fields that an analysis must have
	sent    []string // fields of the request with contents, and with the job
}

// lineage returns the requested lineage, with the first source that is an artifact as
// parent if no other parent was given, and the metadata of what the model makes: model,
// job, all sources and the parameters of the request.
func (h *Backend) lineage(ctx context.Context, t Task, g generation) (Lineage, json.RawMessage, error) {
	k, sources := g.kin, []string{}
	for _, name := range g.sources {
		if name == "" {
			continue
		}
		c, err := h.files.FindFile(ctx, name)
		if err != nil {
			return k, nil, err
		}
		sources = append(sources, c.Hash.String())
		if k.Parent == "" {
			if a, err := h.stored(ctx, name); err == nil {
				k.Parent = artifact.ID(a.Hash)
			}
		}
	}
	parameters, err := g.parameters()
	if err != nil {
		return k, nil, err
	}
	metadata, err := json.Marshal(map[string]any{"model": g.service.name, "job_id": t.ID, "sources": sources, "parameters": parameters})
	if len(metadata) > maxMetadata {
		metadata, err = json.Marshal(map[string]any{"model": g.service.name, "job_id": t.ID, "sources": sources})
	}
	return k, metadata, err
}

// longestParameter is the length of the longest text that is stored with an artifact as a
// parameter. Contents are longer, and are stored already.
const longestParameter = 20 << 10

// parameters returns the fields of the request without the contents that were sent.
func (g generation) parameters() (map[string]any, error) {
	raw, err := json.Marshal(g.request)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	for _, name := range g.sent {
		delete(fields, name)
	}
	for name, value := range fields {
		if text, ok := value.(string); ok && len(text) > longestParameter {
			delete(fields, name)
		}
	}
	return fields, nil
}

// storedContent is a content that a model made, as the outcome of a step.
type storedContent struct {
	Hash   string          `json:"hash"`
	Tokens int             `json:"num_tokens,omitempty"`
	Events int             `json:"num_events,omitempty"`
	MIME   string          `json:"mime,omitempty"`
	About  json.RawMessage `json:"about,omitempty"`
}

// midiReply is how models reply with MIDI files.
type midiReply struct {
	Variations []midiVariation `json:"variations"`
	midiVariation
}

type midiVariation struct {
	MIDI   string `json:"midi_base64"`
	Tokens int    `json:"num_tokens"`
	Events int    `json:"num_events"`
}

// maxVariations is how many MIDI files one reply may have.
const maxVariations = 64

// compose requests MIDI files from a model and creates artifacts from them.
func (h *Backend) compose(ctx context.Context, t Task, g generation) (any, error) {
	stored, err := stepped(ctx, t, g.service.name, func(ctx context.Context) ([]storedContent, error) { return h.requestMIDI(ctx, t, g) })
	if err != nil {
		return nil, err
	}
	k, metadata, err := h.lineage(ctx, t, g)
	if err != nil {
		return nil, err
	}
	if len(stored) > 1 && k.Set == "" {
		k.Set = "set_" + t.ID
	}
	t.Progress(0.9, "storing the result")
	var list []Artifact
	for i, one := range stored {
		kin := k
		if i > 0 {
			kin.Index = 0 // only the first can have the requested index
		}
		a, err := h.createFrom(ctx, one.Hash, newArtifact{Lineage: kin, mime: "audio/midi", description: clip(g.words), metadata: metadata, by: t.Tool})
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	m := h.outputOf(fmt.Sprintf("%d MIDI files", len(list)), list...)
	m.Details, err = json.Marshal(map[string]any{"variation_set_id": k.Set, "variations": stored})
	return m, err
}

func (h *Backend) requestMIDI(ctx context.Context, t Task, g generation) (stored []storedContent, err error) {
	var answer midiReply
	if err := h.ask(ctx, t, g.service, g.request, &answer); err != nil {
		return nil, err
	}
	if len(answer.Variations) == 0 && answer.MIDI != "" {
		answer.Variations = []midiVariation{answer.midiVariation}
	}
	switch n := len(answer.Variations); {
	case n == 0:
		return nil, g.service.badReply(fault.New(fault.Upstream, "%s replied without any MIDI file", g.service.name))
	case n > maxVariations:
		return nil, fault.New(fault.Limit, "%s replied with %d MIDI files", g.service.name, n).WithHint("ask for at most %d", maxVariations)
	}
	for i, v := range answer.Variations {
		c, err := h.putMIDI(ctx, v.MIDI)
		if err != nil {
			return nil, g.service.badReply(fault.Wrap(fault.Upstream, err, "variation %d of %s", i+1, g.service.name))
		}
		stored = append(stored, storedContent{Hash: c.Hash.String(), Tokens: v.Tokens, Events: v.Events})
	}
	return stored, nil
}

func (h *Backend) putMIDI(ctx context.Context, text string) (Content, error) {
	data, err := decodeBase64(text)
	if err != nil {
		return Content{}, err
	}
	if _, err := smf.Decode(data); err != nil {
		return Content{}, err
	}
	return h.files.PutFile(ctx, bytes.NewReader(data), "audio/midi")
}

// analyse has a model analyse a content. The analysis becomes an artifact whose parent is
// the artifact of the content.
func (h *Backend) analyse(ctx context.Context, t Task, g generation) (any, error) {
	answer, err := stepped(ctx, t, g.service.name, func(ctx context.Context) (object, error) { return h.requestAnalysis(ctx, t, g) })
	if err != nil {
		return nil, err
	}
	result := map[string]any{"status": "completed", "analysis": answer, "message": "analysed by " + g.service.name}
	document := map[string]any{"model": g.service.name, "analysis": answer}
	about := "analysis by " + g.service.name
	if len(g.sources) > 0 && g.sources[0] != "" {
		c, err := h.files.FindFile(ctx, g.sources[0])
		if err != nil {
			return nil, err
		}
		result["content_hash"], result["artifact_id"] = c.Hash.String(), artifact.ID(c.Hash)
		document["content_hash"], about = c.Hash.String(), "analysis of "+c.Hash.Short()+" by "+g.service.name
	}
	k, metadata, err := h.lineage(ctx, t, g)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	k.Tags = append(slices.Clone(k.Tags), "type:analysis")
	a, err := h.create(ctx, bytes.NewReader(raw), newArtifact{Lineage: k, mime: "application/json", description: about, metadata: metadata, by: t.Tool})
	result["analysis_artifact_id"] = a.ID()
	return result, err
}

func (h *Backend) requestAnalysis(ctx context.Context, t Task, g generation) (object, error) {
	var answer object
	if err := h.ask(ctx, t, g.service, g.request, &answer); err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(answer, &fields); err != nil || len(fields) == 0 {
		return nil, g.service.badReply(fault.New(fault.Upstream, "%s replied with an empty analysis", g.service.name))
	}
	for _, name := range g.expects {
		if _, found := fields[name]; !found {
			return nil, g.service.badReply(fault.New(fault.Upstream, "%s replied without %s: %s", g.service.name, name, serviceError(answer)))
		}
	}
	return answer, nil
}

// generateAudio requests audio from a model and creates an artifact from it.
func (h *Backend) generateAudio(ctx context.Context, t Task, g generation) (any, error) {
	stored, err := stepped(ctx, t, g.service.name, func(ctx context.Context) (storedContent, error) { return h.requestSound(ctx, t, g) })
	if err != nil {
		return nil, err
	}
	k, metadata, err := h.lineage(ctx, t, g)
	if err != nil {
		return nil, err
	}
	t.Progress(0.9, "storing the result")
	a, err := h.createFrom(ctx, stored.Hash, newArtifact{Lineage: k, mime: stored.MIME, description: clip(g.words), metadata: metadata, by: t.Tool})
	if err != nil {
		return nil, err
	}
	m := h.outputOf("1 sound", a)
	m.Details = stored.About
	return m, nil
}

func (h *Backend) requestSound(ctx context.Context, t Task, g generation) (storedContent, error) {
	var answer struct {
		Status string `json:"status"`
		Audio  string `json:"audio_base64"`
		Format string `json:"format"`
		Error  string `json:"error"`
		Stderr string `json:"stderr"`
	}
	if err := h.ask(ctx, t, g.service, g.request, &answer); err != nil {
		return storedContent{}, err
	}
	if answer.Audio == "" {
		why := clip(cmp.Or(answer.Error, answer.Stderr, "no reason given"))
		return storedContent{}, g.service.badReply(fault.New(fault.Upstream, "%s produced no audio: %s", g.service.name, why))
	}
	stored, err := h.putSound(ctx, answer.Audio, answer.Format)
	if err != nil {
		return storedContent{}, g.service.badReply(fault.Wrap(fault.Upstream, err, "read the sound of %s", g.service.name))
	}
	return stored, nil
}

// putSound stores audio and summarizes it if it is a WAV file.
func (h *Backend) putSound(ctx context.Context, text, format string) (storedContent, error) {
	data, err := decodeBase64(text)
	if err != nil {
		return storedContent{}, err
	}
	stored := storedContent{MIME: "audio/wav"}
	if strings.EqualFold(format, "mp3") {
		stored.MIME = "audio/mpeg"
		if !isMP3(data) {
			return storedContent{}, fault.New(fault.Upstream, "%d bytes that are no MP3 file", len(data))
		}
	} else {
		sound, _, err := audio.Decode(data)
		if err != nil {
			return storedContent{}, err
		}
		if stored.About, err = json.Marshal(sound.Info()); err != nil {
			return storedContent{}, err
		}
	}
	c, err := h.files.PutFile(ctx, bytes.NewReader(data), stored.MIME)
	stored.Hash = c.Hash.String()
	return stored, err
}

// isMP3 tells whether data begins with an ID3 tag or with the sync word of an MPEG frame.
func isMP3(data []byte) bool {
	return bytes.HasPrefix(data, []byte("ID3")) || len(data) > 4 && data[0] == 0xff && data[1]&0xe0 == 0xe0
}

func (h *Backend) abcTools() []toolset.Tool {
	return []toolset.Tool{
		define("abc_parse", reads(), h.abcParse),
		define("abc_validate", reads(), h.abcValidate),
		define("abc_transpose", reads(), h.abcTranspose),
		define("abc_to_midi", puts(), h.abcToMIDI),
	}
}

type abcIn struct {
	ABC string `json:"abc" jsonschema:"a tune in ABC notation" min:"1" max:"1048576"`
}

// problems is never nil, so that it is a list in JSON.
func problems(list []abc.Diagnostic) []abc.Diagnostic { return append([]abc.Diagnostic{}, list...) }

// ParsedTune is the result of abc_parse.
type ParsedTune struct {
	Success   bool             `json:"success"`
	Title     string           `json:"title,omitempty"`
	Composer  string           `json:"composer,omitempty"`
	Key       string           `json:"key,omitempty"`
	Meter     string           `json:"meter,omitempty"`
	Tempo     float64          `json:"tempo,omitempty"`
	Voices    int              `json:"voices"`
	NoteCount int              `json:"note_count"`
	BarCount  int              `json:"bar_count"`
	AST       toolset.Object   `json:"ast" jsonschema:"the tune as a tree: header, voices and body"`
	Errors    []abc.Diagnostic `json:"errors"`
	Warnings  []abc.Diagnostic `json:"warnings"`
}

// Text is one line.
func (p ParsedTune) Text() string {
	if !p.Success {
		return fmt.Sprintf("The tune has %d errors:\n%s", len(p.Errors), listed(p.Errors))
	}
	return fmt.Sprintf("%q in %s: %d notes in %d bars, %d voices", p.Title, p.Key, p.NoteCount, p.BarCount, p.Voices)
}

func listed(found []abc.Diagnostic) string {
	var lines []string
	for _, p := range found {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

func (h *Backend) abcParse(_ context.Context, _ tool.Call, in abcIn) (ParsedTune, error) {
	s := abc.Summarize(in.ABC)
	p := ParsedTune{
		Success: s.Valid, Title: s.Title, Composer: s.Composer, Key: s.Key, Meter: s.Meter, Tempo: s.Tempo, Voices: s.Voices,
		NoteCount: s.NoteCount, BarCount: s.BarCount, Errors: problems(s.Errors), Warnings: problems(s.Warnings),
	}
	tune, _ := abc.Parse(in.ABC)
	if tune == nil {
		return p, nil
	}
	raw, err := json.Marshal(tune)
	p.AST = raw
	return p, err
}

// TuneValidation is the result of abc_validate.
type TuneValidation struct {
	Valid    bool             `json:"valid"`
	Errors   []abc.Diagnostic `json:"errors"`
	Warnings []abc.Diagnostic `json:"warnings"`
}

// Text lists the errors.
func (v TuneValidation) Text() string {
	if v.Valid {
		return fmt.Sprintf("The tune is valid (%d warnings)", len(v.Warnings))
	}
	return fmt.Sprintf("The tune has %d errors:\n%s", len(v.Errors), listed(v.Errors))
}

func (h *Backend) abcValidate(_ context.Context, _ tool.Call, in abcIn) (TuneValidation, error) {
	d := abc.Validate(in.ABC)
	return TuneValidation{Valid: d.Valid(), Errors: problems(d.Errors), Warnings: problems(d.Warnings)}, nil
}

type abcTransposeIn struct {
	abcIn
	Semitones *int   `json:"semitones,omitempty" jsonschema:"how far, up or down" min:"-60" max:"60"`
	Key       string `json:"target_key,omitempty" jsonschema:"or the target key, such as D or F#m; the shorter way is taken" max:"16"`
}

// TransposedTune is a tune in another key.
type TransposedTune struct {
	ABC         string `json:"abc"`
	By          int    `json:"transposed_by" jsonschema:"semitones"`
	OriginalKey string `json:"original_key"`
	NewKey      string `json:"new_key"`
}

// Text is the tune.
func (t TransposedTune) Text() string { return t.ABC }

func (h *Backend) abcTranspose(_ context.Context, _ tool.Call, in abcTransposeIn) (TransposedTune, error) {
	var moved abc.Transposition
	var err error
	switch {
	case in.Semitones != nil && in.Key != "", in.Semitones == nil && in.Key == "":
		return TransposedTune{}, invalid("transpose: give semitones or target_key")
	case in.Semitones != nil:
		moved, err = abc.Transpose(in.ABC, *in.Semitones)
	default:
		moved, err = abc.TransposeTo(in.ABC, in.Key)
	}
	return TransposedTune{ABC: moved.ABC, By: moved.Semitones, OriginalKey: moved.OriginalKey, NewKey: moved.NewKey}, err
}

type abcToMIDIIn struct {
	abcIn
	Tempo     float64 `json:"tempo_override,omitempty" jsonschema:"quarter notes per minute; default: the tempo of the tune" min:"1" max:"999"`
	Transpose int     `json:"transpose,omitempty" jsonschema:"semitones" min:"-60" max:"60"`
	Velocity  int     `json:"velocity,omitempty" jsonschema:"how hard notes on weak beats are struck; default 80, and 95 to 105 on strong beats" min:"1" max:"127"`
	Channel   int     `json:"channel,omitempty" jsonschema:"MIDI channel for all voices, 9 is drums; default: one channel per voice" min:"0" max:"15"`
	Lineage
}

// TuneMIDI is the MIDI file of a tune.
type TuneMIDI struct {
	ArtifactView
	Title     string  `json:"title,omitempty"`
	NoteCount int     `json:"note_count"`
	Seconds   float64 `json:"duration_seconds"`

	Warnings []abc.Diagnostic `json:"warnings" jsonschema:"what in the tune is not played, or not as it may be meant"`
}

// Text is one line.
func (p TuneMIDI) Text() string {
	text := fmt.Sprintf("%q as %s: %d notes, %.1f seconds", p.Title, p.ArtifactID, p.NoteCount, p.Seconds)
	if len(p.Warnings) > 0 {
		text += fmt.Sprintf("\n%d warnings:\n%s", len(p.Warnings), listed(p.Warnings))
	}
	return text
}

func (h *Backend) abcToMIDI(ctx context.Context, call tool.Call, in abcToMIDIIn) (TuneMIDI, error) {
	tune, found := abc.Parse(in.ABC)
	if err := found.Err(); err != nil {
		return TuneMIDI{}, err
	}
	file, err := abc.ToMIDI(tune, abc.Options{Velocity: in.Velocity, Channel: in.Channel, Tempo: in.Tempo, Transpose: in.Transpose})
	if err != nil {
		return TuneMIDI{}, err
	}
	data, err := file.Encode()
	if err != nil {
		return TuneMIDI{}, err
	}
	title := ""
	if len(tune.Titles) > 0 {
		title = tune.Titles[0]
	}
	a, err := h.create(ctx, bytes.NewReader(data), newArtifact{Lineage: in.Lineage, mime: "audio/midi", name: title, by: call.Ref.Name})
	info := file.Info()
	return TuneMIDI{ArtifactView: h.view(a), Title: title, NoteCount: info.NoteCount, Seconds: info.DurationSeconds, Warnings: problems(found.Warnings)}, err
}
