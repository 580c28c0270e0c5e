package llmtest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
)

// The request in Anthropic's format.
type (
	anthropicRequest struct {
		Model     string
		MaxTokens int `json:"max_tokens"`
		Stream    bool
		System    []anthropicBlock
		Tools     []struct {
			Name         string
			Description  string
			InputSchema  map[string]any  `json:"input_schema"`
			CacheControl json.RawMessage `json:"cache_control"`
		}
		Messages []struct {
			Role    string
			Content []anthropicBlock
		}
	}
	anthropicBlock struct {
		Type      string
		Text      string
		ID        string
		Name      string
		Input     json.RawMessage
		ToolUseID string `json:"tool_use_id"`
		Content   []anthropicBlock
		Source    struct {
			Type      string
			MediaType string `json:"media_type"`
			Data      string
		}
		Thinking     string
		Signature    string
		CacheControl json.RawMessage `json:"cache_control"`
	}
)

type object map[string]any

func (s *Server) anthropic(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(r)
	var q anthropicRequest
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	refuse := func(status int, kind, text, after string) {
		w.Header().Set("Request-Id", "req_stand_in")
		writeJSON(w, status, after, object{"type": "error", "error": object{"type": kind, "message": text}, "request_id": "req_stand_in"})
	}
	switch {
	case r.Header.Get("X-Api-Key") != Key:
		refuse(http.StatusUnauthorized, "authentication_error", "invalid x-api-key", "")
		return
	case r.Header.Get("Anthropic-Version") != "2023-06-01":
		refuse(http.StatusBadRequest, "invalid_request_error", "anthropic-version: header is required", "")
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
	s.sayAnthropic(begin(w, r, step, "event: ping\ndata: {\"type\": \"ping\"}\n\n"), &q, step)
}

// check returns why the real API would refuse the request.
func (q *anthropicRequest) check() string {
	switch {
	case q.Model == "" || q.MaxTokens <= 0 || !q.Stream:
		return "model, max_tokens and stream are wanted"
	case len(q.Messages) == 0 || q.Messages[0].Role != "user":
		return "messages: the first message must be the user's"
	case q.marks() > 4:
		return "a maximum of 4 blocks with cache_control may be provided"
	}
	for i, t := range q.Tools {
		if !toolName.MatchString(t.Name) {
			return fmt.Sprintf("tools.%d.name: %q does not match %s", i, t.Name, toolName)
		}
		if t.InputSchema["type"] != "object" {
			return fmt.Sprintf("tools.%d.input_schema.type: Field required", i)
		}
		for _, key := range []string{"oneOf", "anyOf", "allOf"} {
			if t.InputSchema[key] != nil {
				return fmt.Sprintf("tools.%d.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", i)
			}
		}
		properties, _ := t.InputSchema["properties"].(map[string]any)
		for name := range properties {
			if !propertyName.MatchString(name) {
				return fmt.Sprintf("tools.%d.custom.input_schema.properties: Property keys should match pattern '%s'", i, propertyName)
			}
		}
		for _, other := range q.Tools[:i] {
			if other.Name == t.Name {
				return "tools: Tool names must be unique."
			}
		}
	}
	return q.checkMessages()
}

var propertyName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)

// checkMessages checks that every tool use is followed by its result.
func (q *anthropicRequest) checkMessages() string {
	open := map[string]bool{}
	for i, m := range q.Messages {
		if len(m.Content) == 0 {
			return fmt.Sprintf("messages.%d: content must be non-empty", i)
		}
		for _, b := range m.Content {
			switch {
			case b.Type == "text" && b.Text == "":
				return fmt.Sprintf("messages.%d: text content blocks must be non-empty", i)
			case b.Type == "tool_result" && !open[b.ToolUseID]:
				return fmt.Sprintf("messages.%d: unexpected tool_use_id %q found in tool_result blocks", i, b.ToolUseID)
			case b.Type == "thinking" && b.Signature == "":
				return fmt.Sprintf("messages.%d: thinking blocks need their signature", i)
			}
			if wrong := b.checkMedia(); wrong != "" {
				return fmt.Sprintf("messages.%d: %s", i, wrong)
			}
			delete(open, b.ToolUseID)
		}
		if m.Role == "user" && len(open) > 0 {
			return fmt.Sprintf("messages.%d: tool_use ids were found without tool_result blocks immediately after", i)
		}
		for _, b := range m.Content {
			if b.Type == "tool_use" {
				open[b.ID] = true
			}
		}
	}
	return ""
}

