package confine

// The kinds of a Message.
const (
	Listener = "listener" // comes with the descriptor of the gateway's listener
	Started  = "started"
	Failed   = "failed"
	Noted    = "noted"
)

// Message is what the child process tells the one that started it.
type Message struct {
	Kind  string
	Step  string `json:",omitempty"` // of Failed: what was being done
	Error string `json:",omitempty"`
	Notes []Note `json:",omitempty"`
}

// Note is something that the program did, or tried.
type Note struct {
	Action  string // as in profile.Refusal
	Object  string
	Refused bool
}
