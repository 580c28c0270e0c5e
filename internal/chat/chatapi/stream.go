package chatapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
)

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
	MessageKey string    `json:"message_key,omitempty" doc:"of an error with the code MOVED: send the message again with it"`
	Timestamp  time.Time `json:"timestamp"`
}

// stream is POST /api/v1/chat/stream. If the client disconnects, the stream ends and the
// turn continues.
func (d *Handler) stream(w http.ResponseWriter, r *http.Request) error {
	q, m, err := d.message(w, r, false)
	if err != nil {
		return err
	}
	t, err := d.say(r, m)
	if err != nil {
		return err
	}
	return d.streamTurn(w, r, t, q.ToolEvents)
}

func (d *Handler) streamTurn(w http.ResponseWriter, r *http.Request, t *conversation.Turn, toolEvents bool) error {
	s := eventStream{sse.NewResponse(w), d.options.Clock.Now}
	ctx, stop := context.WithCancel(r.Context())
	defer s.WhileSilent(ctx, d.options.Keepalive, s.keepAlive)()
	defer stop()
	first := "Processing your request..."
	if t.Queued {
		first = "Queued — processing will begin shortly"
	}
	_ = s.send(StreamEvent{Type: "status", Message: first, MessageID: t.ID})
	streamWriter := streamWriter{turn: t, debug: d.options.Debug, tools: toolEvents, status: first}
	answer, err := d.follow(ctx, t, func(e agent.Event) error {
		for _, shown := range streamWriter.shows(e) {
			if err := s.send(shown); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		f, _ := failureOf(err)
		_ = s.send(StreamEvent{Type: "error", Error: f.Message, Code: f.Code, MessageKey: f.MessageKey}) // the connection may be the cause
		return nil
	}
	_ = s.send(StreamEvent{Type: "complete", Response: &answer})
	return nil
}

// streamWriter converts the events of a turn to those of a stream. All pieces of text together
// are the whole answer.
type streamWriter struct {
	turn   *conversation.Turn
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
