package agent

import (
	"cmp"
	"context"
	"time"

	"github.com/luanette/luanette/internal/chat/llm"
)

// Request is one message and what is known about its sender.
type Request struct {
	ID           string // request_id of every log record and span; generated if empty
	Client       string // the program that sent it (client_id); may be empty
	Org          string // may be empty
	User         string // within Org
	Conversation string // each conversation of a person has its own Lua session; may be empty
	Model        string // one of Agent.Models; empty means the usual one
	Message      string
	Attachments  []llm.Media // images, sounds and files of the message
	History      []Exchange  // sent to the model, the oldest first
	Language     string      // language of the answer, such as "de"; empty or "en" gives no instruction
	First        bool        // the person's first message: the model may greet them
	Prompts      []Prompts   // later ones take precedence: the organisation's, a mode's, the person's
	Servers      []Server    // that may be used, in the order they are shown; nil allows all
	Memory       Memory      // may be nil
	Journal      Journal     // makes the turn continue after an interruption; may be nil
	Limits       Limits      // fields that are not zero replace those of Options

	// Messages is the whole conversation of a client that keeps it itself. It replaces
	// Message and History.
	Messages     []llm.Message
	Instructions string      // of that client, in addition to the prompts
	ClientTools  ClientTools // tools that the client runs itself
	MaxTokens    int         // of one answer of the model; zero means the model's limit
}

// ClientTools are tools that the client runs itself. A call of one ends the turn: it is
// in Reply.Calls, and the client continues the conversation with its result.
type ClientTools struct {
	Tools  []llm.Tool
	Choice llm.Choice // applies until the model calls one of them
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
	ID    string   // what the model and people call the namespace; the namespace itself if empty
	Name  string   // display name; the ID if empty
	Tools []string // only these; nil allows all
}

// id returns what the server's namespace is called in this turn.
func (s Server) id() string { return cmp.Or(s.ID, s.Space) }

// Memory stores one person's notes between conversations. The agent decides what to
// store and what to remove. It is used by one goroutine at a time.
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
	Pinned  bool      `json:"pinned"` // never removed to make space
	Updated time.Time `json:"updated"`
}
