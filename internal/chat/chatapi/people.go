package chatapi

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/failure"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/chat/turn"
	"github.com/luanette/luanette/internal/core/principal"
)

// Preferences are the settings that people may change themselves.
type Preferences struct {
	ResponseLanguage string `json:"response_language" doc:"a tag of BCP 47, such as en or pt-BR; GET /api/v1/languages lists common ones"`
	FirstInteraction *bool  `json:"first_interaction,omitempty" doc:"no message was answered yet; read-only"`
	AgenticStrength  string `json:"agentic_strength,omitempty" doc:"normal, low or very_low; stored for older clients, without effect"`
	DevAgenticMCP    *bool  `json:"dev_agentic_mcp,omitempty" doc:"stored for older clients, without effect"`
}

func preferencesOf(p profile.Preferences) Preferences {
	return Preferences{p.ResponseLanguage, &p.FirstInteraction, p.AgenticStrength, p.DevAgenticMCP}
}

// Languages lists languages.
type Languages struct {
	Languages []profile.Language `json:"languages"`
}

func (d *Handler) languages(*request) (Languages, error) {
	return Languages{profile.Languages()}, nil
}

// History is a page of a person's history.
type History struct {
	UserID  string               `json:"user_id"`
	Entries []conversation.Entry `json:"entries"`
	Total   int                  `json:"total_count"`
	Limit   int                  `json:"limit"`
	Offset  int                  `json:"offset"`
}

// Removed says how many entries were removed.
type Removed struct {
	Removed int64 `json:"removed"`
}

func (d *Handler) preferences(r *request) (Preferences, error) {
	prefs, err := d.service.Profiles.Preferences.Of(r.Context(), r.person)
	return preferencesOf(prefs), err
}

func (d *Handler) setPreferences(r *request, body Preferences) (Preferences, error) {
	if err := body.check(); err != nil {
		return body, err
	}
	prefs, err := d.service.Profiles.Preferences.Change(r.Context(), r.person, body.apply)
	return preferencesOf(prefs), err
}

// check validates preferences and writes the language as it is usually written. What is
// missing is not changed; the language may only be missing beside others.
func (p *Preferences) check() (err error) {
	if p.AgenticStrength != "" && !slices.Contains([]string{"normal", "low", "very_low"}, p.AgenticStrength) {
		return fault.New(fault.InvalidParams, "agentic_strength must be normal, low or very_low, not %q", p.AgenticStrength)
	}
	if p.ResponseLanguage == "" && (p.AgenticStrength != "" || p.DevAgenticMCP != nil) {
		return nil
	}
	p.ResponseLanguage, err = profile.CheckLanguage(p.ResponseLanguage)
	return err
}

func (p *Preferences) apply(to *profile.Preferences) error {
	if p.ResponseLanguage != "" {
		to.ResponseLanguage, to.LanguageChosen = p.ResponseLanguage, true
	}
	to.AgenticStrength = cmp.Or(p.AgenticStrength, to.AgenticStrength)
	if p.DevAgenticMCP != nil {
		to.DevAgenticMCP = p.DevAgenticMCP
	}
	return nil
}

// maxHistory is the largest page of history: all that can be stored.
const maxHistory = 100

func (d *Handler) history(r *request) (History, error) {
	limit, err := number(r.Request, "limit", 50, 1, maxHistory)
	if err != nil {
		return History{}, err
	}
	offset, err := number(r.Request, "offset", 0, 0, 1<<30)
	if err != nil {
		return History{}, err
	}
	entries, total, err := d.service.Conversations.History(r.Context(), r.person, limit, offset)
	if err != nil {
		return History{}, err
	}
	d.audit(r.Request, auditRead, r.person, "")
	return History{UserID: r.person.User, Entries: filled(entries), Total: total, Limit: limit, Offset: offset}, nil
}

// number reads an integer from the query.
func number(r *http.Request, name string, otherwise, least, most int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fault.New(fault.InvalidParams, "%s must be %d to %d, not %q", name, least, most, text)
	}
	return n, nil
}

func (d *Handler) forget(r *request) (Removed, error) {
	gone, err := d.service.Conversations.Forget(r.Context(), r.person)
	if err == nil {
		err = d.options.Deliveries.Forget(r.Context(), callbacks, r.person.Org, r.person.User, nil)
	}
	if err == nil {
		d.audit(r.Request, auditDelete, r.person, "")
	}
	return Removed{gone}, err
}

// Conversations lists a person's conversations.
type Conversations struct {
	Conversations []conversation.Conversation `json:"conversations"`
}

// Transcript is one conversation.
type Transcript struct {
	ID       string        `json:"id"`
	Messages []Transcribed `json:"messages"`

	Owner  string          `json:"owner,omitempty" doc:"name of somebody else who shares it"`
	Shared principal.Level `json:"shared,omitempty" doc:"what they permit: see or use"`
}

