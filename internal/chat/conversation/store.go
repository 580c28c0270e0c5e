// Package conversation has people's conversations with the agent as they are stored: messages
// with their answers and what was attached to them, in lists, shared, copied and deleted.
// Package turn adds messages and their answers.
package conversation

import (
	"context"
	"embed"
	"encoding/json"
	"time"

	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Options are the options of a Store. The zero value of each field is usable.
type Options struct {
	Shares Shares      // of conversations; nil means that nothing is shared
	Stored StoredMedia // of one person; zero fields mean no limit
	// OnForget removes what else is stored of a person's conversations when their
	// history is deleted; may be nil.
	OnForget func(ctx context.Context, p profile.Person) error
	// OnForgetConversation does the same for one conversation; may be nil.
	OnForgetConversation func(ctx context.Context, p profile.Person, conversation string) error
	// OnCopy makes a conversation remember which labelled data another has read; may be nil.
	OnCopy func(ctx context.Context, from profile.Person, id string, to profile.Person, copied string) error
}

// Store has the conversations of people. It is safe for concurrent use.
type Store struct {
	Profiles *profile.Store

	db      *db.DB
	options Options
}

// Open migrates the tables.
func Open(ctx context.Context, database *db.DB, o Options) (*Store, error) {
	if err := database.Migrate(ctx, "talk", Migrations); err != nil { // the name from before the package was called conversation
		return nil, err
	}
	return &Store{Profiles: profile.New(database, time.Now), db: database, options: o}, nil
}

// The states of a stored message.
const (
	Waiting = "waiting" // for the earlier messages of its person
	Running = "running" // it is being answered
	Done    = "done"    // with a reply
	Failed  = "failed"  // with a failure; the same message can be tried again
)

// Message is a message of a person.
type Message struct {
	RequestID    string         `json:"request_id"`
	Person       profile.Person `json:"-"`
	Client       string         `json:"client,omitempty"`
	Model        string         `json:"model,omitempty"` // that answers; empty means the usual one
	Key          string         `json:"-"`               // idempotency key of the client: the same key is the same message; may be empty
	Conversation string         `json:"conversation,omitempty"`
	Text         string         `json:"text"`
	Attachments  []Attachment   `json:"attachments,omitempty"`
	// Audio is the hash of the sound that Text was transcribed from, or "". The same sound
	// is the same message, whatever was understood.
	Audio      string `json:"audio,omitempty"`
	Transcript string `json:"transcript,omitempty"` // what was understood
	// Warnings are what the sender is told with the answer.
	Warnings []string `json:"warnings,omitempty"`
	Hint     string   `json:"hint,omitempty"` // language of the answer if the person has not chosen one
	// Note is stored with the message for the sender: what it needs to know when the
	// turn runs again after a restart.
	Note json.RawMessage `json:"note,omitempty"`
	// Asker is the principal that sent it, whose rights the turn has; nil means the
	// local owner.
	Asker *principal.Principal `json:"asker,omitempty"`
}

// Personal lists the tables with conversations.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "talk_steps", Where: "turn IN (SELECT id FROM talk_turns WHERE person = PERSON)"},
		{Name: "talk_events", Where: "turn IN (SELECT id FROM talk_turns WHERE person = PERSON)"},
		{Name: "talk_media", Where: "turn IN (SELECT id FROM talk_turns WHERE person = PERSON)"},
		{Name: "talk_client_calls", Where: "person = PERSON"},
		{Name: "talk_turns", Where: "person = PERSON"},
		{Name: "talk_documents", Where: "person = PERSON"},
	}
}
