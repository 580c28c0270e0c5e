package openaiapi

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/completion"
	"github.com/luanette/luanette/internal/chat/failure"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/core/principal"
)

// Completion is an answer, or a piece of one in a stream.
type Completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
	About   *about   `json:"luanette,omitempty"`
}

type choice struct {
	Index        int     `json:"index"`
	Message      *said   `json:"message,omitempty"`
	Delta        *said   `json:"delta,omitempty"`
	LogProbs     *int    `json:"logprobs"` // always null
	FinishReason *string `json:"finish_reason"`
}

// said is what the assistant says. In a stream Content is absent where nothing is added.
type said struct {
	Role      string     `json:"role,omitempty"`
	Content   any        `json:"content,omitempty"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
	Images    []image    `json:"images,omitempty"` // that tools returned
}

type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
	Details    struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// about is what OpenAI's format has no field for.
type about struct {
	Model     string         `json:"model,omitempty"` // that the agent used
	ToolCalls int            `json:"tool_calls"`      // of the agent's own tools
	Cost      float64        `json:"cost_usd"`
	Notices   []agent.Notice `json:"notices,omitempty"`
}

func usageOf(u llm.Usage) *usage {
	out := &usage{Prompt: u.Input + u.CacheRead + u.CacheWrite, Completion: u.Output, Total: u.Total()}
	out.Details.Cached = u.CacheRead
	return out
}

func aboutOf(r agent.Reply) *about {
	return &about{Model: r.Model, ToolCalls: r.ToolCalls, Cost: r.Usage.Cost, Notices: r.Notices}
}

// complete is POST /v1/chat/completions.
func (h *Handler) complete(w http.ResponseWriter, r *http.Request) error {
	q, err := readRequest(r)
	if err != nil {
		return err
	}
	c, err := h.completion(r, &q)
	if err != nil {
		return err
	}
	c.RequestID = failure.RequestID(w)
	log := h.options.Log.With("request_id", c.RequestID, "user_id", c.Person.User)
	log.InfoContext(r.Context(), "request_received", "event", "request_received", "client_id", c.Client, "path", r.URL.Path)
	began := time.Now()
	reply, err := h.answer(w, r, &q, c)
	if err != nil {
		log.WarnContext(r.Context(), "request_error", "event", "request_error", "error", err, "code", fault.CodeOf(err))
		return nil
	}
	log.InfoContext(r.Context(), "request_complete", "event", "request_complete",
		"duration_ms", time.Since(began).Milliseconds(), "iterations", reply.Iterations, "status", http.StatusOK)
	return nil
}

// completion checks a request and converts it.
func (h *Handler) completion(r *http.Request, q *Request) (c completion.Completion, err error) {
	user := q.User
	if user == "" {
		user = q.SafetyIdentifier
	}
	if c.Person, err = personOf(r, user); err != nil {
		return c, err
	}
	if c.Mode, err = h.modeOf(r.Context(), q.Model, c.Person.Org); err != nil {
		return c, err
	}
	if c.Messages, c.Instructions, err = q.conversation(); err != nil {
		return c, err
	}
	if c.Tools, err = q.clientTools(); err != nil {
		return c, err
	}
	format, err := q.format()
	if err != nil {
		return c, err
	}
	if after, ok := h.rates.Allow(c.Person.String(), h.options.Rate, time.Now()); !ok {
		return c, principal.Exceeded{What: "requests", Of: c.Person.User, Most: h.options.Rate, Per: "minute", After: after}.Fault()
	}
	c.ID, c.Client = "chatcmpl-"+rand.Text(), "openai"
	c.Instructions = strings.TrimSpace(c.Instructions + "\n\n" + format)
	c.MaxTokens = max(q.MaxTokens, q.MaxCompletionTokens)
	return c, nil
}

// answer answers a request, whole or as a stream. The error was sent to the client.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, q *Request, c completion.Completion) (agent.Reply, error) {
	if q.Stream {
		return h.stream(w, r, q, c)
	}
	var images []image
	reply, err := h.ask(r.Context(), c, func(e agent.Event) {
		if m, ok := e.(agent.Media); ok {
			if shown, ok := imageOf(llm.Media{MIME: m.MIME, Data: m.Data}, len(images)); ok {
				images = append(images, shown)
			}
		}
	})
	if err != nil {
		refuse(w, err)
		return reply, err
	}
	message := &said{Role: "assistant", Content: reply.Text(), ToolCalls: callsOf(reply.Calls), Images: images}
	if len(reply.Calls) > 0 && len(reply.Responses) == 0 {
		message.Content = nullContent
	}
	finish := finishOf(reply)
	httpjson.JSON(w, http.StatusOK, Completion{
		ID: c.ID, Object: "chat.completion", Created: time.Now().Unix(), Model: q.Model,
		Choices: []choice{{Message: message, FinishReason: &finish}}, Usage: usageOf(reply.Usage), About: aboutOf(reply),
	})
	return reply, nil
}

// nullContent is the content of a message that only calls tools.
var nullContent = (*string)(nil)

func (h *Handler) ask(ctx context.Context, c completion.Completion, emit func(agent.Event)) (agent.Reply, error) {
	reply, err := h.service.Complete(ctx, c, emit)
	if err == nil {
		return reply, nil
	}
	err = ofTurn(err)
	if reply.ToolCalls > 0 {
		err = spentError{err}
	}
	return reply, err
}

func callsOf(uses []llm.Use) (calls []toolCall) {
	for _, use := range uses {
		calls = append(calls, toolCall{ID: use.ID, Type: "function", Function: callFunction{use.Name, string(use.Input)}})
	}
	return calls
}

// finishOf returns OpenAI's word for why an answer ended.
func finishOf(r agent.Reply) string {
	switch {
	case len(r.Calls) > 0:
		return "tool_calls"
	case r.Stop == llm.StopLength || r.Stop == agent.StopIterations || r.Stop == agent.StopBudget:
		return "length"
	case r.Stop == llm.StopRefusal:
		return "content_filter"
	default:
		return "stop"
	}
}

// stream answers with server-sent events. A client that disconnects ends the answer.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, q *Request, c completion.Completion) (agent.Reply, error) {
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
