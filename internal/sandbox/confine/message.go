package confine

// The kinds of a Message. Those of sockets come with a descriptor.
const (
	Listener = "listener" // of the gateway
	Direct   = "direct"   // a listener of connections that do not ask the gateway
	Names    = "names"    // a packet socket for questions about names
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

// What a Note is about. The words are those of profile.Refusal. That package is not
// imported: what this one imports is initialised before the program can start.
const (
	Reading    = "read"
	Writing    = "write"
	Executing  = "execute"
	Connecting = "connect" // Object is host:port
	Calling    = "call"    // of the kernel; Object names the system call
	Using      = "use"     // of more than a limit allows
)

// Note is something that the program did, or tried.
type Note struct {
	Action  string
	Object  string
	Refused bool
	Allow   string `json:",omitempty"` // the setting that would allow it, if that does not follow from the others
}
