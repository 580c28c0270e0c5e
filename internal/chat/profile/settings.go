package profile

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/store/db"
	"golang.org/x/text/language"
)

// Settings are an organisation's settings.
type Settings struct {
	HistoryStored int `json:"max_history_storage"` // exchanges stored, 1 to 100
	HistorySent   int `json:"max_history_llm"`     // exchanges sent to the model, 1 to 50
}

// DefaultSettings apply if an organisation has none.
var DefaultSettings = Settings{HistoryStored: 50, HistorySent: 5}

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

// unknownPerson are the preferences of somebody new.
func unknownPerson() Preferences {
	return Preferences{ResponseLanguage: "en", FirstInteraction: true}
}

// String says what the person has chosen, for the person.
func (p Preferences) String() string {
	return "Mode: " + cmp.Or(p.Mode, "none") + ". Language: " + languageName(p.ResponseLanguage) + "."
}

// Answered records that a message of a person was answered.
func (s *Store) Answered(ctx context.Context, tx *db.Tx, p Person) error {
	prefs, err := s.Preferences.load(ctx, tx, p)
	if err != nil || !prefs.FirstInteraction {
		return err
	}
	prefs.FirstInteraction = false
	return s.Preferences.save(ctx, tx, p, prefs)
}

// canonicalLanguage returns a tag of BCP 47 as it is usually written, such as pt-BR. Its parts must
// be registered; extensions are nothing that a model knows.
func canonicalLanguage(tag string) (string, bool) {
	known, err := language.Raw.Parse(tag)
	base, _ := known.Base()
	return known.String(), err == nil && !known.IsRoot() && len(known.Extensions()) == 0 && base.String() != "und"
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

// languages maps the names that people use at the start of a message to codes.
var languages = map[string]string{
	"arabic": "ar", "bengali": "bn", "chinese": "zh", "dutch": "nl", "english": "en", "french": "fr", "german": "de",
	"hindi": "hi", "indonesian": "id", "italian": "it", "japanese": "ja", "korean": "ko", "polish": "pl", "portuguese": "pt",
	"russian": "ru", "spanish": "es", "swahili": "sw", "tamil": "ta", "turkish": "tr", "ukrainian": "uk", "vietnamese": "vi",
}

// resets are the names that mean no mode.
var resets = []string{"default", "none", "clear"}

// Directives removes "#mode" and "@language" from the start of a person's message and stores
// them as the person's preferences. Words that are no mode or language stay in the text.
func (s *Store) Directives(ctx context.Context, p Person, text string) (rest string, prefs Preferences, err error) {
	if prefs, err = s.Preferences.Of(ctx, p); err != nil {
		return text, prefs, err
	}
	if !strings.HasPrefix(text, "#") && !strings.HasPrefix(text, "@") {
		return text, prefs, nil
	}
	modes, err := s.Modes.Names(ctx, p.Org)
	if err != nil {
		return text, prefs, err
	}
	chosen := 0
	for {
		word, rest, _ := strings.Cut(text, " ")
		if !prefs.choose(word, modes) {
			break
		}
		chosen, text = chosen+1, strings.TrimLeft(rest, " \n\t")
	}
	if chosen == 0 {
		return text, prefs, nil
	}
	_, err = s.Preferences.Change(ctx, p, func(stored *Preferences) error {
		stored.Mode, stored.ResponseLanguage, stored.LanguageChosen = prefs.Mode, prefs.ResponseLanguage, prefs.LanguageChosen
		return nil
	})
	return text, prefs, err
}

// Language is a language that people can choose by its name.
type Language struct {
	Code string `json:"code"` // a tag of BCP 47
	Name string `json:"name"` // in English
}

// Languages lists them by name. Other tags of BCP 47 can be chosen by their code.
func Languages() (list []Language) {
	for _, name := range slices.Sorted(maps.Keys(languages)) {
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

// choose applies one word at the start of a message and reports whether it is a mode or
// language.
func (p *Preferences) choose(word string, modes []string) bool {
	switch {
	case strings.HasPrefix(word, "#"):
		name, ok := matchName(strings.ToLower(word[1:]), append(slices.Clone(modes), resets...))
		if !ok {
			return false
		}
		if slices.Contains(resets, name) && !slices.Contains(modes, name) {
			name = ""
		}
		p.Mode = name
		return true
	case strings.HasPrefix(word, "@"):
		name := strings.ToLower(word[1:])
		code, valid := canonicalLanguage(name)
		if !valid || len(code) == 3 { // three letters are rather somebody's name
			full, ok := matchName(name, slices.Sorted(maps.Keys(languages)))
			if !ok {
				return false
			}
			code = languages[full]
		}
		p.ResponseLanguage, p.LanguageChosen = code, true
		return true
	}
	return false
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
