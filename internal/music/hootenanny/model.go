package hootenanny

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/music/audio"
	"github.com/luanette/luanette/internal/music/smf"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/tools/modelspec"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// definedModel is a tool that asks a model which is described by a Spec.
type definedModel struct {
	name    string
	spec    modelspec.Spec
	service service

	jobID   bool                             // the request says which job it is of
	tags    []string                         // of what the model makes
	prepare func(audio.Clip) ([]byte, error) // makes the file to send of a sound; nil: the file itself
}

// defineModels reads the descriptions of models: those of the configuration and our own.
func (h *Backend) defineModels() error {
	for _, name := range slices.Sorted(maps.Keys(h.options.Models)) {
		if err := h.options.Models[name].Check(name); err != nil {
			return err
		}
		h.defined = append(h.defined, definedModel{name: name, spec: h.options.Models[name], service: service{
			name: name, setting: "music.models." + name + ".url",
		}})
	}
	for _, d := range ownModels(h.options.Services) {
		d.spec.URL = d.service.address
		h.defined = append(h.defined, d)
	}
	for i := range h.defined {
		d := &h.defined[i]
		u, err := url.Parse(d.spec.Address())
		if err != nil {
			return fault.Wrap(fault.Config, err, "%s", d.service.setting).WithHint("give an address such as http://127.0.0.1:2020")
		}
		d.service.path, d.service.timeout = u.RequestURI(), d.spec.TimeoutOf()
		d.service.address = u.Scheme + "://" + u.Host
	}
	return nil
}

// definedTools returns the tools of the described models, whose names must not be those
// of other tools.
func (h *Backend) definedTools(others [][]toolset.Tool) ([]toolset.Tool, error) {
	taken := toolset.NewSet(Space, others...)
	var tools []toolset.Tool
	for _, d := range h.defined {
		if taken.Has(d.name) || slices.ContainsFunc(h.defined, func(o definedModel) bool { return o.name == d.name && o.service.name != d.service.name }) {
			return nil, fault.New(fault.Config, "music.models.%s: there is a tool of this name", d.name).WithHint("choose another name")
		}
		info, err := d.info()
		if err != nil {
			return nil, err
		}
		tools = append(tools, toolset.DefineSchema(info, func(ctx context.Context, call tool.Call) (StartedJob, error) { return h.beginDefined(ctx, call, d) }))
	}
	return tools, nil
}

func (d definedModel) info() (tool.Info, error) {
	var kin json.RawMessage
	if d.spec.Result != modelspec.Analysis {
		kin = toolset.InputSchema[Lineage](d.name)
	}
	schema, err := d.spec.Schema(kin)
	if err != nil {
		return tool.Info{}, fault.Wrap(fault.Config, err, "music.models.%s", d.name).WithHint("check its arguments")
	}
	return tool.Info{
		Ref: tool.Ref{Name: d.name}, Title: cmp.Or(d.spec.Title, strings.ReplaceAll(d.name, "_", " ")), Description: d.spec.Description,
		Hints: asks(), Input: schema,
	}, nil
}

// definedJob is the parameters of a job of a described model.
type definedJob struct {
	Arguments json.RawMessage `json:"arguments"`
	Lineage
}

// beginDefined checks the arguments of a call and starts the job.
func (h *Backend) beginDefined(ctx context.Context, call tool.Call, d definedModel) (StartedJob, error) {
	args, err := d.spec.Decode(call.Args)
	if err != nil {
		return StartedJob{}, err
	}
	for _, name := range d.spec.Contents(args) {
		if _, err := h.files.FindFile(ctx, name); err != nil {
			return StartedJob{}, err
		}
	}
	job := definedJob{}
	if len(call.Args) > 0 && d.spec.Result != modelspec.Analysis {
		if err := json.Unmarshal(call.Args, &job.Lineage); err != nil {
			return StartedJob{}, fault.Wrap(fault.InvalidParams, err, "read the arguments of %s", d.name)
		}
	}
	if job.Arguments, err = json.Marshal(args); err != nil {
		return StartedJob{}, err
	}
	return h.begin(ctx, call, job, job.Lineage)
}

// allWorkers returns the workers of the tools that start jobs.
func (h *Backend) allWorkers() map[string]worker {
	workers := map[string]worker{"convert_midi_to_wav": workerOf(h.render)}
	for _, d := range h.defined {
		workers[d.name] = workerOf(func(ctx context.Context, t Task, in definedJob) (any, error) { return h.runDefined(ctx, t, d, in) })
	}
	return workers
}

// jobField is the field of a request with the id of its job.
const jobField = "client_job_id"