// checkMedia checks an image or a document, also in a tool's result.
func (b anthropicBlock) checkMedia() string {
	for _, inner := range b.Content {
		if wrong := inner.checkMedia(); wrong != "" {
			return wrong
		}
	}
	allowed := map[string][]string{"image": {"image/jpeg", "image/png", "image/gif", "image/webp"}, "document": {"application/pdf"}}[b.Type]
	switch _, err := base64.StdEncoding.DecodeString(b.Source.Data); {
	case allowed == nil:
		return ""
	case b.Source.Type != "base64" || !slices.Contains(allowed, b.Source.MediaType):
		return fmt.Sprintf("%s.source: %s %q is not one of %v", b.Type, b.Source.Type, b.Source.MediaType, allowed)
	case err != nil || b.Source.Data == "":
		return b.Type + ".source.base64.data: invalid base64 data"
	case b.Type == "image" && len(b.Source.Data) > 5_000_000:
		return "image exceeds 5 MB maximum"
	}
	return ""
}

// mediaOf lists the images and documents of blocks.
func mediaOf(blocks []anthropicBlock) (list []Media) {
	for _, b := range blocks {
		if b.Source.Data != "" {
			data, _ := base64.StdEncoding.DecodeString(b.Source.Data) // it was checked
			list = append(list, Media{Kind: b.Type, MIME: b.Source.MediaType, Data: data})
		}
		list = append(list, mediaOf(b.Content)...)
	}
	return list
}

func (q *anthropicRequest) marks() int {
	n := 0
	count := func(mark json.RawMessage) {
		if len(mark) > 0 {
			n++
		}
	}
	for _, b := range q.System {
		count(b.CacheControl)
	}
	for _, t := range q.Tools {
		count(t.CacheControl)
	}
	for _, m := range q.Messages {
		for _, b := range m.Content {
			count(b.CacheControl)
		}
	}
	return n
}

func (q *anthropicRequest) request(header http.Header, body []byte) Request {
	r := Request{Wire: "anthropic", Header: header, Body: body, Model: q.Model}
	for _, b := range q.System {
		r.System += b.Text + "\n"
	}
	for _, t := range q.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	for _, m := range q.Messages {
		r.Turns = append(r.Turns, Turn{m.Role, textOf(m.Content)})
		r.add(mediaOf(m.Content))
	}
	return r
}

func textOf(blocks []anthropicBlock) string {
	text := ""
	for _, b := range blocks {
		text += b.Text + textOf(b.Content)
	}
	return text
}

// prefix returns the part of a request that is marked for the cache.
func (q *anthropicRequest) prefix() []byte {
	var stays []anthropicBlock
	for _, b := range q.System {
		stays = append(stays, b)
		if len(b.CacheControl) > 0 {
			raw, _ := json.Marshal([]any{q.Tools, stays}) // it came as JSON
			return raw
		}
	}
	return nil
}

func (s *Server) sayAnthropic(out *stream, q *anthropicRequest, step Step) {
	written, read := 0, 0
	if prefix := q.prefix(); prefix != nil {
		if s.cached(prefix) {
			read = len(prefix) / 4
		} else {
			written = len(prefix) / 4
		}
	}
	out.send("message_start", object{"type": "message_start", "message": object{
		"id": "msg_stand_in", "type": "message", "role": "assistant", "model": q.Model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil,
		"usage": object{"input_tokens": 100, "cache_creation_input_tokens": written, "cache_read_input_tokens": read, "output_tokens": 1},
	}})
	index := 0
	block := func(first object, deltas ...object) {
		out.send("content_block_start", object{"type": "content_block_start", "index": index, "content_block": first})
		for _, d := range deltas {
			out.send("content_block_delta", object{"type": "content_block_delta", "index": index, "delta": d})
		}
		if !step.Break {
			out.send("content_block_stop", object{"type": "content_block_stop", "index": index})
		}
		index++
	}
	if step.Think != "" {
		block(object{"type": "thinking", "thinking": "", "signature": ""},
			object{"type": "thinking_delta", "thinking": step.Think}, object{"type": "signature_delta", "signature": "EqQBstandin"})
	}
	if len(step.Say) > 0 {
		var deltas []object
		step.speak()
		for _, piece := range step.Say {
			deltas = append(deltas, object{"type": "text_delta", "text": piece})
		}
		block(object{"type": "text", "text": ""}, deltas...)
	}
	for _, use := range step.Use {
		deltas := []object{{"type": "input_json_delta", "partial_json": ""}}
		for _, piece := range pieces(use.Input, 7) {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": piece})
		}
		block(object{"type": "tool_use", "id": use.ID, "name": use.Name, "input": object{}}, deltas...)
	}
	if step.Kind != "" {
		out.send("error", object{"type": "error", "error": object{"type": step.Kind, "message": step.Text}})
		return
	}
	if step.Half {
		out.half()
		return
	}
	if step.Break {
		cut()
	}
	out.send("message_delta", object{
		"type": "message_delta", "delta": object{"stop_reason": step.stop(), "stop_sequence": nil}, "usage": object{"output_tokens": 20},
	})
	out.send("message_stop", object{"type": "message_stop"})
}

func (s Step) stop() string {
	switch {
	case s.Stop != "":
		return s.Stop
	case len(s.Use) > 0:
		return "tool_use"
	default:
		return "end_turn"
	}
}
