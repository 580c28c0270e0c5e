// Package openaiapi serves the agent as a model of OpenAI's chat completions API, for
// chat clients and libraries that know that API: POST /v1/chat/completions and GET
// /v1/models. The client keeps the conversation and sends it as a whole. The agent uses
// its own tools by itself; calls of the client's tools are returned to the client.
package openaiapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/base/queue"
	"github.com/luanette/luanette/internal/chat/completion"
	"github.com/luanette/luanette/internal/chat/failure"
	"github.com/luanette/luanette/internal/core/principal"
)

// Options are the options of a Handler. The zero value of each field is usable.
type Options struct {
	Keepalive time.Duration // interval of comments on a silent stream; zero means 15 s
	Rate      int           // requests per minute and person; zero means 300
	Log       *slog.Logger
}

// Handler serves everything under /v1.
type Handler struct {
	service *completion.Service
	options Options
	rates   queue.RateLimiter
	began   time.Time // the models' time of creation
}

// New makes the handler of a service.
func New(service *completion.Service, o Options) *Handler {
	if o.Keepalive <= 0 {
		o.Keepalive = 15 * time.Second
	}
	if o.Rate <= 0 {
		o.Rate = 300
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Handler{service: service, options: o, began: time.Now()}
}

// Routes returns the paths of this API and the scope that each needs.
func (h *Handler) Routes() []principal.Route {
	route := func(pattern string, scope principal.Scope, does func(w http.ResponseWriter, r *http.Request) error) principal.Route {
		return principal.Route{Pattern: pattern, Scope: scope, Write: h.handle(does), MaxBody: maxBody, Refuse: refuseAs, Bearer: true, AnyKey: true}
	}
	return []principal.Route{
		route("POST /v1/chat/completions", principal.Chat, h.complete).Reads("the JSON of OpenAI, and any fields"),
		route("GET /v1/models", principal.Chat, h.models),
		route("GET /v1/models/{model...}", principal.Chat, h.model),
		route("/v1/", principal.Open, func(_ http.ResponseWriter, r *http.Request) error {
			return failure.As(failure.NotFound, fault.New(fault.NotFound, "no endpoint %s %s", r.Method, r.URL.Path).
				WithHint("this server has POST /v1/chat/completions and GET /v1/models"))
		}).Reads(principal.NoBody),
	}
}

// handle converts errors to responses.
func (h *Handler) handle(does func(w http.ResponseWriter, r *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		id := failure.RequestID(w)
		if err := does(w, r); err != nil {
			h.options.Log.WarnContext(r.Context(), "request_error", "event", "request_error", "request_id", id, "path", r.URL.Path, "error", err, "code", fault.CodeOf(err))
			refuse(w, err) // by its own kind, not only by a status
		}
		return nil
	}
}

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

// errorBody is the body of every error, and an event of a stream that breaks off.
type errorBody struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// word is how clients of OpenAI know a kind of failure.
type word struct {
	status     int
	name, code string // code may be empty
	retry      int    // seconds after which a retry may succeed
}

var words = map[failure.Kind]word{
	failure.Internal:     {http.StatusInternalServerError, "server_error", "internal_error", 0},
	failure.Invalid:      {http.StatusBadRequest, "invalid_request_error", "", 0},
	failure.InvalidAudio: {http.StatusBadRequest, "invalid_request_error", "", 0},
	failure.NoHearing:    {http.StatusServiceUnavailable, "server_error", "unavailable", 5},
	failure.TooLarge:     {http.StatusRequestEntityTooLarge, "invalid_request_error", "request_too_large", 0},
	failure.Unauthorized: {http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", 0},
	failure.Forbidden:    {http.StatusForbidden, "permission_error", "insufficient_permissions", 0},
	failure.NotFound:     {http.StatusNotFound, "invalid_request_error", "unknown_url", 0},
	failure.UnknownModel: {http.StatusNotFound, "invalid_request_error", "model_not_found", 0},
	failure.Conflict:     {http.StatusConflict, "invalid_request_error", "conflict", 0},
	failure.Busy:         {http.StatusTooManyRequests, "requests", "rate_limit_exceeded", 10},
	failure.RateLimited:  {http.StatusTooManyRequests, "requests", "rate_limit_exceeded", 10},
	failure.OverBudget:   {http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota", 0},
	failure.ModelLimited: {http.StatusTooManyRequests, "requests", "rate_limit_exceeded", 10},
	failure.ModelBusy:    {http.StatusServiceUnavailable, "server_error", "model_unavailable", 5},
	failure.ModelKey:     {http.StatusBadGateway, "server_error", "model_key_refused", 0},
	failure.ModelUnset:   {http.StatusServiceUnavailable, "server_error", "model_not_configured", 0},
	failure.ModelBroken:  {http.StatusBadGateway, "server_error", "model_error", 5},
	failure.ModelFailed:  {http.StatusBadGateway, "server_error", "model_error", 0},
	failure.ModelRefused: {http.StatusBadRequest, "invalid_request_error", "context_length_exceeded", 0},
	failure.TimedOut:     {http.StatusGatewayTimeout, "server_error", "timeout", 0},
	failure.Unavailable:  {http.StatusServiceUnavailable, "server_error", "unavailable", 5},
	failure.Moved:        {http.StatusServiceUnavailable, "server_error", "unavailable", 5},
}

// paramError is an error in one field of a request.
type paramError struct {
	param string
	error
}

func (e paramError) Unwrap() error { return e.error }

// bad returns the error of a field.
func bad(param, format string, args ...any) error {
	return paramError{param, fault.New(fault.InvalidParams, format, args...)}
}

// spentError is an error after which clients must not send the request again by
// themselves: tools were called for it.
type spentError struct{ error }

func (e spentError) Unwrap() error { return e.error }

// ofTurn classifies an error of the agent.
func ofTurn(err error) error {
	err = failure.OfTurn(err)
	if failure.Of(err) == failure.OverBudget {
		return spentError{err} // it stays so for hours
	}
	return err
}

func bodyOf(err error, w word) errorBody {
	detail := errorDetail{Message: failure.Message(err), Type: w.name}
	var field paramError
	if errors.As(err, &field) {
		detail.Param = &field.param
	}
	if w.code != "" {
		detail.Code = &w.code
	}
	return errorBody{detail}
}

// refuse responds with an error.
func refuse(w http.ResponseWriter, err error) { refuseWith(w, words[failure.Of(err)], err) }

// refuseAs responds to a request that was refused before it reached this package.
func refuseAs(w http.ResponseWriter, _ *http.Request, status int, err error) {
	known := words[failure.Of(err)]
	if status == http.StatusUnauthorized {
		known = words[failure.Unauthorized]
	}
	known.status = status
	refuseWith(w, known, err)
}

func refuseWith(w http.ResponseWriter, known word, err error) {
	failure.RequestID(w)
	var spent spentError
	if errors.As(err, &spent) {
		w.Header().Set("X-Should-Retry", "false") // OpenAI's libraries repeat requests otherwise
	}
	if after, ok := principal.RetryAfter(err); ok {
		w.Header().Set("Retry-After", principal.RetryHeader(after))
	} else if known.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(known.retry))
	}
	httpjson.JSON(w, known.status, bodyOf(err, known))
}
