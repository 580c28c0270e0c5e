package hootenanny

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/music/audio"
	"github.com/luanette/luanette/internal/music/smf"
	"github.com/luanette/luanette/internal/tools/modelspec"
	"github.com/luanette/luanette/internal/tools/toolset"
)

func (h *Backend) modelTools() []toolset.Tool {
	return []toolset.Tool{
		define("orpheus_generate", asks(), begins[orpheusIn](h)),
		define("orpheus_generate_seeded", asks(), begins[orpheusSeededIn](h)),
		define("orpheus_continue", asks(), begins[orpheusContinueIn](h)),
		define("orpheus_bridge", asks(), begins[orpheusBridgeIn](h)),
		define("orpheus_loops", asks(), begins[orpheusLoopsIn](h)),
		define("orpheus_classify", asks(), begins[orpheusClassifyIn](h)),
		define("musicgen_generate", asks(), begins[musicgenIn](h)),
		define("yue_generate", asks(), begins[yueIn](h)),
		define("clap_analyze", asks(), begins[clapIn](h)),
		define("beatthis_analyze", asks(), begins[beatthisIn](h)),
	}
}

func (h *Backend) modelWorkers() map[string]worker {
	return map[string]worker{
		"orpheus_generate":        workerOf(h.orpheusGenerate),
		"orpheus_generate_seeded": workerOf(h.orpheusSeeded),
		"orpheus_continue":        workerOf(h.orpheusContinue),
		"orpheus_bridge":          workerOf(h.orpheusBridge),
		"orpheus_loops":           workerOf(h.orpheusLoops),
		"orpheus_classify":        workerOf(h.orpheusClassify),
		"musicgen_generate":       workerOf(h.musicgen),
		"yue_generate":            workerOf(h.yue),
		"clap_analyze":            workerOf(h.clap),
		"beatthis_analyze":        workerOf(h.beatthis),
	}
}

// modelIn is the arguments of a tool that uses a model.
type modelIn interface {
	kin() Lineage
	contents() []string // names of its input contents, which must exist
}

// begins starts a job with a tool's arguments, after checking that its contents
// exist.
func begins[In modelIn](h *Backend) func(ctx context.Context, call tool.Call, in In) (StartedJob, error) {
	return func(ctx context.Context, call tool.Call, in In) (StartedJob, error) {
		for _, name := range in.contents() {
			if name == "" {
				continue
			}
			if _, err := h.store.Find(ctx, name); err != nil {
				return StartedJob{}, err
			}
		}
		return h.begin(ctx, call, in, in.kin())
	}
}

func (k Lineage) kin() Lineage { return k }

// sampling is the sampling parameters of a model.
type sampling struct {
	Temperature float64 `json:"temperature,omitempty" jsonschema:"how free it is; default 1" min:"0.01" max:"2"`
	TopP        float64 `json:"top_p,omitempty" jsonschema:"nucleus sampling: probability mass to choose from; default 0.95" min:"0.01" max:"1"`
	MaxTokens   int     `json:"max_tokens,omitempty" jsonschema:"maximum number of tokens; default 1024" min:"1" max:"8192"`
	Variations  int     `json:"num_variations,omitempty" jsonschema:"how many; default 1" min:"1" max:"8"`
}

func (s sampling) orDefault() sampling {
	if s.Temperature == 0 {
		s.Temperature = 1
	}
	if s.TopP == 0 {
		s.TopP = 0.95
	}
	if s.MaxTokens == 0 {
		s.MaxTokens = 1024
	}
	if s.Variations == 0 {
		s.Variations = 1
	}
	return s
}

type orpheusIn struct {
	Model string `json:"model,omitempty" jsonschema:"name of the model, such as base" max:"64"`
	sampling
	Lineage
}

func (orpheusIn) contents() []string { return nil }

type orpheusSeededIn struct {
	Seed string `json:"seed_hash" jsonschema:"MIDI file to begin from: its hash, or its artifact's id" min:"12" max:"80"`
	orpheusIn
}

