package conversation

import (
	"context"

	"github.com/luanette/luanette/internal/base/fault"
)

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