func (h *Backend) runDefined(ctx context.Context, t Task, d definedModel, in definedJob) (any, error) {
	args, err := d.spec.Decode(in.Arguments)
	if err != nil {
		return nil, err
	}
	request, err := d.spec.Request(args, func(kind, name string) (string, error) {
		if kind == modelspec.MIDI {
			return h.midiText(ctx, name)
		}
		clip, data, err := h.sound(ctx, name)
		if err == nil && d.prepare != nil {
			data, err = d.prepare(clip)
		}
		return base64.StdEncoding.EncodeToString(data), err
	})
	if err != nil {
		return nil, err
	}
	kin := in.Lineage
	kin.Tags = slices.Concat(d.tags, kin.Tags)
	g := generation{service: d.service, request: request, kin: kin, sources: d.spec.Contents(args), expects: d.spec.Expects, words: words(args)}
	for name, a := range d.spec.Arguments {
		if a.Content() {
			g.sent = append(g.sent, cmp.Or(a.Field, name))
		}
	}
	if d.jobID {
		request[jobField], g.sent = t.ID, append(g.sent, jobField)
	}
	switch d.spec.Result {
	case modelspec.MIDI:
		return h.compose(ctx, t, g)
	case modelspec.Audio:
		return h.generateAudio(ctx, t, g)
	default:
		return h.analyse(ctx, t, g)
	}
}

// words returns what a model is asked in words, for the description of what it makes.
func words(args map[string]any) string {
	for _, name := range []string{"prompt", "lyrics", "text"} {
		if text, ok := args[name].(string); ok {
			return text
		}
	}
	return ""
}

// midiText is a MIDI file in base64. It is decoded first, so that an invalid file is
// reported here.
func (h *Backend) midiText(ctx context.Context, name string) (string, error) {
	_, data, err := h.read(ctx, name, smf.MaxSize)
	if err != nil {
		return "", err
	}
	if _, err := smf.Decode(data); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(data), nil
}

// sound reads a WAV file and checks that it is not silent: models fail on silence
// without saying why.
func (h *Backend) sound(ctx context.Context, name string) (audio.Clip, []byte, error) {
	c, data, err := h.read(ctx, name, audio.MaxSize)
	if err != nil {
		return audio.Clip{}, nil, err
	}
	clip, _, err := audio.Decode(data)
	if err != nil {
		return audio.Clip{}, nil, err
	}
	if info := clip.Info(); info.IsSilent {
		return audio.Clip{}, nil, invalid("the sound %s is silent: its peak is at %.0f dB", c.Hash.Short(), info.PeakDB).WithHint("audio_info shows the levels of a file")
	}
	return clip, data, nil
}

// createFrom creates an artifact from a stored content that a model made. What the model only
// returned, such as its input, keeps the lineage that it has.
func (h *Backend) createFrom(ctx context.Context, hash string, m newArtifact) (Artifact, error) {
	c, err := h.files.FindFile(ctx, hash)
	if err != nil {
		return Artifact{}, err
	}
	create := func() (Artifact, error) {
		r, err := h.files.Open(ctx, c.Hash)
		if err != nil {
			return Artifact{}, err
		}
		defer func() { _ = r.Close() }()
		return h.create(ctx, r, m)
	}
	a, err := create()
	if errors.Is(err, artifact.ErrOwnAncestor) {
		m.Parent = ""
		return create()
	}
	return a, err
}

// ownModels are the tools that ask the models we know. Each is described as one that is
// configured would be.
func ownModels(s Services) []definedModel {
	return slices.Concat(orpheusModels(s), soundModels(s), anticipatoryModels(s))
}

// known is the service of a model that we know.
func known(name, address string, port int) service {
	address = cmp.Or(strings.TrimRight(address, "/"), fmt.Sprintf("http://127.0.0.1:%d", port))
	return service{name: name, address: address + "/predict", setting: "music.services." + name}
}

func task(name string) map[string]any { return map[string]any{"task": name} }

