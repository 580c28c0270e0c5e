package conversation

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/store/db"
)

// loadDocument reads a document of a person or an organisation; if there is none, into is
// unchanged.
func (r *Service) loadDocument(ctx context.Context, p Person, kind, name string, into any) (found bool, err error) {
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		found, err = loadDocumentIn(ctx, tx, p, kind, name, into)
		return err
	})
	return found, err
}

func loadDocumentIn(ctx context.Context, tx *db.Tx, p Person, kind, name string, into any) (found bool, err error) {
	var body string
	err = tx.QueryRow(ctx, `SELECT body FROM talk_documents WHERE org = $1 AND person = $2 AND kind = $3 AND name = $4`,
		p.Org, p.User, kind, name).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal([]byte(body), into)
}

// saveDocument stores a document and replaces an existing one.
func (r *Service) saveDocument(ctx context.Context, p Person, kind, name string, body any) error {
	return r.db.Write(ctx, func(tx *db.Tx) error { return r.saveDocumentIn(ctx, tx, p, kind, name, body) })
}

func (r *Service) saveDocumentIn(ctx context.Context, tx *db.Tx, p Person, kind, name string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO talk_documents (org, person, kind, name, body, updated) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (org, person, kind, name) DO UPDATE SET body = excluded.body, updated = excluded.updated`,
		p.Org, p.User, kind, name, string(text), r.now().UnixMicro())
	return err
}

// removeDocument removes a document and reports whether it existed.
func (r *Service) removeDocument(ctx context.Context, p Person, kind, name string) (found bool, err error) {
	err = r.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(ctx, `DELETE FROM talk_documents WHERE org = $1 AND person = $2 AND kind = $3 AND name = $4`,
			p.Org, p.User, kind, name)
		found = n > 0
		return err
	})
	return found, err
}

// documentNames lists the documents of a kind.
func (r *Service) documentNames(ctx context.Context, p Person, kind string) (names []string, err error) {
	return db.Find(ctx, r.db, db.Column[string], `SELECT name FROM talk_documents WHERE org = $1 AND person = $2 AND kind = $3 ORDER BY name`, p.Org, p.User, kind)
}

// Settings are an organisation's settings.
type Settings struct {
	HistoryStored int `json:"max_history_storage"` // exchanges stored, 1 to 100
	HistorySent   int `json:"max_history_llm"`     // exchanges sent to the model, 1 to 50
}

// DefaultSettings apply if an organisation has none.
var DefaultSettings = Settings{HistoryStored: 50, HistorySent: 5}

const settingsKind = "settings"

// Check validates the settings.
func (s Settings) Check() error {
	switch {
	case s.HistoryStored < 1 || s.HistoryStored > 100:
		return fault.New(fault.InvalidParams, "max_history_storage must be 1 to 100, not %d", s.HistoryStored)
	case s.HistorySent < 1 || s.HistorySent > 50:
		return fault.New(fault.InvalidParams, "max_history_llm must be 1 to 50, not %d", s.HistorySent)
	case s.HistorySent > s.HistoryStored:
		return fault.New(fault.InvalidParams, "max_history_llm, %d, is more than max_history_storage, %d", s.HistorySent, s.HistoryStored).
			WithHint("only stored exchanges can be sent")
	}
	return nil
}

// Settings returns an organisation's settings.
func (r *Service) Settings(ctx context.Context, org string) (Settings, error) {
	s := DefaultSettings
	_, err := r.loadDocument(ctx, Person{Org: org}, settingsKind, "", &s)
	return s, err
}

// SetSettings replaces an organisation's settings.
func (r *Service) SetSettings(ctx context.Context, org string, s Settings) error {
	if err := s.Check(); err != nil {
		return err
	}
	return r.saveDocument(ctx, Person{Org: org}, settingsKind, "", s)
}

// ResetSettings resets an organisation's settings to the defaults.
func (r *Service) ResetSettings(ctx context.Context, org string) error {
	_, err := r.removeDocument(ctx, Person{Org: org}, settingsKind, "")
	return err
}

// Preferences are a person's settings.
type Preferences struct {
	ResponseLanguage string `json:"response_language"`         // a tag of BCP 47; "en" until chosen
	FirstInteraction bool   `json:"first_interaction"`         // no message was answered yet
	Mode             string `json:"mode,omitempty"`            // one of the organisation's; see Modes
	LanguageChosen   bool   `json:"language_chosen,omitempty"` // by the person; otherwise the default

	// Preferences of the program that this one replaces. They are stored for its clients
	// and change nothing: the model decides how many tools it uses.
	AgenticStrength string `json:"agentic_strength,omitempty"`
	DevAgenticMCP   *bool  `json:"dev_agentic_mcp,omitempty"`
}

const preferencesKind = "preferences"

// Preferences returns a person's preferences.
func (r *Service) Preferences(ctx context.Context, p Person) (Preferences, error) {
	prefs := Preferences{ResponseLanguage: "en", FirstInteraction: true}
	_, err := r.loadDocument(ctx, p, preferencesKind, "", &prefs)
	return prefs, err
}

// languageTag matches a language with script, region and variants, as BCP 47 writes them.
var languageTag = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?i)([a-z]{2,3})(-[a-z]{4})?(-(?:[a-z]{2}|[0-9]{3}))?((?:-[a-z0-9]{5,8})*)$`)
})

