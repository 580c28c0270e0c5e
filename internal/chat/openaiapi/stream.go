package openaiapi

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
)

// writeTime limits how long a client may take to accept an event.
const writeTime = 30 * time.Second

// stream answers with server-sent events. A client that disconnects ends the answer.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, q *Request, c conversation.Completion) (agent.Reply, error) {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache")
	header.Set("X-Accel-Buffering", "no")
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s := &events{
		w: w, control: http.NewResponseController(w), cancel: cancel,
		piece: Completion{ID: c.ID, Object: "chat.completion.chunk", Created: time.Now().Unix(), Model: q.Model},
	}
	silent, speak := context.WithCancel(ctx)
	wait := s.keepAlive(silent, h.options.Keepalive)
	reply, err := h.ask(ctx, c, s.show)
	speak()
	wait()
	switch {
	case err != nil && !s.begun: // it can still be an ordinary error
		header.Del("X-Accel-Buffering")
		refuse(w, err)
	case err != nil:
		body, _ := failureOf(err)
		s.send(body)
	default:
		s.end(reply, q.StreamOptions.IncludeUsage)
	}
	return reply, err
}

// events is the stream of one answer. Comments can be written at any time.
type events struct {
	control *http.ResponseController
	cancel  context.CancelFunc
	piece   Completion // what all pieces have in common
	named   bool       // the role was sent
	block   int        // of the text that was sent last

	mu    sync.Mutex // guards the rest
	w     http.ResponseWriter
	begun bool // something was sent
	last  time.Time
}

// show sends the text of an event.
func (s *events) show(e agent.Event) {
	text, ok := e.(agent.Text)
	if !ok {
		return
	}
	if text.Block > s.block {
		s.block, text.Text = text.Block, "\n"+text.Text
	}
	s.begin()
	s.delta(said{Content: text.Text}, "")
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
	s.write([]byte("data: [DONE]\n\n"))
}

func (s *events) send(body any) {
	data, err := json.Marshal(body)
	if err != nil {
		data = []byte(`{"error":{"message":"the answer cannot be encoded","type":"server_error","param":null,"code":null}}`)
	}
	s.write(append(append([]byte("data: "), data...), "\n\n"...))
}

// write sends bytes; a client that does not accept them ends the answer.
func (s *events) write(data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun, s.last = true, time.Now()
	_ = s.control.SetWriteDeadline(s.last.Add(writeTime)) // not every connection supports it
	_, err := s.w.Write(data)
	if err == nil {
		err = s.control.Flush()
	}
	if err != nil {
		s.cancel()
	}
}

// keepAlive sends comments while the stream is silent, until ctx ends; the returned
// function waits for that.
func (s *events) keepAlive(ctx context.Context, every time.Duration) (wait func()) {
	var work sync.WaitGroup
	work.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if s.silent(every) {
					s.write([]byte(": keepalive\n\n"))
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return work.Wait
}

func (s *events) silent(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.last) >= d/2
}
