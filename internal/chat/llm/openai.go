package llm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"strings"
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
