package openaiapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/failure"
	"github.com/luanette/luanette/internal/chat/llm"
)

// stream answers with server-sent events. A client that disconnects ends the answer.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, q *Request, c conversation.Completion) (agent.Reply, error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s := &events{
		out: sse.NewResponse(w), cancel: cancel,
		piece: Completion{ID: c.ID, Object: "chat.completion.chunk", Created: time.Now().Unix(), Model: q.Model},
	}
	silent, speak := context.WithCancel(ctx)
	wait := s.out.WhileSilent(silent, h.options.Keepalive, s.keepAlive)
	reply, err := h.ask(ctx, c, s.show)
	speak()
	wait()
	switch {
	case err != nil && !s.out.Begun(): // it can still be an ordinary error
		w.Header().Del("X-Accel-Buffering")
		refuse(w, err)
	case err != nil:
		s.send(bodyOf(err, words[failure.Of(err)]))
	default:
		s.end(reply, q.StreamOptions.IncludeUsage)
	}
	return reply, err
}

// events is the stream of one answer.
type events struct {
	out    *sse.Response
	cancel context.CancelFunc
	piece  Completion // what all pieces have in common
	named  bool       // the role was sent
	block  int        // of the text that was sent last
	images int        // that were sent
}

// show sends the text or the image of an event.
func (s *events) show(e agent.Event) {
	switch e := e.(type) {
	case agent.Text:
		if e.Block > s.block {
			s.block, e.Text = e.Block, "\n"+e.Text
		}
		s.begin()
		s.delta(said{Content: e.Text}, "")
	case agent.Media:
		if shown, ok := imageOf(llm.Media{MIME: e.MIME, Data: e.Data}, s.images); ok {
			s.images++
			s.begin()
			s.delta(said{Images: []image{shown}}, "")
		}
	}
}

// begin sends the first piece, which has the role.
func (s *events) begin() {
	if !s.named {
		s.named = true
		s.delta(said{Role: "assistant", Content: ""}, "")
	}
}

func (s *events) delta(d said, finish string) {
	piece := s.piece
	piece.Choices = []choice{{Delta: &d}}
	if finish != "" {
		piece.Choices[0].FinishReason = &finish
	}
	s.send(piece)
}

// end sends what is known only at the end.
func (s *events) end(reply agent.Reply, withUsage bool) {
	s.begin()
	if calls := callsOf(reply.Calls); len(calls) > 0 {
		for i := range calls {
			calls[i].Index = &i
		}
		s.delta(said{ToolCalls: calls}, "")
	}
	s.delta(said{}, finishOf(reply))
	if withUsage {
		last := s.piece
		last.Choices, last.Usage, last.About = []choice{}, usageOf(reply.Usage), aboutOf(reply)
		s.send(last)
	}
	_ = s.accepted(s.out.Send([]byte("[DONE]")))
}

func (s *events) send(body any) {
	data, err := json.Marshal(body)
	if err != nil {
		data = []byte(`{"error":{"message":"the answer cannot be encoded","type":"server_error","param":null,"code":null}}`)
	}
	_ = s.accepted(s.out.Send(data))
}

// keepAlive sends a comment.
func (s *events) keepAlive() error { return s.accepted(s.out.Comment("keepalive")) }

// accepted ends the answer of a client that does not accept what is sent.
func (s *events) accepted(err error) error {
	if err != nil {
		s.cancel()
	}
	return err
}
