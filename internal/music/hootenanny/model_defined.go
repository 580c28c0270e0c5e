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
	"github.com/luanette/luanette/internal/tools/modelspec"
	"github.com/luanette/luanette/internal/tools/toolset"
)

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