// canonicalLanguage returns a tag of BCP 47 as it is usually written, such as pt-BR.
func canonicalLanguage(tag string) (string, bool) {
	m := languageTag().FindStringSubmatch(tag)
	if m == nil {
		return "", false
	}
	script := strings.ToLower(m[2])
	if script != "" {
		script = "-" + strings.ToUpper(script[1:2]) + script[2:]
	}
	return strings.ToLower(m[1]) + script + strings.ToUpper(m[3]) + strings.ToLower(m[4]), true
}

// CheckLanguage checks a tag of BCP 47 and returns it as it is usually written.
func CheckLanguage(tag string) (string, error) {
	code, ok := canonicalLanguage(tag)
	if !ok {
		return "", fault.New(fault.InvalidParams, "%q is not a language", tag).
			WithHint("use a tag of BCP 47, such as en, sw or pt-BR; GET /api/v1/languages lists common ones")
	}
	return code, nil
}

// SetPreferences changes a person's preferences.
func (r *Service) SetPreferences(ctx context.Context, p Person, change func(*Preferences)) (prefs Preferences, err error) {
	err = r.db.Write(ctx, func(tx *db.Tx) error {
		prefs = Preferences{ResponseLanguage: "en", FirstInteraction: true}
		if _, err := loadDocumentIn(ctx, tx, p, preferencesKind, "", &prefs); err != nil {
			return err
		}
		change(&prefs)
		return r.saveDocumentIn(ctx, tx, p, preferencesKind, "", prefs)
	})
	return prefs, err
}

// recordFirst records that a person's first message was answered.
func (r *Service) recordFirst(ctx context.Context, tx *db.Tx, p Person) error {
	prefs := Preferences{ResponseLanguage: "en", FirstInteraction: true}
	if _, err := loadDocumentIn(ctx, tx, p, preferencesKind, "", &prefs); err != nil || !prefs.FirstInteraction {
		return err
	}
	prefs.FirstInteraction = false
	return r.saveDocumentIn(ctx, tx, p, preferencesKind, "", prefs)
}

// languages maps the names that people use at the start of a message to codes.
var languages = map[string]string{
	"arabic": "ar", "bengali": "bn", "chinese": "zh", "dutch": "nl", "english": "en", "french": "fr", "german": "de",
	"hindi": "hi", "indonesian": "id", "italian": "it", "japanese": "ja", "korean": "ko", "polish": "pl", "portuguese": "pt",
	"russian": "ru", "spanish": "es", "swahili": "sw", "tamil": "ta", "turkish": "tr", "ukrainian": "uk", "vietnamese": "vi",
}

// resets are the names that mean no mode.
var resets = []string{"default", "none", "clear"}

