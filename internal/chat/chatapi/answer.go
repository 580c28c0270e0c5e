package chatapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/failure"
	"github.com/luanette/luanette/internal/chat/turn"
	"github.com/luanette/luanette/internal/core/principal"
)

// say passes a message to the conversation service and logs it.
func (d *Handler) say(r *request, m conversation.Message) (*turn.Turn, error) {
	d.log(r.Context(), slog.LevelInfo, "request_received", m.RequestID, "user_id", m.Person.User, "client_id", m.Client, "path", r.URL.Path)
	t, err := d.service.Send(context.WithoutCancel(r.Context()), m)
	if err != nil {
		return nil, err
	}
	r.turn = t
	d.log(r.Context(), slog.LevelInfo, "do_routed", m.RequestID, "user_id", m.Person.User, "do_id", m.Person.String(), "message_id", t.ID)
	return t, nil
}

// log logs an event as existing clients' tools search it.
func (d *Handler) log(ctx context.Context, level slog.Level, event, id string, facts ...any) {
	all := append([]any{"event", event, "request_id", id, "timestamp", d.options.Clock.Now().UnixMilli()}, facts...)
	d.options.Log.Log(ctx, level, event, all...) //nolint:sloglint // constants of the callers
}

// failed are the facts about an error. Of a defect they have where it was noticed.
func failed(err error) []any {
	facts := []any{"error", err.Error(), "code", fault.CodeOf(err)}
	if fault.CodeOf(err) == fault.Internal {
		facts = append(facts, "stack", string(debug.Stack()))
	}
	return facts
}

// follow waits for the outcome of a turn and logs it, also if the client has
// disconnected before. The id is that of the request that waits.
func (d *Handler) follow(ctx context.Context, id string, t *turn.Turn, see func(agent.Event) error) (Response, error) {
	began := time.Now()
	reply, err := t.Follow(ctx, see)
	if errors.As(err, &turn.Unfollowed{}) {
		err = movedError(t) // or the client has disconnected and reads nothing
		if d.ending.Err() != nil {
			return Response{}, err
		}
		d.hooks.Go(func() { // the turn outlives the request
			if reply, err := t.Wait(d.ending); d.ending.Err() == nil {
				d.report(d.ending, waiting{id, t, began, true}, reply, err)
			}
		})
		return Response{}, err
	}
	d.report(ctx, waiting{id, t, began, false}, reply, err)
	if errors.Is(err, turn.ErrMoved) {
		return Response{}, movedError(t)
	}
	if err != nil {
		return Response{}, failure.OfTurn(err)
	}
	return responseOf(t, id, reply), nil
}

// movedError says how to get the answer to a message that is answered elsewhere.
func movedError(t *turn.Turn) error {
	key := cmp.Or(t.Message.Key, t.ID)
	return movedTo{key, failure.As(failure.Moved, fault.New(fault.Unavailable, "the server is shutting down; the message is stored and will be answered").
		WithHint("send it again with message_key %s to get its answer, from another node or after the restart", key))}
}

// movedTo is an error of a message that is answered elsewhere.
type movedTo struct {
	key string
	error
}

func (m movedTo) Unwrap() error { return m.error }

// waiting is a request that waits for a turn.
type waiting struct {
	id    string
	turn  *turn.Turn
	began time.Time
	gone  bool // the client has disconnected
}

// report logs the outcome of a turn.
func (d *Handler) report(ctx context.Context, w waiting, reply agent.Reply, err error) {
	facts := []any{"user_id", w.turn.Message.Person.User, "message_id", w.turn.ID}
	if reply.Trace != "" {
		facts = append(facts, "trace_id", reply.Trace)
	}
	if w.gone {
		facts = append(facts, "client_gone", true)
	}
	if err != nil {
		d.log(ctx, slog.LevelError, "request_error", w.id, append(facts, failed(err)...)...)
		return
	}
	d.log(ctx, slog.LevelInfo, "request_complete", w.id,
		append(facts, "duration_ms", time.Since(w.began).Milliseconds(), "iterations", reply.Iterations, "status", http.StatusOK)...)
}

