package agent

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/chat/llm"
)

// Event is something that happens during a turn: one of Status, Text, ToolUse,
// ToolResult, Media, Usage and Notice.
type Event interface{ happens() }

// Status describes the current activity in a line, for people who wait.
type Status struct{ Message string }

// Text is a piece of the answer as it arrives. Pieces with the same Block belong
// together; Blocks count from 0 over the whole turn and are the Reply's Responses.
type Text struct {
	Block int
	Text  string
}

// ToolUse announces a tool call.
type ToolUse struct {
	ID        string // the same in ToolResult
	Iteration int    // from 1
	Tool      string // as people write it: namespace.name
	Input     json.RawMessage
}

// ToolResult is the result of a tool call.
type ToolResult struct {
	ID        string
	Iteration int
	Tool      string
	Text      string // as sent to the model
	Failed    bool
	Took      time.Duration
}

// Media is an image, a sound or a file of a tool's result, for people.
type Media struct {
	MediaInfo
	Data []byte
}

// MediaInfo describes an image, a sound or a file.
type MediaInfo struct {
	ID   string `json:"id"` // within the turn; the same if the turn is interrupted and continues
	Tool string `json:"tool,omitempty"`
	Name string `json:"name,omitempty"`
	MIME string `json:"mime_type"`
	Size int    `json:"size"`
}

// UsedTool is a tool call of a turn, for people who read the answer later. What is long is
// shortened.
type UsedTool struct {
	After    int             `json:"after"` // how many of the Reply's Responses came before
	Tool     string          `json:"tool"`
	Input    json.RawMessage `json:"input"`
	Result   string          `json:"result"`
	Failed   bool            `json:"failed,omitempty"`
	Duration float64         `json:"duration_ms"`
}

// Usage is the usage of the turn so far.
type Usage struct{ llm.Usage }

// Notice is information about the turn that is not part of the answer: a limit that was
// reached, a server that is unreachable.
type Notice struct {
	Code    string `json:"code"` // iteration_limit, call_limit, budget, refusal, max_tokens, arguments_cut, media_not_sent, unknown_outcome, server_away, model_busy, approval
	Message string `json:"message"`
}

func (Status) happens()     {}
func (Text) happens()       {}
func (ToolUse) happens()    {}
func (ToolResult) happens() {}
func (Media) happens()      {}
func (Usage) happens()      {}
func (Notice) happens()     {}

// Reply is a turn's outcome.
type Reply struct {
	RequestID  string
	Responses  []string // one per block of text, over all iterations
	Language   string   // the Request's, or "en"
	Stop       llm.Stop // why the last answer ended; "iteration_limit" at the limit
	Iterations int
	ToolCalls  int // including those of scripts
	Usage      llm.Usage
	Model      string
	Notices    []Notice
	Media      []MediaInfo // images, sounds and files of tools' results
	Tools      []UsedTool  // calls of the model, without those of scripts
	Trace      string      // id of its trace, or ""

	Calls []llm.Use     `json:"-"` // of the client's tools, which end a turn
	Steps []llm.Message `json:"-"` // with Calls: what the turn added to the conversation, before the results of Calls
}

// Reasons to stop that are not the model's.
const (
	StopIterations llm.Stop = "iteration_limit" // the turn reached Limits.Iterations
	StopBudget     llm.Stop = "budget"          // Options.Budget refused to go on
)

// Text is the whole answer, as stored in the history.
func (r Reply) Text() string { return strings.Join(r.Responses, "\n") }
