package turn

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/store/db"
)

// The events of a turn that has ended are stored for whoever asks later, here or on another
// node.
const (
	replayAge  = 24 * time.Hour
	replaySize = 256 << 10 // bytes of a turn
)

// What those get for whom there are no events.
const (
	eventsGone = "The events of this answer are not stored any more; its outcome follows."
	eventsMany = "The events of this answer are too large to be stored; its outcome follows."
)

// storedEvent is an event as it is stored: one of its fields is set.
type storedEvent struct {
	Status *agent.Status     `json:"status,omitempty"`
	Text   *agent.Text       `json:"text,omitempty"`
	Use    *agent.ToolUse    `json:"use,omitempty"`
	Result *agent.ToolResult `json:"result,omitempty"`
	Media  *agent.MediaInfo  `json:"media,omitempty"`
}

func (s storedEvent) event() agent.Event {
	switch {
	case s.Text != nil:
		return *s.Text
	case s.Use != nil:
		return *s.Use
	case s.Result != nil:
		return *s.Result
	case s.Media != nil:
		return agent.Media{MediaInfo: *s.Media}
	case s.Status != nil:
		return *s.Status
	}
	return agent.Status{}
}

// encodeEvents returns events as they are stored. What the outcome has too is left out.
func encodeEvents(events []agent.Event) string {
	stored := []storedEvent{}
	for i := 0; i < len(events); i++ {
		switch e := events[i].(type) {
		case agent.Text:
			text, pieces := joined(e.Block, events[i:])
			stored = append(stored, storedEvent{Text: &text})
			i += pieces - 1
		case agent.Status:
			stored = append(stored, storedEvent{Status: &e})
		case agent.ToolUse:
			stored = append(stored, storedEvent{Use: &e})
		case agent.ToolResult:
			stored = append(stored, storedEvent{Result: &e})
		case agent.Media:
			stored = append(stored, storedEvent{Media: &e.MediaInfo})
		}
	}
	encoded, err := json.Marshal(stored)
	if err != nil || len(encoded) > replaySize { // an event that cannot be encoded was in no stream either
		encoded, _ = json.Marshal([]storedEvent{{Status: &agent.Status{Message: eventsMany}}})
	}
	return string(encoded)
}

// joined returns the text at the beginning of events, as long as it is of a block, and of how
// many events it is.
func joined(block int, events []agent.Event) (text agent.Text, pieces int) {
	var said strings.Builder
	for _, e := range events {
		piece, ok := e.(agent.Text)
		if !ok || piece.Block != block {
			break
		}
		said.WriteString(piece.Text)
		pieces++
	}
	return agent.Text{Block: block, Text: said.String()}, pieces
}

// saveEvents stores the events of a turn that ends, and removes those of old turns.
func (r *Service) saveEvents(ctx context.Context, tx *db.Tx, t *Turn, ended time.Time) error {
	if _, err := tx.Exec(ctx, `DELETE FROM talk_events WHERE ended < $1`, ended.Add(-replayAge).UnixMicro()); err != nil {
		return err
	}
	events, _, _ := t.since(0)
	_, err := tx.Exec(ctx, `INSERT INTO talk_events (turn, events, ended) VALUES ($1, $2, $3)
		ON CONFLICT (turn) DO UPDATE SET events = excluded.events, ended = excluded.ended`, t.ID, encodeEvents(events), ended.UnixMicro())
	return err
}

// replay gives a turn the events that were stored with its outcome, unless some of them are
// known here.
func (t *Turn) replay(encoded string) error {
	stored := []storedEvent{{Status: &agent.Status{Message: eventsGone}}}
	if encoded != "" {
		stored = nil
		if err := json.Unmarshal([]byte(encoded), &stored); err != nil {
			return err
		}
	}
	t.change(func() {
		if t.replayed = len(t.events) == 0; !t.replayed {
			return
		}
		for _, s := range stored {
			t.events = append(t.events, s.event())
		}
	})
	return nil
}

// Replayed reports whether the events of the turn are those that were stored with its outcome:
// it was answered before, or on another node.
func (t *Turn) Replayed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.replayed
}
