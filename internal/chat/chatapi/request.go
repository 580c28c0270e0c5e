package chatapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/failure"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/core/principal"
)

// Model describes the model that answers.
type Model struct {
	Configured bool     `json:"configured"`
	Problem    string   `json:"problem,omitempty" doc:"why no message can be answered, and what to do"`
	Provider   string   `json:"provider,omitempty"`
	Model      string   `json:"model,omitempty"`
	Models     []string `json:"models" doc:"that a message can choose, the usual one first"`
	Media      []string `json:"media" doc:"what it takes beside text: image, audio, file"`
	Voice      bool     `json:"voice" doc:"whether voice messages are transcribed"`
}

// model is GET /api/v1/model.
func (d *Handler) model(*request) (Model, error) {
	about, _, problem := d.about()
	m := Model{Configured: problem == nil, Provider: about.Provider, Model: about.Model, Models: d.models(), Media: []string{}, Voice: d.options.Transcribe != nil}
	if problem != nil {
		f, _ := failureOf(problem)
		m.Problem = f.Message
	}
	for _, kind := range []llm.Kind{llm.Image, llm.Audio, llm.File} {
		if about.Takes(kind) {
			m.Media = append(m.Media, string(kind))
		}
	}
	return m, nil
}

// models are the names of the models that a message can choose.
func (d *Handler) models() []string {
	names := []string{}
	usual, all, _ := d.about()
	for _, m := range all {
		names = append(names, m.Model)
	}
	if len(names) == 0 && usual.Model != "" {
		names = append(names, usual.Model)
	}
	return names
}

// about identifies the models, or says why there is none.
func (d *Handler) about() (usual llm.About, all []llm.About, err error) {
	if d.options.Model == nil {
		return usual, nil, nil
	}
	return d.options.Model()
}

// checkModel refuses a model that cannot be chosen.
func (d *Handler) checkModel(name string) error {
	if names := d.models(); name != "" && !slices.Contains(names, name) {
		return fault.New(fault.InvalidParams, "the model %q cannot be chosen", name).
			WithHint("use one of %s, or set [chat] models in luanette.toml", strings.Join(names, ", "))
	}
	return nil
}

const (
	maxBody    = 200 << 10
	maxMessage = 100_000 // bytes
	maxKey     = 256
)

// Request is a message as clients send it.
type Request struct {
	ClientID    string `json:"client_id" doc:"the program that sends it"`
	UserID      string `json:"user_id" doc:"the person who sends it"`
	Org         string `json:"org,omitempty" doc:"the person's organisation; that of the key if it is missing"`
	OrgID       string `json:"org_id,omitempty" doc:"alias of org"`
	Message     string `json:"message" doc:"the text of the message"`
	MessageType string `json:"message_type,omitempty" doc:"text (the default) or audio"`
	MessageKey  string `json:"message_key,omitempty" doc:"idempotency key of the client; a message with the same key is the same message and gets the same answer"`

	AudioBase64 string       `json:"audio_base64,omitempty" doc:"a voice message in base64; refused if the server cannot transcribe it"`
	AudioFormat string       `json:"audio_format,omitempty" doc:"its format: ogg (the default), mp3, wav, m4a and so on, or its media type"`
	Attachments []Attachment `json:"attachments,omitempty" doc:"images, sounds and files"`

	CallbackURL     string   `json:"progress_callback_url,omitempty" doc:"where /chat/callback sends the answer"`
	ThrottleSeconds *float64 `json:"progress_throttle_seconds,omitempty" doc:"seconds between two pieces in mode periodic, 1 to 3600; default 5"`
	ProgressMode    string   `json:"progress_mode,omitempty" doc:"complete, iteration (the default), periodic or sentence"`

	ChatType     string `json:"chat_type,omitempty" doc:"private; groups are not supported"`
	ChatID       string `json:"chat_id,omitempty" doc:"one of a person's conversations"`
	ThreadID     string `json:"thread_id,omitempty" doc:"one thread of a conversation"`
	Model        string `json:"model,omitempty" doc:"one of the models of GET /api/v1/model; the first of them if it is missing"`
	LanguageHint string `json:"response_language_hint,omitempty" doc:"language of the answer if the person has not chosen one"`
	IsAdmin      *bool  `json:"is_admin,omitempty" doc:"not accepted: the API key decides"`
	ToolEvents   bool   `json:"tool_events,omitempty" doc:"send tool_use and tool_result events, with the arguments and results of tools"`
	Strict       bool   `json:"strict,omitempty" doc:"refuse unknown fields, instead of a warning in the answer"`
}