func (in orpheusSeededIn) contents() []string { return []string{in.Seed} }

type orpheusContinueIn struct {
	Input string `json:"input_hash" jsonschema:"MIDI file to continue: its hash, or its artifact's id" min:"12" max:"80"`
	orpheusIn
}

func (in orpheusContinueIn) contents() []string { return []string{in.Input} }

// orpheusRequest is a request to the service.
type orpheusRequest struct {
	Model       string  `json:"model,omitempty"`
	Task        string  `json:"task,omitempty"`
	MIDI        string  `json:"midi_input,omitempty"`
	SectionA    string  `json:"section_a,omitempty"`
	SectionB    string  `json:"section_b,omitempty"`
	Seed        string  `json:"seed_midi,omitempty"`
	Temperature float64 `json:"temperature"`
	TopP        float64 `json:"top_p"`
	MaxTokens   int     `json:"max_tokens"`
	Variations  int     `json:"num_variations"`
	JobID       string  `json:"client_job_id,omitempty"`
}

func (s sampling) request(t Task) orpheusRequest {
	s = s.orDefault()
	return orpheusRequest{Temperature: s.Temperature, TopP: s.TopP, MaxTokens: s.MaxTokens, Variations: s.Variations, JobID: t.ID}
}

func (h *Backend) orpheusGenerate(ctx context.Context, t Task, in orpheusIn) (any, error) {
	q := in.request(t)
	q.Model, q.Task = in.Model, "generate"
	return h.compose(ctx, t, generation{service: h.service("orpheus"), request: q, kin: in.Lineage})
}

func (h *Backend) orpheusSeeded(ctx context.Context, t Task, in orpheusSeededIn) (any, error) {
	return h.composeFrom(ctx, t, in.orpheusIn, "generate_seeded", in.Seed)
}

func (h *Backend) orpheusContinue(ctx context.Context, t Task, in orpheusContinueIn) (any, error) {
	return h.composeFrom(ctx, t, in.orpheusIn, "continue", in.Input)
}

func (h *Backend) composeFrom(ctx context.Context, t Task, in orpheusIn, task, source string) (any, error) {
	q := in.request(t)
	q.Model, q.Task = in.Model, task
	var err error
	if q.MIDI, err = h.midiText(ctx, source); err != nil {
		return nil, err
	}
	return h.compose(ctx, t, generation{service: h.service("orpheus"), request: q, kin: in.Lineage, sources: []string{source}})
}

type orpheusBridgeIn struct {
	SectionA string `json:"section_a_hash" jsonschema:"MIDI file before the bridge: its hash, or its artifact's id" min:"12" max:"80"`
	SectionB string `json:"section_b_hash,omitempty" jsonschema:"MIDI file after the bridge" max:"80"`
	sampling
	Lineage
}

func (in orpheusBridgeIn) contents() []string { return []string{in.SectionA, in.SectionB} }

func (h *Backend) orpheusBridge(ctx context.Context, t Task, in orpheusBridgeIn) (any, error) {
	q := in.request(t)
	var err error
	if q.SectionA, err = h.midiText(ctx, in.SectionA); err == nil && in.SectionB != "" {
		q.SectionB, err = h.midiText(ctx, in.SectionB)
	}
	if err != nil {
		return nil, err
	}
	return h.compose(ctx, t, generation{service: h.service("orpheus_bridge"), request: q, kin: in.Lineage, sources: in.contents()})
}

type orpheusLoopsIn struct {
	Seed string `json:"seed_hash,omitempty" jsonschema:"MIDI file to begin from" max:"80"`
	sampling
	Lineage
}

func (in orpheusLoopsIn) contents() []string { return []string{in.Seed} }

