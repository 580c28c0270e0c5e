package llm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/sse"
)

// openAI uses an endpoint with OpenAI's chat completions API. Implementations differ in
// details, so it is strict in what it sends and tolerant in what it accepts.
type openAI struct {
	client   *http.Client
	endpoint string
	options  Options
	official bool // OpenAI's own endpoint, which expects newer field names
}

const openAIBase = "https://api.openai.com/v1"

func newOpenAI(o Options, client *http.Client) *openAI {
	base := strings.TrimSuffix(o.BaseURL, "/")
	if base == "" {
		base = openAIBase
	}
	a := &openAI{client: client, options: o}
	if u, err := url.Parse(base); err == nil {
		a.official = u.Host == "api.openai.com"
		if u.Path == "" { // an address without a path gets the usual one
			base += "/v1"
		}
	}
	a.endpoint = base + "/chat/completions"
	return a
}

func (o *openAI) try(ctx context.Context, p Prompt, emit func(Delta)) (Answer, error) {
	header := http.Header{}
	if !o.options.Key.IsZero() {
		header.Set("Authorization", "Bearer "+o.options.Key.Reveal())
	}
	resp, err := post(ctx, o.client, o.endpoint, header, o.request(p))
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	collected := &openAIAnswer{emit: emit}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "application/json" {
		err = collected.readWhole(resp.Body)
	} else {
		err = collected.readStream(resp.Body)
	}
	return collected.answer(o.options.Model), err
}

// The request in OpenAI's format.
type (
	openAIRequest struct {
		Model               string          `json:"model"`
		Messages            []openAIMessage `json:"messages"`
		Tools               []openAITool    `json:"tools,omitempty"`
		ToolChoice          any             `json:"tool_choice,omitempty"`
		Stream              bool            `json:"stream"`
		StreamOptions       map[string]bool `json:"stream_options"`
		MaxTokens           int             `json:"max_tokens,omitempty"`
		MaxCompletionTokens int             `json:"max_completion_tokens,omitempty"`
		Temperature         *float64        `json:"temperature,omitempty"`
		PromptCacheKey      string          `json:"prompt_cache_key,omitempty"`
	}
	openAIMessage struct {
		Role       string       `json:"role"`
		Content    any          `json:"content"` // a string, nil or []openAIPart
		ToolCalls  []openAICall `json:"tool_calls,omitempty"`
		ToolCallID string       `json:"tool_call_id,omitempty"`
	}
	// openAIPart is a part of a message that is not only text.
	openAIPart struct {
		Type  string       `json:"type"`
		Text  string       `json:"text,omitempty"`
		Image *openAIImage `json:"image_url,omitempty"`
		Audio *openAIAudio `json:"input_audio,omitempty"`
		File  *openAIFile  `json:"file,omitempty"`
	}
	openAIImage struct {
		URL string `json:"url"`
	}
	openAIAudio struct {
		Data   string `json:"data"`
		Format string `json:"format"`
	}
	openAIFile struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
	}
	openAITool struct {
		Type     string         `json:"type"`
		Function openAIFunction `json:"function"`
	}
	openAIFunction struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	openAICall struct {
		Index    *int   `json:"index,omitempty"`
		ID       string `json:"id,omitempty"`
		Type     string `json:"type,omitempty"`
		Function struct {
			Name      string          `json:"name,omitempty"`
			Arguments json.RawMessage `json:"arguments,omitempty"`
		} `json:"function"`
	}
)

func (o *openAI) request(p Prompt) openAIRequest {
	q := openAIRequest{
		Model: o.options.Model, Stream: true, StreamOptions: map[string]bool{"include_usage": true},
		MaxTokens: p.limit(o.options.MaxTokens), Temperature: o.options.Temperature,
	}
	if o.official {
		q.MaxTokens, q.MaxCompletionTokens = 0, q.MaxTokens
		q.PromptCacheKey = cacheKey(p)
	}
	if system := strings.TrimSpace(p.System + "\n\n" + p.Context); system != "" {
		q.Messages = append(q.Messages, openAIMessage{Role: "system", Content: system})
	}
	for _, t := range p.Tools {
		q.Tools = append(q.Tools, openAITool{"function", openAIFunction{t.Name, t.Description, t.Input}})
	}
	if len(q.Tools) > 0 {
		q.ToolChoice = openAIChoice(p.Choice)
	}
	for _, m := range p.Messages {
		q.Messages = append(q.Messages, openAIMessages(m)...)
	}
	return q
}

