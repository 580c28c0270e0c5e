// Package chatapi is the door for programs that want an agent behind an HTTP
// endpoint: messages in, answers out, at once, as a stream or by webhook; and what
// people and organisations may set. It knows the protocol; what a conversation is,
// talk knows.
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
)

// Options are the door's choices. The zero value of each is sensible.
type Options struct {
	Browsers netguard.Browsers // whose pages may
	// Debug adds tool_use and tool_result to streams, which show what tools were
	// asked and what they said.
	Debug     bool
	Keepalive time.Duration     // silence after which a stream says that it lives; zero means 15 s
	Rate      int               // messages a minute of one person; zero means 300
	Webhooks  http.RoundTripper // reaches callback addresses, and only those that may be; nil means http.DefaultTransport
	Token     secret.Text       // told to callbacks, so that they know us; may be empty
	Log       *slog.Logger
	Clock     clock.Clock
	Version   string
}

// Handler answers everything under /api/v1 that is about conversations.
type Handler struct {
	room    *conversation.Service
	options Options
	rates   rates
	hooks   sync.WaitGroup // webhooks under way
	ending  context.Context
	end     context.CancelFunc
}

// New makes the door of a room.
func New(room *conversation.Service, o Options) *Handler {
	if o.Keepalive <= 0 {
		o.Keepalive = 15 * time.Second
	}
	if o.Rate <= 0 {
		o.Rate = 300
	}
	if o.Webhooks == nil {
		o.Webhooks = http.DefaultTransport
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	d := &Handler{room: room, options: o, rates: rates{most: o.Rate, clock: o.Clock}}
	d.ending, d.end = context.WithCancel(context.Background())
	room.OnResume(d.callBack)
	return d
}

// Close stops webhooks and waits for them. What they had to tell is told again
// when the turn is made again.
func (d *Handler) Close() {
	d.end()
	d.hooks.Wait()
}