// applyDirectives removes "#mode" and "@language" from the start of a message and stores them as
// the person's preferences. Words that are no mode or language stay in the text.
func (r *Service) applyDirectives(ctx context.Context, m Message) (text string, prefs Preferences, err error) {
	text = m.Text
	if prefs, err = r.Preferences(ctx, m.Person); err != nil {
		return text, prefs, err
	}
	if !strings.HasPrefix(text, "#") && !strings.HasPrefix(text, "@") {
		return text, prefs, nil
	}
	modes, err := r.Modes(ctx, m.Person.Org)
	if err != nil {
		return text, prefs, err
	}
	changed := false
	for {
		word, rest, _ := strings.Cut(text, " ")
		if !follow(&prefs, word, modes) {
			break
		}
		changed, text = true, strings.TrimLeft(rest, " \n\t")
	}
	if !changed {
		return text, prefs, nil
	}
	chosen := prefs
	_, err = r.SetPreferences(ctx, m.Person, func(p *Preferences) {
		p.Mode, p.ResponseLanguage, p.LanguageChosen = chosen.Mode, chosen.ResponseLanguage, chosen.LanguageChosen
	})
	return text, prefs, err
}

// confirm answers a message that only chooses a mode or a language.
func (r *Service) confirm(ctx context.Context, t *Turn, request agent.Request) (reply agent.Reply, err error) {
	prefs, err := r.Preferences(ctx, t.Message.Person)
	if err != nil {
		return reply, err
	}
	text := "Mode: " + cmp.Or(prefs.Mode, "none") + ". Language: " + languageName(prefs.ResponseLanguage) + "."
	t.emit(agent.Text{Text: text})
	return agent.Reply{RequestID: request.ID, Responses: []string{text}, Language: prefs.ResponseLanguage}, nil
}

// Language is a language that people can choose by its name.
type Language struct {
	Code string `json:"code"` // a tag of BCP 47
	Name string `json:"name"` // in English
}

// Languages lists them by name. Other tags of BCP 47 can be chosen by their code.
func Languages() (list []Language) {
	for _, name := range names(languages) {
		list = append(list, Language{languages[name], strings.ToUpper(name[:1]) + name[1:]})
	}
	return list
}

// languageName returns the name of a language, or its code.
func languageName(code string) string {
	for _, l := range Languages() {
		if l.Code == code {
			return l.Name
		}
	}
	return code
}

// follow applies one word at the start of a message and reports whether it is a mode or
// language.
func follow(prefs *Preferences, word string, modes []string) bool {
	switch {
	case strings.HasPrefix(word, "#"):
		name, ok := matchName(strings.ToLower(word[1:]), append(slices.Clone(modes), resets...))
		if !ok {
			return false
		}
		if slices.Contains(resets, name) && !slices.Contains(modes, name) {
			name = ""
		}
		prefs.Mode = name
		return true
	case strings.HasPrefix(word, "@"):
		name := strings.ToLower(word[1:])
		code, valid := canonicalLanguage(name)
		if !valid || len(code) == 3 { // three letters are rather somebody's name
			full, ok := matchName(name, names(languages))
			if !ok {
				return false
			}
			code = languages[full]
		}
		prefs.ResponseLanguage, prefs.LanguageChosen = code, true
		return true
	}
	return false
}

