package chatapi

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/core/principal"
)

// Preferences are the settings that people may change themselves.
type Preferences struct {
	ResponseLanguage string `json:"response_language" doc:"a tag of BCP 47, such as en or pt-BR; GET /api/v1/languages lists common ones"`
	FirstInteraction *bool  `json:"first_interaction,omitempty" doc:"no message was answered yet; read-only"`
	AgenticStrength  string `json:"agentic_strength,omitempty" doc:"normal, low or very_low; stored for older clients, without effect"`
	DevAgenticMCP    *bool  `json:"dev_agentic_mcp,omitempty" doc:"stored for older clients, without effect"`
}

func preferencesOf(p conversation.Preferences) Preferences {
	return Preferences{p.ResponseLanguage, &p.FirstInteraction, p.AgenticStrength, p.DevAgenticMCP}
}

// Languages lists languages.
type Languages struct {
	Languages []conversation.Language `json:"languages"`
}

func (d *Handler) languages(w http.ResponseWriter, _ *http.Request) error {
	httpjson.JSON(w, http.StatusOK, Languages{conversation.Languages()})
	return nil
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

// personOf returns the person or organisation that a path names.
func personOf(r *http.Request) (conversation.Person, error) {
	p := conversation.Person{Org: r.PathValue("org"), User: r.PathValue("user")}
	if p.User == "" { // validates an organisation's name like a person's
		return p, conversation.Person{Org: p.Org, User: "-"}.Check()
	}
	return p, p.Check()
}

func (d *Handler) preferences(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	prefs, err := d.service.Preferences(r.Context(), p)
	if err != nil {
		return err
	}
	httpjson.JSON(w, http.StatusOK, preferencesOf(prefs))
	return nil
}

func (d *Handler) setPreferences(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	var body Preferences
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	prefs, err := d.service.SetPreferences(r.Context(), p, body.apply)
	if err != nil {
		return err
	}
	httpjson.JSON(w, http.StatusOK, preferencesOf(prefs))
	return nil
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
	p.ResponseLanguage, err = conversation.CheckLanguage(p.ResponseLanguage)
	return err
}

func (p *Preferences) apply(to *conversation.Preferences) {
	if p.ResponseLanguage != "" {
		to.ResponseLanguage, to.LanguageChosen = p.ResponseLanguage, true
	}
	to.AgenticStrength = cmp.Or(p.AgenticStrength, to.AgenticStrength)
	if p.DevAgenticMCP != nil {
		to.DevAgenticMCP = p.DevAgenticMCP
	}
}

// maxHistory is the largest page of history: all that can be stored.
const maxHistory = 100

func (d *Handler) history(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	limit, err := number(r, "limit", 50, 1, maxHistory)
	if err != nil {
		return err
	}
	offset, err := number(r, "offset", 0, 0, 1<<30)
	if err != nil {
		return err
	}
	entries, total, err := d.service.History(r.Context(), p, limit, offset)
	if err != nil {
		return err
	}
	d.audit(r, auditRead, p, "")
	if entries == nil {
		entries = []conversation.Entry{}
	}
	httpjson.JSON(w, http.StatusOK, History{UserID: p.User, Entries: entries, Total: total, Limit: limit, Offset: offset})
	return nil
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

func (d *Handler) forget(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	gone, err := d.service.Forget(r.Context(), p)
	if err != nil {
		return err
	}
	d.audit(r, auditDelete, p, "")
	httpjson.JSON(w, http.StatusOK, Removed{gone})
	return nil
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
func (d *Handler) conversations(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	list, err := d.service.Conversations(r.Context(), p)
	if err != nil {
		return err
	}
	d.audit(r, auditRead, p, "")
	httpjson.JSON(w, http.StatusOK, Conversations{filled(list)})
	return nil
}

// conversation is GET …/conversation.
func (d *Handler) conversation(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	limit, err := number(r, "limit", maxHistory, 1, maxHistory)
	if err != nil {
		return err
	}
	id := r.URL.Query().Get("id")
	access, err := d.service.Access(r.Context(), p, id)
	if err != nil {
		return err
	}
	records, err := d.service.Records(r.Context(), access.Person, access.ID, limit)
	if err != nil {
		return err
	}
	d.audit(r, auditRead, access.Person, access.ID)
	out := Transcript{ID: id, Messages: []Transcribed{}, Owner: access.Owner, Shared: access.Shared}
	for i := range records {
		if access.Owner != "" {
			records[i].Reply.Trace = "" // traces stay with their owner
		}
		out.Messages = append(out.Messages, transcribed(access.Person, &records[i]))
	}
	httpjson.JSON(w, http.StatusOK, out)
	return nil
}

func transcribed(p conversation.Person, c *conversation.Record) Transcribed {
	t := &conversation.Turn{ID: c.ID, Message: c.Message}
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
		f, _ := failureOf(ofTurn(c.Err))
		out.Error = f.Message
	case out.EndedAt != nil:
		answer := responseOf(t, c.Reply)
		out.Response, out.ToolCalls = &answer, c.Reply.Tools
	}
	return out
}

// forgetConversation is DELETE …/conversation.
func (d *Handler) forgetConversation(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	id := r.URL.Query().Get("id")
	gone, err := d.service.ForgetConversation(r.Context(), p, id)
	if err != nil {
		return err
	}
	d.audit(r, auditDelete, p, id)
	httpjson.JSON(w, http.StatusOK, Removed{gone})
	return nil
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
func (d *Handler) copyConversation(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	var body CopyRequest
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	if err := d.checkRate(p); err != nil {
		return err
	}
	access, err := d.service.Access(r.Context(), p, body.ID)
	if err != nil {
		return err
	}
	id, err := d.service.Copy(r.Context(), p, body.ID)
	if err != nil {
		return err
	}
	d.audit(r, auditCopy, access.Person, access.ID)
	httpjson.JSON(w, http.StatusCreated, Copied{id})
	return nil
}

// PersonModes are the modes that a person can choose.
type PersonModes struct {
	Modes []string `json:"modes"`
	Mode  string   `json:"mode" doc:"the chosen one, or empty"`
}

// personModes is GET …/modes.
func (d *Handler) personModes(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	modes, err := d.service.Modes(r.Context(), p.Org)
	if err != nil {
		return err
	}
	prefs, err := d.service.Preferences(r.Context(), p)
	if err != nil {
		return err
	}
	httpjson.JSON(w, http.StatusOK, PersonModes{filled(modes), prefs.Mode})
	return nil
}