func responseOf(t *turn.Turn, id string, reply agent.Reply) Response {
	answer := Response{
		Responses: reply.Responses, ResponseLanguage: reply.Language, MessageID: t.ID, RequestID: id,
		Model: reply.Model, Usage: reply.Usage, Warnings: t.Message.Warnings, Transcript: t.Message.Transcript, TraceID: reply.Trace,
	}
	for _, info := range reply.Media {
		answer.Media = append(answer.Media, mediaOf(t, info))
	}
	if answer.Responses == nil {
		answer.Responses = []string{}
	}
	if len(reply.Notices) > 0 {
		answer.Notices = reply.Notices
	}
	return answer
}

// answer is POST /api/v1/chat.
func (d *Handler) answer(r *request) (Response, error) {
	_, m, err := d.message(r, false)
	if err != nil {
		return Response{}, err
	}
	t, err := d.say(r, m)
	if err != nil {
		return Response{}, err
	}
	return d.follow(r.Context(), r.id, t, func(agent.Event) error { return nil })
}

// attach returns the turn of the message that a path names, to read it. Others' messages do
// not exist for a caller, unless they are shared.
func (d *Handler) attach(r *http.Request) (*turn.Turn, error) {
	t, own, err := d.turn(r)
	if err != nil || own {
		return t, err
	}
	shared, err := d.service.Conversations.MayRead(r.Context(), t.Message)
	if err == nil && !shared {
		err = noMessage(t.ID)
	}
	if err == nil {
		d.audit(r, auditRead, t.Message.Person, t.Message.Conversation)
	}
	return t, err
}

// turn returns the turn of the message that a path names, and whether it is one of the
// caller's.
func (d *Handler) turn(r *http.Request) (t *turn.Turn, own bool, err error) {
	t, err = d.service.Attach(r.Context(), r.PathValue("message"))
	if err != nil {
		return nil, false, err
	}
	return t, maySend(principal.Of(r.Context()), t.Message.Person) == nil, nil
}

func noMessage(id string) error { return fault.New(fault.NotFound, "no message %q", id) }

// result is GET /api/v1/chat/{message}: it waits for the answer.
func (d *Handler) result(r *request) (Response, error) {
	t, err := d.attach(r.Request)
	if err != nil {
		return Response{}, err
	}
	r.turn = t
	return d.follow(r.Context(), r.id, t, func(agent.Event) error { return nil })
}

// reattach is GET /api/v1/chat/{message}/stream: all events of the turn, from the first.
func (d *Handler) reattach(r *request) error {
	t, err := d.attach(r.Request)
	if err != nil {
		return err
	}
	return d.streamTurn(r, t, r.URL.Query().Get("tool_events") == "true")
}

// stop is POST /api/v1/chat/{message}/stop. The answer is what was said so far.
func (d *Handler) stop(r *request) (Response, error) {
	t, own, err := d.turn(r.Request)
	if err != nil {
		return Response{}, err
	}
	if !own {
		return Response{}, noMessage(t.ID)
	}
	if err := d.service.Stop(r.Context(), t.ID); err != nil {
		return Response{}, err
	}
	reply, err := t.Wait(r.Context())
	if err != nil {
		return Response{}, failure.OfTurn(err)
	}
	return responseOf(t, r.id, reply), nil
}

// StreamEvent is one event of a stream. Its type decides which fields are set.
type StreamEvent struct {
	Type     string          `json:"type" doc:"status, progress, media, complete, error, keepalive; tool_use and tool_result if the request has tool_events or the server sends debug events"`
	Message  string          `json:"message,omitempty" doc:"of status"`
	Text     string          `json:"text,omitempty" doc:"of progress"`
	Response *Response       `json:"response,omitempty" doc:"of complete"`
	Error    string          `json:"error,omitempty" doc:"of error"`
	Code     string          `json:"code,omitempty" doc:"of error"`
	Tool     string          `json:"tool,omitempty" doc:"of tool_use and tool_result"`
	Input    json.RawMessage `json:"input,omitempty" doc:"of tool_use"`
	Result   any             `json:"result,omitempty" doc:"of tool_result"`
	Media    *Media          `json:"media,omitempty" doc:"of media"`
	CallID   string          `json:"call_id,omitempty" doc:"of tool_use and tool_result, if the request has tool_events: the same for both"`
	Failed   bool            `json:"failed,omitempty" doc:"of tool_result, if the request has tool_events"`
	Duration *float64        `json:"duration_ms,omitempty" doc:"of tool_result, if the request has tool_events"`

	MessageID  string    `json:"message_id,omitempty" doc:"of the first event"`
	RequestID  string    `json:"request_id,omitempty" doc:"of the first event and of error: in the log of the server"`
	MessageKey string    `json:"message_key,omitempty" doc:"of an error with the code MOVED: send the message again with it"`
	RetryAfter int       `json:"retry_after_ms,omitempty" doc:"of an error: when to send the message again"`
	Timestamp  time.Time `json:"timestamp"`
}

