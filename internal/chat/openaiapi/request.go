package openaiapi

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/failure"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/core/principal"
)

// maxBody limits a request, which has the whole conversation with its images.
const maxBody = 32 << 20

// Request is a request of the API. Other fields of OpenAI's are ignored: they tune
// OpenAI's own models.
type Request struct {
	Model               string          `json:"model"`
	Messages            []message       `json:"messages"`
	Stream              bool            `json:"stream"`
	StreamOptions       streamOptions   `json:"stream_options"`
	Tools               []clientTool    `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	MaxTokens           int             `json:"max_tokens"`
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	N                   *int            `json:"n"`
	User                string          `json:"user"`
	SafetyIdentifier    string          `json:"safety_identifier"`
	ResponseFormat      responseFormat  `json:"response_format"`
	Functions           json.RawMessage `json:"functions"`
	Modalities          []string        `json:"modalities"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type clientTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type responseFormat struct {
	Type       string `json:"type"`
	JSONSchema struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

func readRequest(r *http.Request) (q Request, err error) {
	body, err := io.ReadAll(r.Body)
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return q, failure.As(failure.TooLarge, fault.New(fault.Limit, "the body has more than %d bytes", maxBody))
	case err != nil:
		return q, fault.Wrap(fault.InvalidParams, err, "read body")
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return q, badJSON(err)
	}
	return q, q.check()
}

// badJSON names the field of a wrong type.
func badJSON(err error) error {
	var field paramError
	if errors.As(err, &field) {
		return err
	}
	wrapped := fault.Wrap(fault.InvalidParams, rawjson.InWords(err), "the body is not a request of chat completions")
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return paramError{wrong.Field, wrapped}
	}
	return wrapped
}

// check refuses what this API cannot do and what would change the answer if it was
// ignored.
func (q *Request) check() error {
	switch {
	case q.Model == "":
		return bad("model", "model is required")
	case len(q.Messages) == 0:
		return bad("messages", "messages is required")
	case q.N != nil && *q.N != 1:
		return bad("n", "n must be 1: the agent gives one answer")
	case len(q.Functions) > 0 && string(q.Functions) != "null":
		return bad("functions", "functions is not supported, use tools")
	case len(q.Modalities) > 1 || len(q.Modalities) == 1 && q.Modalities[0] != "text":
		return bad("modalities", "only text is supported")
	}
	return nil
}

// toolName matches the names of tools that providers allow.
var toolName = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)

// clientTools returns the client's tools and whether one must be called.
func (q *Request) clientTools() (tools agent.ClientTools, err error) {
	names := map[string]bool{}
	for _, t := range q.Tools {
		switch name := t.Function.Name; {
		case t.Type != "function":
			return tools, bad("tools", "tools of the type %q are not supported, only function", t.Type)
		case !toolName().MatchString(name):
			return tools, bad("tools", "the name %q of a tool is not 1 to 64 of a-z, A-Z, 0-9, _ and -", name)
		case names[name]:
			return tools, bad("tools", "two tools have the name %q", name)
		}
		names[t.Function.Name] = true
		tools.Tools = append(tools.Tools, llm.Tool{Name: t.Function.Name, Description: t.Function.Description, Input: t.Function.Parameters})
	}
	return tools, q.choose(&tools, names)
}

// choose reads tool_choice, which is about the client's tools only.
func (q *Request) choose(tools *agent.ClientTools, names map[string]bool) error {
	if len(q.ToolChoice) == 0 || string(q.ToolChoice) == "null" {
		return nil
	}
	var word string
	var one clientTool
	if json.Unmarshal(q.ToolChoice, &word) != nil && json.Unmarshal(q.ToolChoice, &one) != nil {
		return bad("tool_choice", "tool_choice must be none, auto, required or a function")
	}
	switch {
	case word == "auto":
	case word == "none":
		tools.Tools = nil
	case word == "required" && len(tools.Tools) > 0:
		tools.Choice = llm.Choice{Required: true}
	case word == "" && names[one.Function.Name]:
		tools.Choice = llm.Choice{Required: true, Name: one.Function.Name}
	default:
		return bad("tool_choice", "tool_choice must be none, auto, required or a function in tools, not %s", q.ToolChoice)
	}
	return nil
}

// format returns instructions for an answer in JSON.
func (q *Request) format() (string, error) {
	switch f := q.ResponseFormat; f.Type {
	case "", "text":
		return "", nil
	case "json_object":
		return "Answer with one JSON object and nothing else: no text before or after it, no code fence.", nil
	case "json_schema":
		return "Answer with JSON that is valid under this JSON Schema and nothing else: no text before or after it, no code fence.\n" + string(f.JSONSchema.Schema), nil
	default:
		return "", bad("response_format", "response_format %q is not supported, only text, json_object and json_schema", f.Type)
	}
}

// personOf returns on whose behalf a request is made: the key's person, otherwise the one
// that the client names, otherwise the key itself.
func personOf(r *http.Request, user string) (profile.Person, error) {
	who := principal.Of(r.Context())
	p := profile.Person{
		Org:  cmp.Or(r.Header.Get("OpenAI-Organization"), who.Org, profile.DefaultOrg),
		User: cmp.Or(who.User, user, who.Name, who.ID),
	}
	if !who.May(principal.Chat, p.Org) {
		return p, fault.New(fault.Denied, "%s may not send messages", who.Title()).WithHint("it needs the scope chat of the organisation %s", p.Org)
	}
	return p, p.Check()
}