func (h *Backend) orpheusLoops(ctx context.Context, t Task, in orpheusLoopsIn) (any, error) {
	q := in.request(t)
	if in.Seed != "" {
		var err error
		if q.Seed, err = h.midiText(ctx, in.Seed); err != nil {
			return nil, err
		}
	}
	return h.compose(ctx, t, generation{service: h.service("orpheus_loops"), request: q, kin: in.Lineage, sources: in.contents()})
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

// createFrom creates an artifact from a stored content.
func (h *Backend) createFrom(ctx context.Context, hash string, m newArtifact) (Artifact, error) {
	c, err := h.store.Find(ctx, hash)
	if err != nil {
		return Artifact{}, err
	}
	r, err := h.store.Open(ctx, c.Hash)
	if err != nil {
		return Artifact{}, err
	}
	defer func() { _ = r.Close() }()
	return h.create(ctx, r, m)
}

type orpheusClassifyIn struct {
	Input string `json:"input_hash" jsonschema:"MIDI file: its hash, or its artifact's id" min:"12" max:"80"`
}

func (orpheusClassifyIn) kin() Lineage          { return Lineage{} }
func (in orpheusClassifyIn) contents() []string { return []string{in.Input} }

func (h *Backend) orpheusClassify(ctx context.Context, t Task, in orpheusClassifyIn) (any, error) {
	text, err := h.midiText(ctx, in.Input)
	if err != nil {
		return nil, err
	}
	return h.analyse(ctx, t, generation{
		service: h.service("orpheus_classifier"), request: map[string]any{"midi_input": text}, sources: in.contents(), expects: []string{"classification"},
	})
}

type musicgenIn struct {
	Prompt      string  `json:"prompt" jsonschema:"description of the sound" min:"1" max:"4096"`
	Duration    float64 `json:"duration,omitempty" jsonschema:"seconds; default 10" min:"0.5" max:"30"`
	Temperature float64 `json:"temperature,omitempty" jsonschema:"how free it is; default 1" min:"0.01" max:"2"`
	TopK        int     `json:"top_k,omitempty" jsonschema:"number of most likely tokens to choose from; default 250" min:"1" max:"2048"`
	TopP        float64 `json:"top_p,omitempty" jsonschema:"nucleus sampling: probability mass to choose from; default 0.9" min:"0.01" max:"1"`
	Guidance    float64 `json:"guidance_scale,omitempty" jsonschema:"how closely it follows the prompt; default 3" min:"0.1" max:"15"`
	DoSample    *bool   `json:"do_sample,omitempty" jsonschema:"false always takes the most likely token; default true"`
	Lineage
}

func (musicgenIn) contents() []string { return nil }

func (h *Backend) musicgen(ctx context.Context, t Task, in musicgenIn) (any, error) {
	request := map[string]any{
		"prompt": in.Prompt, "duration": or(in.Duration, 10), "temperature": or(in.Temperature, 1), "top_k": or(in.TopK, 250),
		"top_p": or(in.TopP, 0.9), "guidance_scale": or(in.Guidance, 3), "do_sample": in.DoSample == nil || *in.DoSample,
	}
	return h.generateAudio(ctx, t, generation{service: h.service("musicgen"), request: request, kin: in.Lineage, words: in.Prompt})
}

type yueIn struct {
	Lyrics    string `json:"lyrics" jsonschema:"the lyrics" min:"1" max:"16384"`
	Genre     string `json:"genre,omitempty" jsonschema:"default Pop" max:"256"`
	MaxTokens int    `json:"max_new_tokens,omitempty" jsonschema:"maximum number of tokens; default 3000" min:"1" max:"20000"`
	Segments  int    `json:"run_n_segments,omitempty" jsonschema:"number of segments; default 2" min:"1" max:"16"`
	Seed      *int   `json:"seed,omitempty" jsonschema:"random seed; default 42"`
	Lineage
}

func (yueIn) contents() []string { return nil }

func (h *Backend) yue(ctx context.Context, t Task, in yueIn) (any, error) {
	seed := 42
	if in.Seed != nil {
		seed = *in.Seed
	}
	request := map[string]any{
		"lyrics": in.Lyrics, "genre": or(in.Genre, "Pop"), "max_new_tokens": or(in.MaxTokens, 3000), "run_n_segments": or(in.Segments, 2), "seed": seed,
	}
	kin := in.Lineage
	kin.Tags = append([]string{"has:vocals"}, kin.Tags...)
	return h.generateAudio(ctx, t, generation{service: h.service("yue"), request: request, kin: kin, words: in.Lyrics})
}

// or returns value, or otherwise if value is zero.
func or[T comparable](value, otherwise T) T {
	var none T
	if value == none {
		return otherwise
	}
	return value
}

type clapIn struct {
	Audio      string   `json:"audio_hash" jsonschema:"WAV file: its hash, or its artifact's id" min:"12" max:"80"`
	Tasks      []string `json:"tasks,omitempty" jsonschema:"embeddings, genre, mood, zero_shot or similarity; default genre and mood" max:"5"`
	AudioB     string   `json:"audio_b_hash,omitempty" jsonschema:"the other WAV file, for similarity" max:"80"`
	Candidates []string `json:"text_candidates,omitempty" jsonschema:"texts to choose from, for zero_shot" max:"100"`
}

func (clapIn) kin() Lineage          { return Lineage{} }
func (in clapIn) contents() []string { return []string{in.Audio, in.AudioB} }

func (h *Backend) clap(ctx context.Context, t Task, in clapIn) (any, error) {
	request := map[string]any{"tasks": in.Tasks}
	if len(in.Tasks) == 0 {
		request["tasks"] = []string{"genre", "mood"}
	}
	_, data, err := h.sound(ctx, in.Audio)
	if err != nil {
		return nil, err
	}
	request["audio"] = base64.StdEncoding.EncodeToString(data)
	if in.AudioB != "" {
		if _, data, err = h.sound(ctx, in.AudioB); err != nil {
			return nil, err
		}
		request["audio_b"] = base64.StdEncoding.EncodeToString(data)
	}
	if len(in.Candidates) > 0 {
		request["text_candidates"] = in.Candidates
	}
	return h.analyse(ctx, t, generation{service: h.service("clap"), request: request, sources: in.contents()})
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

type beatthisIn struct {
	Audio string `json:"audio_hash" jsonschema:"WAV file: its hash, or its artifact's id" min:"12" max:"80"`
}

func (beatthisIn) kin() Lineage          { return Lineage{} }
func (in beatthisIn) contents() []string { return []string{in.Audio} }

// The format that beat_this accepts.
const (
	beatRate    = 22050
	beatSeconds = 30
)

func (h *Backend) beatthis(ctx context.Context, t Task, in beatthisIn) (any, error) {
	clip, _, err := h.sound(ctx, in.Audio)
	if err != nil {
		return nil, err
	}
	clip, err = clip.Mono().Trim(0, beatSeconds).Resample(beatRate, audio.Medium)
	if err != nil {
		return nil, err
	}
	data, err := clip.Encode(16)
	if err != nil {
		return nil, err
	}
	return h.analyse(ctx, t, generation{
		service: h.service("beatthis"), request: map[string]any{"audio": base64.StdEncoding.EncodeToString(data)}, sources: in.contents(), expects: []string{"beats"},
	})
}

// definedModel is a tool that asks a model which is described by a Spec.
type definedModel struct {
	name    string
	spec    modelspec.Spec
	service service
}

// defineModels reads the descriptions of models: those of the configuration and our own.
func (h *Backend) defineModels() error {
	for _, name := range slices.Sorted(maps.Keys(h.options.Models)) {
		if err := h.options.Models[name].Check(name); err != nil {
			return err
		}
		h.defined = append(h.defined, definedModel{name, h.options.Models[name], service{
			name: name, setting: "music.models." + name + ".url",
		}})
	}
	own := anticipatorySpecs(h.options.Services.Anticipatory)
	for _, name := range slices.Sorted(maps.Keys(own)) {
		h.defined = append(h.defined, definedModel{name, own[name], service{name: "anticipatory", setting: "music.services.anticipatory"}})
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
		if _, err := h.store.Find(ctx, name); err != nil {
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

// definedWorkers returns the workers of the described models.
func (h *Backend) definedWorkers() map[string]worker {
	workers := map[string]worker{}
	for _, d := range h.defined {
		workers[d.name] = workerOf(func(ctx context.Context, t Task, in definedJob) (any, error) { return h.runDefined(ctx, t, d, in) })
	}
	return workers
}

func (h *Backend) runDefined(ctx context.Context, t Task, d definedModel, in definedJob) (any, error) {
	args, err := d.spec.Decode(in.Arguments)
	if err != nil {
		return nil, err
	}
	request, err := d.spec.Request(args, func(kind, name string) (string, error) {
		if kind == modelspec.MIDI {
			return h.midiText(ctx, name)
		}
		_, data, err := h.sound(ctx, name)
		return base64.StdEncoding.EncodeToString(data), err
	})
	if err != nil {
		return nil, err
	}
	g := generation{service: d.service, request: request, kin: in.Lineage, sources: d.spec.Contents(args), expects: d.spec.Expects, words: words(args)}
	for name, a := range d.spec.Arguments {
		if a.Content() {
			g.sent = append(g.sent, cmp.Or(a.Field, name))
		}
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

// anticipatorySpecs are the tools of the Anticipatory Music Transformer. Its service is
// described as one that is configured would be.
func anticipatorySpecs(address string) map[string]modelspec.Spec {
	number := func(least, most, otherwise float64, about string) modelspec.Argument {
		return modelspec.Argument{Type: "number", Min: &least, Max: &most, Default: otherwise, Description: about}
	}
	integer := func(least, most, otherwise float64, about string) modelspec.Argument {
		a := number(least, most, otherwise, about)
		a.Type = "integer"
		return a
	}
	size := modelspec.Argument{Type: "string", Values: []string{"small", "medium", "large"}, Default: "small", Description: "size of the model"}
	input := modelspec.Argument{Type: "midi", Field: "midi_input", Required: true, Description: "what to begin from"}
	sampling := func(more map[string]modelspec.Argument) map[string]modelspec.Argument {
		more["length_seconds"] = number(1, 120, 20, "seconds of new music")
		more["top_p"] = number(0.1, 1, 0.95, "nucleus sampling: probability mass to choose from")
		more["num_variations"] = integer(1, 5, 1, "how many")
		more["model_size"] = size
		return more
	}
	return map[string]modelspec.Spec{
		"anticipatory_generate": {
			URL: address + "/predict", Title: "Generate polyphonic MIDI", Result: modelspec.MIDI, Send: map[string]any{"task": "generate"},
			Description: "Starts a job in which the Anticipatory Music Transformer generates polyphonic music. The result has a MIDI artifact for each variation.",
			Arguments:   sampling(map[string]modelspec.Argument{}),
		},
		"anticipatory_continue": {
			URL: address + "/predict", Title: "Continue polyphonic MIDI", Result: modelspec.MIDI, Send: map[string]any{"task": "continue"},
			Description: "Starts a job in which the Anticipatory Music Transformer continues the first seconds of a MIDI file.",
			Arguments: sampling(map[string]modelspec.Argument{
				"input_hash": input, "prime_seconds": number(1, 60, 5, "seconds of the file that the music follows"),
			}),
		},
		"anticipatory_embed": {
			URL: address + "/predict", Title: "Embed MIDI", Result: modelspec.Analysis, Expects: []string{"embedding"}, Timeout: "1m", Send: map[string]any{"task": "embed"},
			Description: "Starts a job in which the Anticipatory Music Transformer computes an embedding of a MIDI file, to compare it with others.",
			Arguments: map[string]modelspec.Argument{
				"input_hash": input, "model_size": size, "embed_layer": integer(-12, -1, -3, "layer of the model"),
			},
		},
	}
}
