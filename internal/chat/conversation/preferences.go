package conversation

import (
	"context"
	"regexp"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

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
