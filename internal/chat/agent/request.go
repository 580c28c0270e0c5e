package agent

import (
	"context"
	"time"
)

// Request is one message and what is known about who sent it.
type Request struct {
	ID           string // request_id of every log record and span; made when empty
	Client       string // the program it was sent with (client_id); may be empty
	Org          string // may be empty
	User         string // within Org
	Conversation string // a person's conversations have Lua sessions of their own; may be empty
	Message      string
	History      []Exchange // to be sent to the model, the oldest first
	Language     string     // to answer in, such as "de"; empty or "en" asks for nothing
	First        bool       // the first message ever: the model may say hello
	Prompts      []Prompts  // the weakest first: the organisation's, a mode's, the person's
	Servers      []Server   // that may be used, in the order they are shown; nil allows all there are
	Memory       Memory     // what the model remembers about the person; nil: nothing
	Limits       Limits     // fields that are not zero bound this turn instead of the Options'
}

// Exchange is an earlier message and its answer.
type Exchange struct {
	User      string
	Assistant string
	At        time.Time // may be zero
}

// Server is a server whose tools may be used.
type Server struct {
	Space string   // its namespace in Options.Tools
	Name  string   // how people call it; the namespace when empty
	Tools []string // only these; nil allows all
}

// Memory is one person's notes that the model keeps between conversations. The
// agent decides what fits and what has to go; a Memory only keeps. It is used by
// one goroutine at a time.
type Memory interface {
	// Load reads all sections, in any order.
	Load(ctx context.Context) ([]Section, error)
	// Save replaces them all.
	Save(ctx context.Context, sections []Section) error
}

// Section is one note.
type Section struct {
	Name    string    `json:"name"`
	Text    string    `json:"text"`
	Pinned  bool      `json:"pinned"` // never makes room for others
	Updated time.Time `json:"updated"`
}
