package conversation

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/chat/agent"
)

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
