// Package openaiapi serves the agent as a model of OpenAI's chat completions API, for
// chat clients and libraries that know that API: POST /v1/chat/completions and GET
// /v1/models. The client keeps the conversation and sends it as a whole. The agent uses
// its own tools by itself; calls of the client's tools are returned to the client.
package openaiapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/queue"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/failure"
	"github.com/luanette/luanette/internal/core/principal"
)

// Service answers conversations.
type Service interface {
	Complete(ctx context.Context, c conversation.Completion, emit func(agent.Event)) (agent.Reply, error)
	// Modes returns the names of an organisation's modes.
	Modes(ctx context.Context, org string) ([]string, error)
}

// Options are the options of a Handler. The zero value of each field is usable.
type Options struct {
	Browsers  netguard.Browsers // browser origins that may send requests
	Keepalive time.Duration     // interval of comments on a silent stream; zero means 15 s
	Rate      int               // requests per minute and person; zero means 300
	Log       *slog.Logger
}

// Handler serves everything under /v1.
type Handler struct {
	service Service
	options Options
	rates   queue.RateLimiter
	began   time.Time // the models' time of creation
}

// New makes the handler of a service.
func New(service Service, o Options) *Handler {
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
		return principal.Route{Pattern: pattern, Scope: scope, Handler: h.handle(does), Refuse: refuseAs, AnyKey: true}
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

// handle refuses cross-site requests of browsers and converts errors to responses.
func (h *Handler) handle(does func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		err := h.options.Browsers.Refusal(r)
		if err == nil {
			err = does(w, r)
		}
		if err != nil {
			refuse(w, err)
		}
	})
}
