// Package chatapi serves the HTTP API of the chat: it accepts messages and returns
// answers, in the response, as a stream or by webhook, and serves the settings of people
// and organisations. Package conversation implements what the API offers.
package chatapi

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/llm"
)

// Options are the options of a Handler. The zero value of each field is usable.
type Options struct {
	Browsers netguard.Browsers // browser origins that may send requests
	// Debug adds tool_use and tool_result to streams, with the arguments and results of
	// tools.
	Debug     bool
	Keepalive time.Duration     // interval of keepalive events on a silent stream; zero means 15 s
	Rate      int               // messages per minute and person; zero means 300
	Webhooks  http.RoundTripper // makes requests to callback URLs, and refuses those that are not allowed; nil means http.DefaultTransport
	// Model is the model that answers, for people; ModelError is why there is none.
	Model      llm.About
	Models     []llm.About // that a message can choose, Model first; nil means only Model
	ModelError error
	// Transcribe returns what is said in a sound; nil refuses voice messages.
	Transcribe func(ctx context.Context, sound llm.Media) (string, error)
	Token      secret.Text // sent to the callbacks of Receivers as authentication; may be empty
	// Receivers are the origins of callbacks that get the token, such as
	// https://gateway.example: callers choose the addresses of their callbacks.
	Receivers []string
	Usage     UsageReporter // nil means that nothing is counted
	// Audit records what callers read and delete of other people; nil records nothing.
	Audit   func(ctx context.Context, action, subject string, detail []byte)
	Log     *slog.Logger
	Clock   clock.Clock
	Version string
}

// Handler serves everything under /api/v1 that concerns conversations.
type Handler struct {
	service *conversation.Service
	options Options
	rates   rates
	// receivers are the origins of Options.Receivers.
	receivers []string
	hooks     sync.WaitGroup // webhooks in progress
	ending    context.Context
	end       context.CancelFunc
}

// New makes the handler of a conversation service.
func New(service *conversation.Service, o Options) *Handler {
	if o.Keepalive <= 0 {
		o.Keepalive = 15 * time.Second
	}
	if o.Rate <= 0 {
		o.Rate = 300
	}
	if o.Webhooks == nil {
		o.Webhooks = http.DefaultTransport
	}
	if o.Usage == nil {
		o.Usage = nothingUsed{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	d := &Handler{service: service, options: o, rates: rates{most: o.Rate, clock: o.Clock}, receivers: origins(o.Receivers)}
	d.ending, d.end = context.WithCancel(context.Background())
	service.OnResume(d.callBack)
	return d
}

// Close stops webhooks and waits for them. They are sent again when the turn runs again.
func (d *Handler) Close() {
	d.end()
	d.hooks.Wait()
}