// Response is the answer to a message.
type Response struct {
	Responses        []string `json:"responses" doc:"one per block of text"`
	ResponseLanguage string   `json:"response_language"`
	VoiceAudio       *string  `json:"voice_audio_base64" doc:"always null"`
	MessageID        string   `json:"message_id"`
	RequestID        string   `json:"request_id" doc:"in the log of the server"`
	Model            string   `json:"model,omitempty"`
	Usage            any      `json:"usage,omitempty" doc:"tokens and cost"`
	Warnings         []string `json:"warnings,omitempty" doc:"fields of the request that were ignored"`
	Notices          any      `json:"notices,omitempty" doc:"limits that were reached, servers that were unreachable"`
	Media            []Media  `json:"media,omitempty" doc:"images, sounds and files that tools returned"`
	Transcript       string   `json:"transcript,omitempty" doc:"what was understood of a voice message"`
	TraceID          string   `json:"trace_id,omitempty" doc:"trace of the answer, if the server stores traces"`
}

func tooLong(most int64) error {
	return failure.As(failure.TooLarge, fault.New(fault.Limit, "the body has more than %d bytes", most).WithHint("send less at once"))
}

// decode reads a request. Unknown fields are ignored, because clients of the program that
// this one replaces send some, and named in warnings.
func (q *Request) decode(body []byte) (warnings []string, err error) {
	unknown := httpjson.Decode(body, q)
	if unknown == nil {
		return nil, nil
	}
	var plain Request
	if json.Unmarshal(body, &plain) != nil || plain.Strict {
		return nil, unknown
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(body, &given); err != nil {
		return nil, unknown
	}
	known := requestFields()
	for name := range given {
		if !slices.Contains(known, name) {
			warnings = append(warnings, ignored(name, known))
		}
	}
	slices.Sort(warnings)
	*q = plain
	return warnings[:min(len(warnings), maxWarnings)], nil
}

const maxWarnings = 20

// ignored is the warning about an unknown field.
func ignored(name string, known []string) string {
	text := fmt.Sprintf("the field %s is unknown and was ignored", redact.Cut(name, 100))
	if near := suggest.Names(name, known, 1); len(near) > 0 {
		text += fmt.Sprintf("; did you mean %q?", near[0])
	}
	return text
}

// withIgnored adds the warnings to the error of a request that is not valid: a field that
// is missing may have been misspelled.
func withIgnored(err error, warnings []string) error {
	var invalid *fault.Error
	if len(warnings) == 0 || !errors.As(err, &invalid) || invalid.Code != fault.InvalidParams || invalid.Hint != "" {
		return err
	}
	return invalid.WithHint("%s", strings.Join(warnings, "; "))
}

// requestFields are the names of the fields of a request.
var requestFields = sync.OnceValue(func() (names []string) {
	t := reflect.TypeFor[Request]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
})

// message reads and checks a request, in the order clients rely on.
func (d *Handler) message(r *request, callback bool) (q Request, m conversation.Message, err error) {
	body, err := r.body()
	if err != nil {
		return q, m, err
	}
	warnings, err := q.decode(body)
	if q.withoutMedia(body) > maxBody {
		return q, m, tooLong(maxBody)
	}
	if err != nil {
		return q, m, err
	}
	if m, err = d.checked(r, q, callback); err == nil {
		var more []string
		more, err = d.attachTo(r.Context(), q, &m)
		warnings = append(warnings, more...)
	}
	if err != nil {
		return q, m, withIgnored(err, warnings)
	}
	if !callback {
		warnings = append(warnings, q.withoutCallback()...)
	}
	m.Warnings = warnings
	return q, m, nil
}

// person returns whose message it is: without an organisation, that of the caller.
func (q Request) person(who principal.Principal) profile.Person {
	return profile.Person{Org: cmp.Or(q.Org, q.OrgID, who.Org, profile.DefaultOrg), User: q.UserID}
}

func (d *Handler) checked(r *request, q Request, callback bool) (m conversation.Message, err error) {
	if err := q.check(); err != nil {
		return m, err
	}
	if callback {
		if err := d.checkCallback(q); err != nil {
			return m, err
		}
	}
	who := principal.Of(r.Context())
	person := q.person(who)
	if err := person.Check(); err != nil {
		return m, err
	}
	if err := maySend(who, person); err != nil {
		return m, err
	}
	if err := d.checkModel(q.Model); err != nil {
		return m, err
	}
	var asker *principal.Principal
	if who.ID != principal.LocalID {
		asker = &who
	}
	if err := d.checkRate(person); err != nil {
		return m, err
	}
	return conversation.Message{
		RequestID: r.id, Person: person, Client: q.ClientID, Key: q.MessageKey, Model: q.Model,
		Conversation: strings.Trim(q.ChatID+"/"+q.ThreadID, "/"), Text: q.Message, Hint: q.LanguageHint, Asker: asker,
	}, nil
}

// checkRate counts a message of a person, or what is as much work as one.
func (d *Handler) checkRate(p profile.Person) error {
	if _, ok := d.rates.Allow(p.String(), d.options.Rate, d.options.Clock.Now()); ok {
		return nil
	}
	return failure.As(failure.RateLimited, fault.New(fault.Limit, "more than %d messages in a minute", d.options.Rate).WithHint("send fewer"))
}

// maySend checks that the principal may send messages as that person.
func maySend(who principal.Principal, person profile.Person) error {
	if !who.May(principal.Chat, person.Org) {
		return fault.New(fault.Denied, "%s may not send messages", who.Title()).WithHint("it needs the scope chat of the organisation %s", person.Org)
	}
	if who.User != "" && who.User != person.User {
		return fault.New(fault.Denied, "%s may send messages as %s only", who.Title(), who.User)
	}
	return nil
}

func (q Request) check() error {
	bad := func(format string, args ...any) *fault.Error { return fault.New(fault.InvalidParams, format, args...) }
	switch {
	case strings.TrimSpace(q.UserID) == "":
		return bad("user_id is required")
	case strings.TrimSpace(q.ClientID) == "":
		return bad("client_id is required")
	case q.IsAdmin != nil:
		return bad("is_admin is not a field of a request")
	case q.ChatType != "" && q.ChatType != "private":
		return bad("chat_type %q is not supported, only private", q.ChatType)
	case len(q.ChatID) > maxKey || len(q.ThreadID) > maxKey || len(q.MessageKey) > maxKey || len(q.ClientID) > maxKey:
		return bad("client_id, chat_id, thread_id and message_key may have at most %d bytes", maxKey)
	}
	if err := q.checkContent(); err != nil {
		return err
	}
	if q.LanguageHint != "" {
		_, err := profile.CheckLanguage(q.LanguageHint)
		return err
	}
	return nil
}

// checkContent checks that a request contains something, and not too much.
func (q Request) checkContent() error {
	bad := func(format string, args ...any) *fault.Error { return fault.New(fault.InvalidParams, format, args...) }
	switch {
	case q.MessageType == "audio" && q.AudioBase64 == "":
		return failure.As(failure.InvalidAudio, bad("audio_base64 is required in a message of the type audio"))
	case q.MessageType != "" && q.MessageType != "text" && q.MessageType != "audio":
		return bad("message_type must be text or audio, not %q", q.MessageType)
	case strings.TrimSpace(q.Message) == "" && q.AudioBase64 == "" && len(q.Attachments) == 0:
		return bad("message is required")
	case len(q.Attachments) > maxAttachments:
		return bad("%d attachments are too many", len(q.Attachments)).WithHint("at most %d are allowed", maxAttachments)
	case len(q.Message) > maxMessage:
		return bad("message has %d bytes, at most %d are allowed", len(q.Message), maxMessage).WithHint("send the rest as an attachment")
	default:
		return nil
	}
}
