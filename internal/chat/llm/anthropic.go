package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
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