// message is a message of a request.
type message struct {
	Role       string     `json:"role"`
	Content    content    `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

// toolCall is a call of one of the client's tools.
type toolCall struct {
	Index    *int         `json:"index,omitempty"` // in a stream
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function callFunction `json:"function"`
}

type callFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// use returns the call for the model; providers refuse arguments that are not JSON.
func (c toolCall) use() *llm.Use {
	input := json.RawMessage(c.Function.Arguments)
	if !json.Valid(input) {
		input = json.RawMessage(`{}`)
	}
	return &llm.Use{ID: c.ID, Name: c.Function.Name, Input: input}
}

// conversation returns the messages to the model, and the client's instructions.
func (q *Request) conversation() (messages []llm.Message, instructions string, err error) {
	var system []string
	for i, m := range q.Messages {
		switch m.Role {
		case "system", "developer":
			system = append(system, m.Content.text)
			continue
		case "user":
			messages = append(messages, llm.Message{Role: llm.User, Blocks: m.Content.blocks()})
		case "assistant":
			blocks := m.Content.blocks()
			for _, call := range m.ToolCalls {
				blocks = append(blocks, llm.Block{Use: call.use()})
			}
			messages = append(messages, llm.Message{Role: llm.Assistant, Blocks: blocks})
		case "tool":
			result := &llm.Result{ID: m.ToolCallID, Text: m.Content.text, Media: m.Content.media}
			messages = append(messages, llm.Message{Role: llm.User, Blocks: []llm.Block{{Result: result}}})
		default:
			return nil, "", bad(fmt.Sprintf("messages[%d].role", i), "the role %q is not supported", m.Role)
		}
	}
	if n := len(messages); n == 0 || messages[n-1].Role != llm.User || len(messages[n-1].Blocks) == 0 {
		return nil, "", bad("messages", "the last message must be one of the user or of a tool, with content")
	}
	return messages, strings.TrimSpace(strings.Join(system, "\n\n")), nil
}

// content is the content of a message: a string, or a list of parts.
type content struct {
	text  string
	media []llm.Media
}

// part is one part of a content.
type part struct {
	Type, Text, Refusal string
	Image               struct{ URL string }          `json:"image_url"`
	Audio               struct{ Data, Format string } `json:"input_audio"`
	File                struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
	} `json:"file"`
}

// UnmarshalJSON reads both forms.
func (c *content) UnmarshalJSON(raw []byte) error {
	if text, ok := rawjson.Text(raw); ok {
		c.text = text
		return nil
	}
	var parts []part
	if err := json.Unmarshal(raw, &parts); err != nil {
		return bad("messages", "the content of a message must be text or a list of parts")
	}
	var texts []string
	for _, p := range parts {
		if p.Type == "text" || p.Type == "refusal" {
			texts = append(texts, p.Text+p.Refusal)
			continue
		}
		media, err := p.media()
		if err != nil {
			return err
		}
		c.media = append(c.media, media)
	}
	c.text = strings.Join(texts, "\n")
	return nil
}

// media returns an image, a sound or a file. It is part of the request: this server
// fetches nothing that a client names.
func (p part) media() (m llm.Media, err error) {
	switch p.Type {
	case "image_url":
		m, err = fromDataURL(p.Image.URL)
	case "file":
		m, err = fromDataURL(p.File.Data)
		m.Name = p.File.Name
	case "input_audio":
		m.MIME = map[string]string{"wav": "audio/wav", "mp3": "audio/mpeg"}[p.Audio.Format]
		m.Data, err = base64.StdEncoding.DecodeString(p.Audio.Data)
	default:
		return m, bad("messages", "content of the type %q is not supported, only text, image_url, input_audio and file", p.Type)
	}
	if err != nil || len(m.Data) == 0 || m.MIME == "" {
		return m, bad("messages", "the content of a part of the type %s must be in the request, in base64 (data:TYPE;base64,… in image_url and file_data)", p.Type)
	}
	return m, nil
}

func fromDataURL(url string) (llm.Media, error) {
	head, data, _ := strings.Cut(url, ",")
	kind, isData := strings.CutPrefix(head, "data:")
	kind, inBase64 := strings.CutSuffix(kind, ";base64")
	if !isData || !inBase64 {
		return llm.Media{}, nil
	}
	decoded, err := base64.StdEncoding.DecodeString(data)
	return llm.Media{MIME: kind, Data: decoded}, err
}

// blocks returns no block for an empty text, which providers refuse.
func (c content) blocks() (blocks []llm.Block) {
	if strings.TrimSpace(c.text) != "" {
		blocks = append(blocks, llm.Block{Text: c.text})
	}
	for i := range c.media {
		blocks = append(blocks, llm.Block{Media: &c.media[i]})
	}
	return blocks
}

// image is an image of a tool's result in an answer. OpenAI's format has no place for it;
// this is the one that clients know from other servers.
type image struct {
	Type  string   `json:"type"`
	Index int      `json:"index"`
	URL   imageURL `json:"image_url"`
}

type imageURL struct {
	URL string `json:"url"`
}

// imageOf returns an image of a tool's result for the client, or false for other media.
func imageOf(m llm.Media, index int) (image, bool) {
	if m.Kind() != llm.Image {
		return image{}, false
	}
	return image{"image_url", index, imageURL{"data:" + m.MIME + ";base64," + base64.StdEncoding.EncodeToString(m.Data)}}, true
}