// cacheKey is the same for prompts that begin alike: OpenAI sends these to the same
// machine, whose cache has the beginning. Elsewhere the cache needs only that it is the
// same: tools, system prompt and earlier messages come first.
func cacheKey(p Prompt) string {
	sum := sha256.New()
	sum.Write([]byte(p.System))
	for _, t := range p.Tools {
		sum.Write([]byte("\x00" + t.Name))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

func openAIChoice(c Choice) any {
	switch {
	case !c.Required:
		return nil
	case c.Name != "":
		return map[string]any{"type": "function", "function": map[string]string{"name": c.Name}}
	default:
		return "required"
	}
}

// openAIMessages converts one message. Each tool result becomes a message of its own,
// which can only have text: images, sounds and files of results follow in one of the user.
func openAIMessages(m Message) []openAIMessage {
	var all []openAIMessage
	said := openAIMessage{Role: string(m.Role)}
	var text strings.Builder
	var parts []openAIPart
	for _, b := range m.Blocks {
		switch {
		case b.Result != nil:
			result := b.Result.Text
			if result == "" && len(b.Result.Media) > 0 {
				result = "The result follows."
			}
			all = append(all, openAIMessage{Role: "tool", Content: result, ToolCallID: b.Result.ID})
			for _, media := range b.Result.Media {
				parts = append(parts, openAIPart{Type: "text", Text: "From the result of " + b.Result.ID + ":"}, openAIMedia(media))
			}
		case b.Use != nil:
			call := openAICall{ID: b.Use.ID, Type: "function"}
			call.Function.Name = b.Use.Name
			call.Function.Arguments, _ = json.Marshal(string(sentBack(b.Use.Input))) // strings always encode
			said.ToolCalls = append(said.ToolCalls, call)
		case b.Media != nil:
			parts = append(parts, openAIMedia(*b.Media))
		default:
			text.WriteString(b.Text)
		}
	}
	switch {
	case len(parts) > 0 && text.Len() > 0:
		said.Content = append([]openAIPart{{Type: "text", Text: text.String()}}, parts...)
	case len(parts) > 0:
		said.Content = parts
	case text.Len() > 0:
		said.Content = text.String()
	}
	if said.Content != nil || said.ToolCalls != nil {
		all = append(all, said)
	}
	return all
}

func openAIMedia(m Media) openAIPart {
	switch m.Kind() {
	case Image:
		return openAIPart{Type: "image_url", Image: &openAIImage{m.dataURL()}}
	case Audio:
		return openAIPart{Type: "input_audio", Audio: &openAIAudio{m.base64(), audioFormats[m.MIME]}}
	case File:
		return openAIPart{Type: "file", File: &openAIFile{cmp.Or(m.Name, "file.pdf"), m.dataURL()}}
	default:
		return openAIPart{Type: "text", Text: m.note()}
	}
}

// openAIAnswer assembles an answer from its chunks.
type openAIAnswer struct {
	emit   func(Delta)
	id     string
	model  string
	text   []byte
	calls  []*openAICall // arguments collected as plain text
	finish string
	refuse bool // the model refused in its own words
	usage  Usage
}

// openAIChunk is one chunk; a complete answer has the same form with message in place of
// delta.
type openAIChunk struct {
	ID      string
	Model   string
	Choices []struct {
		Delta        openAIPiece
		Message      openAIPiece
		FinishReason string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Details    struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		Cached int64 `json:"prompt_cache_hit_tokens"` // what some endpoints have in place of the details
	}
	Error json.RawMessage
}

type openAIPiece struct {
	Content   string
	Refusal   string
	ToolCalls []openAICall `json:"tool_calls"`
}

// readStream reads events until the answer is complete. Not all endpoints end with
// [DONE].
func (a *openAIAnswer) readStream(body io.Reader) error {
	events := sse.NewReader(body, 0)
	for {
		event, err := events.Next()
		switch {
		case errors.Is(err, io.EOF) && a.finish != "":
			return nil
		case errors.Is(err, io.EOF):
			return &failure{err: errBroken, again: true}
		case err != nil:
			return err
		case string(event.Data) == "[DONE]":
			if a.finish == "" {
				return &failure{err: errBroken, again: true}
			}
			return nil
		}
		if err := a.take(event.Data); err != nil {
			return err
		}
	}
}

// readWhole reads the answer of an endpoint that does not stream.
func (a *openAIAnswer) readWhole(body io.Reader) error {
	raw, err := io.ReadAll(io.LimitReader(body, sse.MaxEvent))
	if err != nil {
		return err
	}
	if err := a.take(raw); err != nil {
		return err
	}
	if a.finish == "" {
		return &failure{err: errBroken, again: true}
	}
	return nil
}

func (a *openAIAnswer) take(raw []byte) error {
	var c openAIChunk
	if err := json.Unmarshal(raw, &c); err != nil {
		return &failure{err: fault.Wrap(fault.Upstream, err, "read answer"), again: true} // half an event
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		kind, text := errorIn(raw)
		return refusedBy(http.StatusOK, nil, kind, text)
	}
	if c.ID != "" {
		a.id = c.ID
	}
	if c.Model != "" {
		a.model = c.Model
	}
	if u := c.Usage; u != nil {
		hit := min(max(u.Details.Cached, u.Cached), u.Prompt)
		a.usage = Usage{Input: u.Prompt - hit, Output: u.Completion, CacheRead: hit}
	}
	for _, choice := range c.Choices[:min(len(c.Choices), 1)] {
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
		for _, piece := range []openAIPiece{choice.Delta, choice.Message} {
			if err := a.add(piece); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *openAIAnswer) add(p openAIPiece) error {
	a.refuse = a.refuse || p.Refusal != ""
	for _, text := range []string{p.Content, p.Refusal} {
		if text != "" {
			a.text = append(a.text, text...)
			a.emit(Delta{Text: text})
		}
	}
	for _, piece := range p.ToolCalls {
		call := a.call(piece)
		if call == nil {
			return &failure{err: fault.New(fault.Upstream, "read answer: a chunk of a tool call has no call to belong to")}
		}
		if call.ID == "" {
			call.ID = piece.ID
		}
		if call.Function.Name == "" && piece.Function.Name != "" {
			call.Function.Name = piece.Function.Name
			a.emit(Delta{Use: call.Function.Name})
		}
		arguments := piece.Function.Arguments
		if text, ok := rawjson.Text(arguments); ok { // some send the object itself
			arguments = json.RawMessage(text)
		}
		call.Function.Arguments = append(call.Function.Arguments, arguments...)
	}
	return nil
}

// maxCalls limits the number of tool calls in an answer.
const maxCalls = 128

// call finds the tool call that a chunk belongs to: by its index, otherwise by its id;
// otherwise a chunk with a name begins a new one and others continue the last.
func (a *openAIAnswer) call(piece openAICall) *openAICall {
	if piece.Index != nil {
		return a.callAt(*piece.Index)
	}
	for _, c := range a.calls {
		if piece.ID != "" && c.ID == piece.ID {
			return c
		}
	}
	if piece.Function.Name != "" && len(a.calls) < maxCalls {
		a.calls = append(a.calls, &openAICall{})
		return a.calls[len(a.calls)-1]
	}
	if len(a.calls) == 0 {
		return nil
	}
	return a.calls[len(a.calls)-1]
}

func (a *openAIAnswer) callAt(index int) *openAICall {
	if index < 0 || index >= maxCalls {
		return nil
	}
	for len(a.calls) <= index {
		a.calls = append(a.calls, &openAICall{})
	}
	return a.calls[index]
}

// stops maps OpenAI's stop reasons to ours.
var stops = map[string]Stop{"stop": StopEnd, "tool_calls": StopTools, "function_call": StopTools, "length": StopLength, "content_filter": StopRefusal}

func (a *openAIAnswer) answer(model string) Answer {
	out := Answer{ID: a.id, Model: cmp.Or(a.model, model), Stop: Stop(a.finish), Usage: a.usage}
	if stop, known := stops[a.finish]; known {
		out.Stop = stop
	}
	if a.refuse {
		out.Stop = StopRefusal
	}
	if len(a.text) > 0 {
		out.Blocks = append(out.Blocks, Block{Text: string(a.text)})
	}
	for i, c := range a.calls {
		if c.Function.Name == "" {
			continue
		}
		if out.Stop == StopLength && i == len(a.calls)-1 {
			out.Cut = c.Function.Name
			continue
		}
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%d", i)
		}
		out.Blocks = append(out.Blocks, Block{Use: &Use{c.ID, c.Function.Name, objectOf(c.Function.Arguments)}})
		if out.Stop == StopEnd { // some endpoints send stop with tool calls
			out.Stop = StopTools
		}
	}
	return out
}