// Transcribed is a message of a conversation with its answer.
type Transcribed struct {
	MessageID   string           `json:"message_id"`
	Status      string           `json:"status" doc:"waiting, running, done or failed; GET /api/v1/chat/MESSAGE_ID/stream follows one that has no outcome"`
	Message     string           `json:"message"`
	Attachments []Media          `json:"attachments,omitempty"`
	CreatedAt   time.Time        `json:"created_at"`
	EndedAt     *time.Time       `json:"ended_at,omitempty"`
	Response    *Response        `json:"response,omitempty" doc:"the answer, if it is done"`
	ToolCalls   []agent.UsedTool `json:"tool_calls,omitempty" doc:"of the model; long arguments and results are shortened"`
	Error       string           `json:"error,omitempty" doc:"why it failed"`
}

// conversations is GET …/conversations.
func (d *Handler) conversations(r *request) (Conversations, error) {
	list, err := d.service.Conversations.List(r.Context(), r.person)
	if err == nil {
		d.audit(r.Request, auditRead, r.person, "")
	}
	return Conversations{filled(list)}, err
}

// conversation is GET …/conversation.
func (d *Handler) conversation(r *request) (Transcript, error) {
	limit, err := number(r.Request, "limit", maxHistory, 1, maxHistory)
	if err != nil {
		return Transcript{}, err
	}
	id := r.URL.Query().Get("id")
	access, err := d.service.Conversations.Access(r.Context(), r.person, id)
	if err != nil {
		return Transcript{}, err
	}
	records, err := d.service.Conversations.Records(r.Context(), access.Person, access.ID, limit)
	if err == nil && len(records) == 0 && id != "" { // the unnamed one is there for everybody
		err = fault.New(fault.NotFound, "no conversation %q", id).WithHint("GET …/conversations lists them")
	}
	if err != nil {
		return Transcript{}, err
	}
	d.audit(r.Request, auditRead, access.Person, access.ID)
	out := Transcript{ID: id, Messages: []Transcribed{}, Owner: access.Owner, Shared: access.Shared}
	for i := range records {
		if access.Owner != "" {
			records[i].Reply.Trace = "" // traces stay with their owner
		}
		out.Messages = append(out.Messages, transcribed(access.Person, &records[i]))
	}
	return out, nil
}

func transcribed(p profile.Person, c *conversation.Record) Transcribed {
	t := &turn.Turn{ID: c.ID, Message: c.Message}
	t.Message.Person = p
	out := Transcribed{MessageID: c.ID, Status: c.Status, Message: c.Message.Text, CreatedAt: c.Created}
	for _, a := range c.Message.Attachments {
		out.Attachments = append(out.Attachments, mediaOf(t, a.MediaInfo))
	}
	if !c.Ended.IsZero() {
		out.EndedAt = &c.Ended
	}
	switch {
	case c.Err != nil:
		f, _ := failureOf(failure.OfTurn(c.Err))
		out.Error = f.Message
	case out.EndedAt != nil:
		answer := responseOf(t, c.Message.RequestID, c.Reply)
		out.Response, out.ToolCalls = &answer, c.Reply.Tools
	}
	return out
}

// forgetConversation is DELETE …/conversation.
func (d *Handler) forgetConversation(r *request) (Removed, error) {
	id := r.URL.Query().Get("id")
	gone, err := d.service.Conversations.ForgetConversation(r.Context(), r.person, id)
	if err == nil {
		err = d.options.Deliveries.Forget(r.Context(), callbacks, r.person.Org, r.person.User, &id)
	}
	if err == nil {
		d.audit(r.Request, auditDelete, r.person, id)
	}
	return Removed{gone}, err
}

// CopyRequest names the conversation to copy.
type CopyRequest struct {
	ID string `json:"id" doc:"of one's own conversation, or of one that is shared to use it, as the list has it"`
}

// Copied is the copy of a conversation.
type Copied struct {
	ID string `json:"id" doc:"the chat_id with which it goes on"`
}

// copyConversation is POST …/conversation/copy.
func (d *Handler) copyConversation(r *request, body CopyRequest) (Copied, error) {
	if err := d.checkRate(r.person); err != nil {
		return Copied{}, err
	}
	access, err := d.service.Conversations.Access(r.Context(), r.person, body.ID)
	if err != nil {
		return Copied{}, err
	}
	id, err := d.service.Conversations.Copy(r.Context(), r.person, body.ID)
	if err == nil {
		d.audit(r.Request, auditCopy, access.Person, access.ID)
	}
	return Copied{id}, err
}

// PersonModes are the modes that a person can choose.
type PersonModes struct {
	Modes []string `json:"modes"`
	Mode  string   `json:"mode" doc:"the chosen one, or empty"`
}

// personModes is GET …/modes.
func (d *Handler) personModes(r *request) (PersonModes, error) {
	modes, err := d.service.Profiles.Modes.Names(r.Context(), r.person.Org)
	if err != nil {
		return PersonModes{}, err
	}
	prefs, err := d.service.Profiles.Preferences.Of(r.Context(), r.person)
	return PersonModes{filled(modes), prefs.Mode}, err
}
