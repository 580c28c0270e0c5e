package llmtest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// The request in OpenAI's format.
type openAIRequest struct {
	Model         string
	Stream        bool
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []struct {
		Type     string
		Function struct {
			Name       string
			Parameters map[string]any
		}
	}
	Messages []openAIMessage
}

type openAIMessage struct {
	Role      string
	Content   openAIContent
	ToolCalls []struct {
		ID       string
		Type     string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
}

func (s *Server) openAI(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(r)
	var q openAIRequest
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	refuse := func(status int, kind, text, after string) {
		writeJSON(w, status, after, object{"error": object{"message": text, "type": kind, "param": nil, "code": nil}})
	}
	switch {
	case r.Header.Get("Authorization") != "Bearer "+Key:
		refuse(http.StatusUnauthorized, "invalid_request_error", "Incorrect API key provided", "")
		return
	case err != nil:
		refuse(http.StatusBadRequest, "invalid_request_error", err.Error(), "")
		return
	}
	if wrong := q.check(); wrong != "" {
		s.mu.Lock()
		s.trouble = append(s.trouble, wrong)
		s.mu.Unlock()
		refuse(http.StatusBadRequest, "invalid_request_error", wrong, "")
		return
	}
	step := s.take(q.request(r.Header, body))
	if step.Status != 0 && step.Status != http.StatusOK {
		refuse(step.Status, step.Kind, step.Text, step.RetryAfter)
		return
	}
	sayOpenAI(begin(w, r, step, ": keep-alive\n\n"), &q, step)
}

// check returns why the real API would refuse the request.
func (q *openAIRequest) check() string {
	if q.Model == "" || !q.Stream || !q.StreamOptions.IncludeUsage || len(q.Messages) == 0 {
		return "model, messages, stream and stream_options.include_usage are wanted"
	}
	for i, t := range q.Tools {
		if t.Type != "function" || len(t.Function.Name) > 64 || !toolName.MatchString(t.Function.Name) || t.Function.Parameters["type"] != "object" {
			return fmt.Sprintf("tools[%d] is not a function with a name and an object schema", i)
		}
	}
	open := map[string]bool{}
	for i, m := range q.Messages {
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return fmt.Sprintf("messages[%d]: messages with role 'tool' must be a response to a preceding message with 'tool_calls'", i)
			}
			delete(open, m.ToolCallID)
			continue
		}
		if len(open) > 0 {
			return fmt.Sprintf("messages[%d]: an assistant message with 'tool_calls' must be followed by tool messages", i)
		}
		if m.Content.null && len(m.ToolCalls) == 0 {
			return fmt.Sprintf("messages[%d]: content is null", i)
		}
		if len(m.Content.media) > 0 && m.Role != "user" {
			return fmt.Sprintf("messages[%d]: only messages of the user have images, sounds and files", i)
		}
		for _, c := range m.ToolCalls {
			if c.Type != "function" || !json.Valid([]byte(c.Function.Arguments)) {
				return fmt.Sprintf("messages[%d]: tool_calls are functions with JSON arguments", i)
			}
			open[c.ID] = true
		}
	}
	return ""
}

// request converts a request; the tool messages that answer one message, and the
// images after them, become one.
func (q *openAIRequest) request(header http.Header, body []byte) Request {
	r := Request{Wire: "openai", Header: header, Body: body, Model: q.Model}
	for _, t := range q.Tools {
		r.Tools = append(r.Tools, t.Function.Name)
	}
	for i, m := range q.Messages {
		afterTool := i > 0 && m.Role == "user" && q.Messages[i-1].Role == "tool"
		text := m.Content.text
		switch last := len(r.Turns) - 1; {
		case m.Role == "system":
			r.System += text
		case (m.Role == "tool" || afterTool) && last >= 0 && r.Turns[last].Role == "user":
			r.Turns[last].Text += text
		case m.Role == "tool":
			r.Turns = append(r.Turns, Turn{"user", text})
		default:
			r.Turns = append(r.Turns, Turn{m.Role, text})
		}
		r.add(m.Content.media)
	}
	return r
}