// stream is POST /api/v1/chat/stream. If the client disconnects, the stream ends and the
// turn continues.
func (d *Handler) stream(r *request) error {
	q, m, err := d.message(r, false)
	if err != nil {
		return err
	}
	t, err := d.say(r, m)
	if err != nil {
		return err
	}
	return d.streamTurn(r, t, q.ToolEvents)
}

func (d *Handler) streamTurn(r *request, t *turn.Turn, toolEvents bool) error {
	r.w.Header().Set("Connection", "keep-alive") // clients of HTTP/1.1 expect it; HTTP/2 leaves it out
	s := eventStream{sse.NewResponse(r.w), d.options.Clock.Now}
	ctx, stop := context.WithCancel(r.Context())
	defer s.WhileSilent(ctx, d.options.Keepalive, s.keepAlive)()
	defer stop()
	first := "Processing your request..."
	if t.Queued {
		first = "Queued — processing will begin shortly"
	}
	_ = s.send(StreamEvent{Type: "status", Message: first, MessageID: t.ID, RequestID: r.id})
	streamWriter := streamWriter{turn: t, debug: d.options.Debug, tools: toolEvents, status: first}
	answer, err := d.follow(ctx, r.id, t, func(e agent.Event) error {
		for _, shown := range streamWriter.shows(e) {
			if err := s.send(shown); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		f, _ := failureOf(err)
		_ = s.send(StreamEvent{Type: "error", Error: f.Message, Code: f.Code, MessageKey: f.MessageKey, RequestID: r.id, RetryAfter: f.RetryAfter}) // the connection may be the cause
		return nil
	}
	_ = s.send(StreamEvent{Type: "complete", Response: &answer})
	return nil
}

// streamWriter converts the events of a turn to those of a stream. All pieces of text together
// are the whole answer.
type streamWriter struct {
	turn   *turn.Turn
	debug  bool // tool_use and tool_result as older clients know them
	tools  bool // with call_id, failed and duration_ms
	block  int
	status string // the last one sent, to skip repetitions
}

func (s *streamWriter) shows(e agent.Event) []StreamEvent {
	switch e := e.(type) {
	case agent.Status:
		if e.Message == s.status {
			return nil
		}
		s.status = e.Message
		return []StreamEvent{{Type: "status", Message: e.Message}}
	case agent.Text:
		text := e.Text
		if e.Block > s.block {
			s.block, text = e.Block, "\n"+text
		}
		return []StreamEvent{{Type: "progress", Text: text}}
	case agent.Media:
		media := mediaOf(s.turn, e.MediaInfo)
		return []StreamEvent{{Type: "media", Media: &media}}
	case agent.ToolUse:
		return s.tool(StreamEvent{Type: "tool_use", Tool: e.Tool, Input: e.Input, CallID: e.ID})
	case agent.ToolResult:
		took := float64(e.Took.Microseconds()) / 1000
		return s.tool(StreamEvent{Type: "tool_result", Tool: e.Tool, Result: e.Text, CallID: e.ID, Failed: e.Failed, Duration: &took})
	}
	return nil
}

// tool returns an event about a tool call as the client wants it, if it does.
func (s *streamWriter) tool(e StreamEvent) []StreamEvent {
	if !s.tools {
		e.CallID, e.Failed, e.Duration = "", false, nil
	}
	if !s.tools && !s.debug {
		return nil
	}
	return []StreamEvent{e}
}

// eventStream is one client's stream.
type eventStream struct {
	*sse.Response
	now func() time.Time
}

func (s eventStream) send(e StreamEvent) error {
	e.Timestamp = s.now().UTC()
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return s.Send(data)
}

func (s eventStream) keepAlive() error { return s.send(StreamEvent{Type: "keepalive"}) }
