package conversation

import (
	"context"
	"regexp"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// Preferences are a person's settings.
type Preferences struct {
	ResponseLanguage string `json:"response_language"`         // two letters; "en" until chosen
	FirstInteraction bool   `json:"first_interaction"`         // no message was answered yet
	Mode             string `json:"mode,omitempty"`            // one of the organisation's; see Modes
	LanguageChosen   bool   `json:"language_chosen,omitempty"` // by the person; otherwise the default
}

const preferencesKind = "preferences"

// Preferences returns a person's preferences.
func (r *Service) Preferences(ctx context.Context, p Person) (Preferences, error) {
	prefs := Preferences{ResponseLanguage: "en", FirstInteraction: true}
	_, err := r.loadDocument(ctx, p, preferencesKind, "", &prefs)
	return prefs, err
}

var languageCode = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z]{2}$`) })

// CheckLanguage checks that code has the form of an ISO 639-1 code.
func CheckLanguage(code string) error {
	if !languageCode().MatchString(code) {
		return fault.New(fault.InvalidParams, "%q is not a language code", code).
			WithHint("use two lowercase letters of ISO 639-1, such as en or sw")
	}
	return nil
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
