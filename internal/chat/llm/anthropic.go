package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/sse"
)

// claude uses Anthropic's Messages API.
type claude struct {
	client   *http.Client
	endpoint string
	options  Options
}

const (
	anthropicBase    = "https://api.anthropic.com"
	anthropicVersion = "2023-06-01"
)

func newAnthropic(o Options, client *http.Client) *claude {
	base := strings.TrimSuffix(strings.TrimSuffix(cmp.Or(o.BaseURL, anthropicBase), "/"), "/v1")
	return &claude{client, base + "/v1/messages", o}
}

func (c *claude) try(ctx context.Context, p Prompt, emit func(Delta)) (Answer, error) {
	request, err := c.request(p)
	if err != nil {
		return Answer{}, err
	}
	header := http.Header{"Anthropic-Version": {anthropicVersion}}
	if !c.options.Key.IsZero() {
		header.Set("X-Api-Key", c.options.Key.Reveal())
	}
	if !c.options.Token.IsZero() {
		header.Set("Authorization", "Bearer "+c.options.Token.Reveal())
	}
	resp, err := post(ctx, c.client, c.endpoint, header, request)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	collected := &claudeAnswer{emit: emit}
	err = collected.readStream(resp.Body)
	return collected.answer(c.options.Model), err
}

// The request in Anthropic's format.
type (
	claudeRequest struct {
		Model       string          `json:"model"`
		MaxTokens   int             `json:"max_tokens"`
		Stream      bool            `json:"stream"`
		Temperature *float64        `json:"temperature,omitempty"`
		System      []claudeBlock   `json:"system,omitempty"`
		Tools       []claudeTool    `json:"tools,omitempty"`
		ToolChoice  *claudeChoice   `json:"tool_choice,omitempty"`
		Messages    []claudeMessage `json:"messages"`
	}
	claudeChoice struct {
		Type string `json:"type"`
		Name string `json:"name,omitempty"`
	}
	claudeMessage struct {
		Role    string `json:"role"`
		Content []any  `json:"content"` // *claudeBlock, or json.RawMessage for what is sent back unchanged
	}
	claudeBlock struct {
		Type      string          `json:"type"`
		Text      string          `json:"text,omitempty"`
		ID        string          `json:"id,omitempty"`
		Name      string          `json:"name,omitempty"`
		Input     json.RawMessage `json:"input,omitempty"`
		ToolUseID string          `json:"tool_use_id,omitempty"`
		Content   []claudeBlock   `json:"content,omitempty"`
		Source    *claudeSource   `json:"source,omitempty"`
		Title     string          `json:"title,omitempty"`
		IsError   bool            `json:"is_error,omitempty"`
		Cache     *claudeCache    `json:"cache_control,omitempty"`
	}
	// claudeSource is the content of an image or a document.
	claudeSource struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	}
	claudeTool struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"input_schema"`
		Cache       *claudeCache    `json:"cache_control,omitempty"`
	}
	// claudeCache asks the API to cache everything up to here.
	claudeCache struct {
		Type string `json:"type"`
	}
)

var cached = &claudeCache{Type: "ephemeral"}

// request converts a prompt for the API. Three places are marked for its cache: the
// tools, the constant part of the system prompt, and the conversation so far, which the
// next request continues.
func (c *claude) request(p Prompt) (claudeRequest, error) {
	q := claudeRequest{Model: c.options.Model, MaxTokens: p.limit(c.options.MaxTokens), Stream: true, Temperature: c.options.Temperature}
	if p.System != "" {
		q.System = append(q.System, claudeBlock{Type: "text", Text: p.System, Cache: cached})
	}
	if p.Context != "" {
		q.System = append(q.System, claudeBlock{Type: "text", Text: p.Context})
	}
	for _, t := range p.Tools {
		q.Tools = append(q.Tools, claudeTool{Name: t.Name, Description: t.Description, InputSchema: t.Input})
	}
	if n := len(q.Tools); n > 0 {
		q.Tools[n-1].Cache = cached
		q.ToolChoice = claudeChoiceOf(p.Choice)
	}
	for _, m := range p.Messages {
		blocks, err := claudeBlocks(m.Blocks)
		if err != nil {
			return q, err
		}
		q.Messages = append(q.Messages, claudeMessage{Role: string(m.Role), Content: blocks})
	}
	markForCache(q.Messages)
	return q, nil
}

func claudeChoiceOf(c Choice) *claudeChoice {
	switch {
	case !c.Required:
		return nil
	case c.Name != "":
		return &claudeChoice{"tool", c.Name}
	default:
		return &claudeChoice{Type: "any"}
	}
}

func claudeBlocks(blocks []Block) ([]any, error) {
	all := make([]any, 0, len(blocks))
	for _, b := range blocks {
		switch {
		case b.Use != nil:
			all = append(all, &claudeBlock{Type: "tool_use", ID: b.Use.ID, Name: b.Use.Name, Input: sentBack(b.Use.Input)})
		case b.Result != nil:
			block := &claudeBlock{Type: "tool_result", ToolUseID: b.Result.ID, IsError: b.Result.Failed}
			if b.Result.Text != "" { // the API accepts a result without content, but no empty text
				block.Content = []claudeBlock{{Type: "text", Text: b.Result.Text}}
			}
			for _, m := range b.Result.Media {
				block.Content = append(block.Content, claudeMedia(m))
			}
			all = append(all, block)
		case b.Media != nil:
			block := claudeMedia(*b.Media)
			all = append(all, &block)
		case b.Raw != nil:
			if !json.Valid(b.Raw) {
				return nil, fault.New(fault.Internal, "encode an earlier answer: it is not JSON")
			}
			all = append(all, b.Raw)
		default:
			all = append(all, &claudeBlock{Type: "text", Text: b.Text})
		}
	}
	return all, nil
}

// claudeMedia converts an image or a file. The API takes no sounds.
func claudeMedia(m Media) claudeBlock {
	switch m.Kind() {
	case Image:
		return claudeBlock{Type: "image", Source: &claudeSource{"base64", m.MIME, m.base64()}}
	case File:
		return claudeBlock{Type: "document", Title: m.Name, Source: &claudeSource{"base64", m.MIME, m.base64()}}
	default:
		return claudeBlock{Type: "text", Text: m.note()}
	}
}

// markForCache marks the end of the conversation. Thinking cannot be marked.
func markForCache(messages []claudeMessage) {
	if len(messages) == 0 {
		return
	}
	last := messages[len(messages)-1].Content
	if len(last) == 0 {
		return
	}
	if block, ok := last[len(last)-1].(*claudeBlock); ok {
		block.Cache = cached
	}
}

// claudeAnswer assembles an answer from its events.
type claudeAnswer struct {
	emit     func(Delta)
	id       string
	model    string
	stop     Stop
	usage    Usage
	blocks   []*claudePiece
	finished bool
}

// claudePiece is a block of an answer while it arrives.
type claudePiece struct {
	start claudeBlock                // its type, and what it begins with
	raw   map[string]json.RawMessage // as it began, for types that are sent back unchanged
	text  []byte
	input []byte            // arguments of a tool call, as JSON
	extra map[string][]byte // text by field: thinking and signature
}

// claudeEvent is an event of a stream; only the fields of its type are set.
type claudeEvent struct {
	Type    string
	Message struct {
		ID, Model string
		Usage     claudeUsage
	}
	Index   int
	Block   json.RawMessage `json:"content_block"`
	Delta   claudeDelta
	Usage   claudeUsage
	Problem json.RawMessage `json:"error"`
}

type claudeDelta struct {
	Type       string
	Text       string
	Partial    string `json:"partial_json"`
	Thinking   string
	Signature  string
	StopReason Stop `json:"stop_reason"`
}

// claudeUsage counts tokens; later counts include earlier ones.
type claudeUsage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

func (a *claudeAnswer) readStream(body io.Reader) error {
	events := sse.NewReader(body, 0)
	for !a.finished {
		event, err := events.Next()
		if errors.Is(err, io.EOF) {
			return &failure{err: errBroken, again: true}
		}
		if err == nil {
			err = a.take(event.Data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take adds an event. Unknown types are allowed: the API may add some.
func (a *claudeAnswer) take(raw []byte) error {
	var e claudeEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		return &failure{err: fault.Wrap(fault.Upstream, err, "read answer"), again: true} // half an event
	}
	switch e.Type {
	case "message_start":
		a.id, a.model = e.Message.ID, e.Message.Model
		a.count(e.Message.Usage)
	case "content_block_start":
		return a.begin(e.Index, e.Block)
	case "content_block_delta":
		return a.add(e.Index, e.Delta)
	case "message_delta":
		a.stop = cmp.Or(e.Delta.StopReason, a.stop)
		a.count(e.Usage)
	case "message_stop":
		a.finished = true
	case "error":
		kind, text := errorIn(raw)
		return refusedBy(http.StatusOK, nil, kind, text)
	}
	return nil
}

func (a *claudeAnswer) count(u claudeUsage) {
	a.usage = Usage{
		Input: cmp.Or(u.Input, a.usage.Input), Output: cmp.Or(u.Output, a.usage.Output),
		CacheRead: cmp.Or(u.CacheRead, a.usage.CacheRead), CacheWrite: cmp.Or(u.CacheWrite, a.usage.CacheWrite),
	}
}

// maxBlocks limits the number of blocks in an answer.
const maxBlocks = 1024

// begin adds a block. Blocks arrive one after the other.
func (a *claudeAnswer) begin(index int, raw json.RawMessage) error {
	piece := &claudePiece{extra: map[string][]byte{}}
	if index != len(a.blocks) || index >= maxBlocks {
		return &failure{err: fault.New(fault.Upstream, "read answer: block %d follows %d blocks", index, len(a.blocks))}
	}
	if err := errors.Join(json.Unmarshal(raw, &piece.start), json.Unmarshal(raw, &piece.raw)); err != nil {
		return &failure{err: fault.Wrap(fault.Upstream, err, "read answer")}
	}
	a.blocks = append(a.blocks, piece)
	switch {
	case piece.start.Type == "tool_use":
		a.emit(Delta{Use: piece.start.Name})
	case piece.start.Type == "text" && piece.start.Text != "":
		piece.text = append(piece.text, piece.start.Text...)
		a.emit(Delta{Text: piece.start.Text})
	}
	return nil
}

// add continues a block.
func (a *claudeAnswer) add(index int, d claudeDelta) error {
	if index < 0 || index >= len(a.blocks) {
		return &failure{err: fault.New(fault.Upstream, "read answer: block %d has not begun", index)}
	}
	piece := a.blocks[index]
	switch d.Type {
	case "text_delta":
		if d.Text != "" {
			piece.text = append(piece.text, d.Text...)
			a.emit(Delta{Text: d.Text})
		}
	case "input_json_delta":
		piece.input = append(piece.input, d.Partial...)
	case "thinking_delta":
		piece.extra["thinking"] = append(piece.extra["thinking"], d.Thinking...)
	case "signature_delta":
		piece.extra["signature"] = append(piece.extra["signature"], d.Signature...)
	}
	return nil
}

// answer converts what has arrived. A tool call whose arguments were cut off by the token
// limit is dropped.
func (a *claudeAnswer) answer(model string) Answer {
	out := Answer{ID: a.id, Model: cmp.Or(a.model, model), Stop: a.stop, Usage: a.usage}
	for i, piece := range a.blocks {
		switch {
		case piece.start.Type == "text":
			if len(piece.text) > 0 {
				out.Blocks = append(out.Blocks, Block{Text: string(piece.text)})
			}
		case piece.start.Type == "tool_use" && a.stop == StopLength && i == len(a.blocks)-1:
			out.Cut = piece.start.Name
		case piece.start.Type == "tool_use":
			out.Blocks = append(out.Blocks, Block{Use: &Use{piece.start.ID, piece.start.Name, piece.arguments()}})
		default:
			out.Blocks = append(out.Blocks, Block{Raw: piece.whole()})
		}
	}
	return out
}

// arguments returns those of a tool call: what arrived, or what the block began with.
func (p *claudePiece) arguments() json.RawMessage {
	if len(p.input) > 0 {
		return p.input
	}
	return objectOf(p.start.Input)
}

// whole returns a block as it is sent back: its beginning with what arrived for it.
func (p *claudePiece) whole() json.RawMessage {
	for field, text := range p.extra {
		p.raw[field], _ = json.Marshal(string(text)) // strings always encode
	}
	if json.Valid(p.input) {
		p.raw["input"] = p.input
	}
	raw, _ := json.Marshal(p.raw) // every value was read as JSON
	return raw
}

func objectOf(input json.RawMessage) json.RawMessage {
	if len(input) == 0 {
		return json.RawMessage(`{}`)
	}
	return input
}

// sentBack returns the arguments of an earlier call for the next request. APIs refuse
// incomplete ones; the call's result tells the model about them.
func sentBack(input json.RawMessage) json.RawMessage {
	if !json.Valid(input) {
		return json.RawMessage(`{}`)
	}
	return input
}