func orpheusModels(s Services) []definedModel {
	orpheus := known("orpheus", s.Orpheus, 2000)
	return []definedModel{
		{name: "orpheus_generate", service: orpheus, jobID: true, spec: modelspec.Spec{
			Title: "Generate music", Result: modelspec.MIDI, Send: task("generate"), Arguments: orpheusArguments(orpheusModel),
			Description: "Starts a job in which the Orpheus model generates music. The result has a MIDI artifact for each variation.",
		}},
		{name: "orpheus_generate_seeded", service: orpheus, jobID: true, spec: modelspec.Spec{
			Title: "Generate music from a seed", Result: modelspec.MIDI, Send: task("generate_seeded"),
			Description: "Starts a job in which the Orpheus model generates music similar to a MIDI file.",
			Arguments:   orpheusArguments(orpheusModel, mandatory(content("midi", "seed_hash", "midi_input", "what to begin from"))),
		}},
		{name: "orpheus_continue", service: orpheus, jobID: true, spec: modelspec.Spec{
			Title: "Continue music", Result: modelspec.MIDI, Send: task("continue"),
			Description: "Starts a job in which the Orpheus model continues a MIDI file.",
			Arguments:   orpheusArguments(orpheusModel, mandatory(content("midi", "input_hash", "midi_input", "what to continue"))),
		}},
		{name: "orpheus_bridge", service: known("orpheus_bridge", s.OrpheusBridge, 2002), jobID: true, spec: modelspec.Spec{
			Title: "Bridge music", Result: modelspec.MIDI,
			Description: "Starts a job in which the Orpheus model generates a transition from one MIDI file to another.",
			Arguments: orpheusArguments(
				mandatory(content("midi", "section_a_hash", "section_a", "what is before the bridge")),
				content("midi", "section_b_hash", "section_b", "what is after the bridge"),
			),
		}},
		{name: "orpheus_loops", service: known("orpheus_loops", s.OrpheusLoops, 2003), jobID: true, spec: modelspec.Spec{
			Title: "Generate loops", Result: modelspec.MIDI,
			Description: "Starts a job in which the Orpheus model generates loops, from a MIDI file or without one.",
			Arguments:   orpheusArguments(content("midi", "seed_hash", "seed_midi", "what to begin from")),
		}},
		{name: "orpheus_classify", service: known("orpheus_classifier", s.OrpheusClassifier, 2001), spec: modelspec.Spec{
			Title: "Classify music", Result: modelspec.Analysis, Expects: []string{"classification"}, Timeout: "1m",
			Description: "Starts a job in which the Orpheus model estimates whether a MIDI file was composed by a person.",
			Arguments:   arguments(mandatory(content("midi", "input_hash", "midi_input", "what to classify"))),
		}},
	}
}

func soundModels(s Services) []definedModel {
	return []definedModel{
		{name: "musicgen_generate", service: known("musicgen", s.MusicGen, 2006), spec: modelspec.Spec{
			Title: "Generate sound", Result: modelspec.Audio,
			Description: "Starts a job in which the MusicGen model generates audio from a text. The result is a WAV artifact.",
			Arguments: arguments(
				mandatory(text("prompt", 4096, "", "description of the sound")),
				number("duration", 0.5, 30, 10, "seconds"),
				number("temperature", 0.01, 2, 1, "how free it is"),
				integer("top_k", 1, 2048, 250, "number of most likely tokens to choose from"),
				number("top_p", 0.01, 1, 0.9, "nucleus sampling: probability mass to choose from"),
				number("guidance_scale", 0.1, 15, 3, "how closely it follows the prompt"),
				argument{"do_sample", modelspec.Argument{Type: "boolean", Default: true, Description: "false always takes the most likely token"}},
			),
		}},
		{name: "yue_generate", service: known("yue", s.YuE, 2008), tags: []string{"has:vocals"}, spec: modelspec.Spec{
			Title: "Generate a song", Result: modelspec.Audio, Timeout: "10m",
			Description: "Starts a job in which the YuE model generates a song from lyrics and a genre. The result is an audio artifact.",
			Arguments: arguments(
				mandatory(text("lyrics", 16384, "", "the lyrics")),
				text("genre", 256, "Pop", "the genre"),
				integer("max_new_tokens", 1, 20000, 3000, "maximum number of tokens"),
				integer("run_n_segments", 1, 16, 2, "number of segments"),
				argument{"seed", modelspec.Argument{Type: "integer", Default: 42.0, Description: "random seed"}},
			),
		}},
		{name: "clap_analyze", service: known("clap", s.CLAP, 2007), spec: modelspec.Spec{
			Title: "Analyse sound", Result: modelspec.Analysis, Timeout: "2m",
			Description: "Starts a job in which the CLAP model analyses genre, mood, similarity or embeddings of a WAV file.",
			Arguments: arguments(
				mandatory(content("audio", "audio_hash", "audio", "the sound")),
				content("audio", "audio_b_hash", "audio_b", "the other sound, for similarity"),
				argument{"tasks", modelspec.Argument{
					Type: "list", Max: new(5.0), Default: []any{"genre", "mood"}, Description: "embeddings, genre, mood, zero_shot or similarity",
				}},
				argument{"text_candidates", modelspec.Argument{Type: "list", Max: new(100.0), Description: "texts to choose from, for zero_shot"}},
			),
		}},
		{name: "beatthis_analyze", service: known("beatthis", s.BeatThis, 2012), prepare: beatSound, spec: modelspec.Spec{
			Title: "Find beats", Result: modelspec.Analysis, Expects: []string{"beats"}, Timeout: "2m",
			Description: "Starts a job in which the beat_this model finds beats, downbeats and tempo in the first 30 seconds of a WAV file.",
			Arguments:   arguments(mandatory(content("audio", "audio_hash", "audio", "the sound"))),
		}},
	}
}

