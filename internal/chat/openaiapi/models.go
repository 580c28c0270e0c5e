package openaiapi

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/chat/failure"
)

// agentModel is the agent's name as a model. With a colon and the name of one of the
// organisation's modes it answers in that mode.
const agentModel = "luanette"

// Model is a model as the API lists it.
type Model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// models is GET /v1/models.
func (h *Handler) models(w http.ResponseWriter, r *http.Request) error {
	list, err := h.list(r)
	if err != nil {
		return err
	}
	httpjson.JSON(w, http.StatusOK, map[string]any{"object": "list", "data": list})
	return nil
}

// model is GET /v1/models/{model}.
func (h *Handler) model(w http.ResponseWriter, r *http.Request) error {
	list, err := h.list(r)
	if err != nil {
		return err
	}
	name := r.PathValue("model")
	i := slices.IndexFunc(list, func(m Model) bool { return m.ID == name })
	if i < 0 {
		return unknownModel(name)
	}
	httpjson.JSON(w, http.StatusOK, list[i])
	return nil
}

func (h *Handler) list(r *http.Request) ([]Model, error) {
	person, err := personOf(r, "")
	if err != nil {
		return nil, err
	}
	modes, err := h.service.Modes(r.Context(), person.Org)
	if err != nil {
		return nil, err
	}
	names := []string{agentModel}
	for _, mode := range modes {
		names = append(names, agentModel+":"+mode)
	}
	list := make([]Model, len(names))
	for i, name := range names {
		list[i] = Model{ID: name, Object: "model", Created: h.began.Unix(), OwnedBy: agentModel}
	}
	return list, nil
}

// modeOf returns the mode that a model stands for, which may be empty.
func (h *Handler) modeOf(ctx context.Context, model, org string) (string, error) {
	if model == agentModel {
		return "", nil
	}
	mode, found := strings.CutPrefix(model, agentModel+":")
	if !found {
		return "", unknownModel(model)
	}
	modes, err := h.service.Modes(ctx, org)
	if err != nil {
		return "", err
	}
	if !slices.Contains(modes, mode) {
		return "", unknownModel(model)
	}
	return mode, nil
}

func unknownModel(name string) error {
	return paramError{"model", failure.As(failure.UnknownModel, fault.New(fault.NotFound, "the model %q does not exist", name).
		WithHint("use %s; GET /v1/models lists all", agentModel))}
}
