package chatapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/chat/llm"
)

// Model describes the model that answers.
type Model struct {
	Configured bool     `json:"configured"`
	Problem    string   `json:"problem,omitempty" doc:"why no message can be answered, and what to do"`
	Provider   string   `json:"provider,omitempty"`
	Model      string   `json:"model,omitempty"`
	Models     []string `json:"models" doc:"that a message can choose, the usual one first"`
	Media      []string `json:"media" doc:"what it takes beside text: image, audio, file"`
	Voice      bool     `json:"voice" doc:"whether voice messages are transcribed"`
}

// model is GET /api/v1/model.
func (d *Handler) model(w http.ResponseWriter, _ *http.Request) error {
	about := d.options.Model
	m := Model{Configured: d.options.ModelError == nil, Provider: about.Provider, Model: about.Model, Models: d.models(), Media: []string{}, Voice: d.options.Transcribe != nil}
	if !m.Configured {
		f, _ := failureOf(d.options.ModelError)
		m.Problem = f.Message
	}
	for _, kind := range []llm.Kind{llm.Image, llm.Audio, llm.File} {
		if about.Takes(kind) {
			m.Media = append(m.Media, string(kind))
		}
	}
	httpjson.JSON(w, http.StatusOK, m)
	return nil
}

// models are the names of the models that a message can choose.
func (d *Handler) models() []string {
	names := []string{}
	for _, m := range d.options.Models {
		names = append(names, m.Model)
	}
	if len(names) == 0 && d.options.Model.Model != "" {
		names = append(names, d.options.Model.Model)
	}
	return names
}

// checkModel refuses a model that cannot be chosen.
func (d *Handler) checkModel(name string) error {
	if names := d.models(); name != "" && !slices.Contains(names, name) {
		return fault.New(fault.InvalidParams, "the model %q cannot be chosen", name).
			WithHint("use one of %s, or set [chat] models in luanette.toml", strings.Join(names, ", "))
	}
	return nil
}