func anticipatoryModels(s Services) []definedModel {
	anticipatory := known("anticipatory", s.Anticipatory, 2011)
	return []definedModel{
		{name: "anticipatory_generate", service: anticipatory, spec: modelspec.Spec{
			Title: "Generate polyphonic MIDI", Result: modelspec.MIDI, Send: task("generate"), Arguments: anticipatoryArguments(),
			Description: "Starts a job in which the Anticipatory Music Transformer generates polyphonic music. The result has a MIDI artifact for each variation.",
		}},
		{name: "anticipatory_continue", service: anticipatory, spec: modelspec.Spec{
			Title: "Continue polyphonic MIDI", Result: modelspec.MIDI, Send: task("continue"),
			Description: "Starts a job in which the Anticipatory Music Transformer continues the first seconds of a MIDI file.",
			Arguments: anticipatoryArguments(
				mandatory(content("midi", "input_hash", "midi_input", "what to begin from")),
				number("prime_seconds", 1, 60, 5, "seconds of the file that the music follows"),
			),
		}},
		{name: "anticipatory_embed", service: anticipatory, spec: modelspec.Spec{
			Title: "Embed MIDI", Result: modelspec.Analysis, Expects: []string{"embedding"}, Timeout: "1m", Send: task("embed"),
			Description: "Starts a job in which the Anticipatory Music Transformer computes an embedding of a MIDI file, to compare it with others.",
			Arguments: arguments(
				mandatory(content("midi", "input_hash", "midi_input", "what to begin from")), anticipatorySize,
				integer("embed_layer", -12, -1, -3, "layer of the model"),
			),
		}},
	}
}

// argument is an argument with its name.
type argument struct {
	name string
	modelspec.Argument
}

func arguments(list ...argument) map[string]modelspec.Argument {
	all := map[string]modelspec.Argument{}
	for _, a := range list {
		all[a.name] = a.Argument
	}
	return all
}

func number(name string, least, most, otherwise float64, about string) argument {
	return argument{name, modelspec.Argument{Type: "number", Min: &least, Max: &most, Default: otherwise, Description: about}}
}

func integer(name string, least, most, otherwise float64, about string) argument {
	a := number(name, least, most, otherwise, about)
	a.Type = "integer"
	return a
}

// text is a string; without a default, nothing is sent when it is not given.
func text(name string, most float64, otherwise, about string) argument {
	a := argument{name, modelspec.Argument{Type: "string", Max: &most, Description: about}}
	if otherwise != "" {
		a.Default = otherwise
	}
	return a
}

// content is a MIDI file or a sound, which is sent in a field.
func content(kind, name, field, about string) argument {
	return argument{name, modelspec.Argument{Type: kind, Field: field, Description: about}}
}

func mandatory(a argument) argument {
	a.Required = true
	if a.Type == "string" {
		a.Min = new(1.0)
	}
	return a
}

var orpheusModel = text("model", 64, "", "name of the model, such as base")

func orpheusArguments(more ...argument) map[string]modelspec.Argument {
	return arguments(append(more,
		number("temperature", 0.01, 2, 1, "how free it is"),
		number("top_p", 0.01, 1, 0.95, "nucleus sampling: probability mass to choose from"),
		integer("max_tokens", 1, 8192, 1024, "maximum number of tokens"),
		integer("num_variations", 1, 8, 1, "how many"),
	)...)
}

var anticipatorySize = argument{"model_size", modelspec.Argument{
	Type: "string", Values: []string{"small", "medium", "large"}, Default: "small", Description: "size of the model",
}}

func anticipatoryArguments(more ...argument) map[string]modelspec.Argument {
	return arguments(append(more, anticipatorySize,
		number("length_seconds", 1, 120, 20, "seconds of new music"),
		number("top_p", 0.1, 1, 0.95, "nucleus sampling: probability mass to choose from"),
		integer("num_variations", 1, 5, 1, "how many"),
	)...)
}

// beatSound converts a sound to the only format that beat_this accepts.
func beatSound(clip audio.Clip) ([]byte, error) {
	const rate, seconds = 22050, 30
	clip, err := clip.Mono().Trim(0, seconds).Resample(rate, audio.Medium)
	if err != nil {
		return nil, err
	}
	return clip.Encode(16)
}