func names(m map[string]string) []string {
	list := make([]string, 0, len(m))
	for name := range m {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// matchName returns the name that a word stands for: the same, the only one with that
// prefix, or the only one with a similar spelling.
func matchName(word string, known []string) (string, bool) {
	if word == "" {
		return "", false
	}
	if slices.Contains(known, word) {
		return word, true
	}
	var begin []string
	for _, name := range known {
		if strings.HasPrefix(name, word) {
			begin = append(begin, name)
		}
	}
	if len(begin) == 1 {
		return begin[0], true
	}
	if len(begin) > 1 || len(word) < 4 {
		return "", false
	}
	near := suggest.Names(word, known, 2)
	if len(near) == 1 {
		return near[0], true
	}
	return "", false
}

const memoryKind = "memory"

// Memory returns what the agent remembers about a person.
func (r *Service) Memory(p Person) agent.Memory { return memory{r, p} }

type memory struct {
	service *Service
	person  Person
}

func (m memory) Load(ctx context.Context) (sections []agent.Section, err error) {
	_, err = m.service.loadDocument(ctx, m.person, memoryKind, "", &sections)
	return sections, err
}

func (m memory) Save(ctx context.Context, sections []agent.Section) error {
	return m.service.saveDocument(ctx, m.person, memoryKind, "", sections)
}

// ClearMemory deletes a person's memory.
func (r *Service) ClearMemory(ctx context.Context, p Person) error {
	_, err := r.removeDocument(ctx, p, memoryKind, "")
	return err
}

const (
	promptsKind = "prompts"
	modesKind   = "mode"
	maxModes    = 20
)

// Prompts returns the prompts of a person or an organisation that replace the defaults.
func (r *Service) Prompts(ctx context.Context, p Person) (agent.Prompts, error) {
	prompts := agent.Prompts{}
	_, err := r.loadDocument(ctx, p, promptsKind, "", &prompts)
	return prompts, err
}

// SetPrompts changes some slots; nil resets a slot.
func (r *Service) SetPrompts(ctx context.Context, p Person, changes map[agent.Slot]*string) (agent.Prompts, error) {
	prompts, err := r.Prompts(ctx, p)
	if err != nil {
		return nil, err
	}
	for slot, text := range changes {
		if err := (agent.Prompts{slot: ""}).Check(); err != nil {
			return nil, err
		}
		if text == nil {
			delete(prompts, slot)
		} else {
			prompts[slot] = *text
		}
	}
	if err := prompts.Check(); err != nil {
		return nil, err
	}
	return prompts, r.saveDocument(ctx, p, promptsKind, "", prompts)
}

// ResetPrompts removes all prompts of a person or an organisation.
func (r *Service) ResetPrompts(ctx context.Context, p Person) error {
	_, err := r.removeDocument(ctx, p, promptsKind, "")
	return err
}

// Mode is a set of prompts that an organisation defines and people choose.
type Mode struct {
	Name        string        `json:"name"`
	Description string        `json:"description,omitempty"`
	Prompts     agent.Prompts `json:"overrides"`
}

var modeName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`) })

// Modes lists the names of an organisation's modes.
func (r *Service) Modes(ctx context.Context, org string) ([]string, error) {
	return r.documentNames(ctx, Person{Org: org}, modesKind)
}

// Mode returns a mode.
func (r *Service) Mode(ctx context.Context, org, name string) (Mode, error) {
	var m Mode
	found, err := r.loadDocument(ctx, Person{Org: org}, modesKind, name, &m)
	if err == nil && !found {
		err = noMode(name)
	}
	return m, err
}

// SetMode creates or replaces a mode.
func (r *Service) SetMode(ctx context.Context, org string, m Mode) error {
	if len(m.Name) > 64 || !modeName().MatchString(m.Name) {
		return fault.New(fault.InvalidParams, "%q is not a valid name of a mode", m.Name).
			WithHint("use up to 64 lowercase letters, digits and hyphens")
	}
	if err := m.Prompts.Check(); err != nil {
		return err
	}
	names, err := r.Modes(ctx, org)
	if err != nil {
		return err
	}
	known := false
	for _, name := range names {
		known = known || name == m.Name
	}
	if !known && len(names) >= maxModes {
		return fault.New(fault.Limit, "the organisation has %d modes already", len(names)).WithHint("remove one first")
	}
	return r.saveDocument(ctx, Person{Org: org}, modesKind, m.Name, m)
}

// RemoveMode removes a mode. People who chose it have no mode then.
func (r *Service) RemoveMode(ctx context.Context, org, name string) error {
	found, err := r.removeDocument(ctx, Person{Org: org}, modesKind, name)
	if err == nil && !found {
		err = noMode(name)
	}
	return err
}

func noMode(name string) error {
	return fault.New(fault.NotFound, "no mode %q", name).WithHint("GET …/modes lists them")
}

// Resolved returns a person's or organisation's own prompts, and those in effect.
func (r *Service) Resolved(ctx context.Context, p Person) (own, resolved agent.Prompts, err error) {
	if own, err = r.Prompts(ctx, p); err != nil {
		return nil, nil, err
	}
	if p.User == "" {
		return own, agent.Resolve(own), nil
	}
	prefs, err := r.Preferences(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	layers, err := r.layers(ctx, p, prefs.Mode)
	if err != nil {
		return nil, nil, err
	}
	return own, agent.Resolve(layers...), nil
}