func sayOpenAI(out *stream, q *openAIRequest, step Step) {
	chunk := func(delta object, finish any) {
		out.send("", object{
			"id": "chatcmpl-stand-in", "object": "chat.completion.chunk", "created": 1780000000, "model": q.Model,
			"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}},
		})
	}
	chunk(object{"role": "assistant", "content": ""}, nil)
	step.speak()
	for _, piece := range step.Say {
		chunk(object{"content": piece}, nil)
	}
	for i, use := range step.Use {
		chunk(object{"tool_calls": []object{{"index": i, "id": use.ID, "type": "function", "function": object{"name": use.Name, "arguments": ""}}}}, nil)
		for _, piece := range pieces(use.Input, 7) {
			chunk(object{"tool_calls": []object{{"index": i, "function": object{"arguments": piece}}}}, nil)
		}
	}
	if step.Kind != "" {
		out.send("", object{"error": object{"message": step.Text, "type": step.Kind}})
		return
	}
	if step.Half {
		out.half()
		return
	}
	if step.Break {
		cut()
	}
	chunk(object{}, finishes[step.stop()])
	out.send("", object{
		"id": "chatcmpl-stand-in", "object": "chat.completion.chunk", "created": 1780000000, "model": q.Model, "choices": []any{},
		"usage": object{"prompt_tokens": 120, "completion_tokens": 20, "total_tokens": 140, "prompt_tokens_details": object{"cached_tokens": 20}},
	})
	out.write("data: [DONE]\n\n")
}

// finishes maps Anthropic's stop reasons to OpenAI's.
var finishes = map[string]string{"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}

// openAIContent is the content of a message: null, a text, or parts.
type openAIContent struct {
	null  bool
	text  string
	media []Media
}

// openAIPart is a part of a content, in the formats of the real API.
type openAIPart struct {
	Type  string
	Text  string
	Image struct{ URL string }          `json:"image_url"`
	Audio struct{ Data, Format string } `json:"input_audio"`
	File  struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
	} `json:"file"`
}

// UnmarshalJSON refuses what the real API would refuse.
func (c *openAIContent) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		c.null = true
		return nil
	}
	if json.Unmarshal(raw, &c.text) == nil {
		return nil
	}
	var parts []openAIPart
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	for i, p := range parts {
		media, err := p.media()
		if err != nil {
			return fmt.Errorf("content[%d]: %w", i, err)
		}
		c.text += p.Text
		c.media = append(c.media, media...)
	}
	return nil
}

func (p openAIPart) media() ([]Media, error) {
	switch p.Type {
	case "text":
		return nil, nil
	case "image_url":
		return fromDataURL(p.Type, p.Image.URL, "image/")
	case "file":
		if p.File.Name == "" {
			return nil, fmt.Errorf("file.filename is required")
		}
		return fromDataURL(p.Type, p.File.Data, "application/pdf")
	case "input_audio":
		data, err := base64.StdEncoding.DecodeString(p.Audio.Data)
		if p.Audio.Format != "wav" && p.Audio.Format != "mp3" {
			err = fmt.Errorf("input_audio.format %q is not wav or mp3", p.Audio.Format)
		}
		return []Media{{Kind: p.Type, MIME: p.Audio.Format, Data: data}}, err
	default:
		return nil, fmt.Errorf("there is no type %q", p.Type)
	}
}

// fromDataURL reads data:TYPE;base64,DATA.
func fromDataURL(kind, url, prefix string) ([]Media, error) {
	head, data, found := strings.Cut(url, ";base64,")
	mime, isData := strings.CutPrefix(head, "data:")
	decoded, err := base64.StdEncoding.DecodeString(data)
	if !found || !isData || !strings.HasPrefix(mime, prefix) || err != nil || len(decoded) == 0 {
		return nil, fmt.Errorf("%s: not a data URL of %s", kind, prefix)
	}
	return []Media{{Kind: kind, MIME: mime, Data: decoded}}, nil
}
