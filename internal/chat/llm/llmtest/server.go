// Package llmtest provides a fake model provider for tests. A Server implements
// Anthropic's and OpenAI's HTTP APIs with server-sent events, checks requests as
// strictly as the real ones do, and answers as a scenario says: text and tool calls in
// pieces, pings, errors and broken connections.
package llmtest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Key is the API key that a Server accepts.
const Key = "sk-stand-in-0123456789abcdef"

// Step is one answer.
type Step struct {
	// What the request must contain, otherwise it is refused: in its last message, in
	// the system prompt, among the tools.
	Expect, System, Offer []string

	Think string   // thinking before the answer; Anthropic only
	Say   []string // the text, in the pieces it arrives in
	Echo  bool     // repeat the last message
	Use   []Use    // tools it asks for
	Stop  string   // stop reason of Anthropic; derived if empty

	Status     int    // other than 200: the request is refused, with
	Kind, Text string // the error's type and message; without Status sent inside the stream
	RetryAfter string
	Ping       bool          // between all events
	Break      bool          // the connection ends before the answer does
	Half       bool          // the answer ends in the middle of an event
	Slow       bool          // every byte is sent on its own
	Spoken     func()        // called before the first piece of text is sent; may be nil
	Hold       chan struct{} // the answer continues after its first event when this is closed
	HoldText   bool          // with Hold: after the first piece of text
	Ended      func()        // with Hold: called if the client disconnects meanwhile; may be nil
}

// speak calls Spoken.
func (s Step) speak() {
	if s.Spoken != nil && len(s.Say) > 0 {
		s.Spoken()
	}
}

// Use is a tool call. ID is generated if empty.
type Use struct {
	ID, Name string
	Input    string // JSON; sent in pieces of a few bytes
}

// Request is a request that a Server received.
type Request struct {
	Wire   string // "anthropic" or "openai"
	Header http.Header
	Body   json.RawMessage
	Model  string
	System string
	Tools  []string // names, in order
	Turns  []Turn
	Media  []Media // images, sounds and files, including those of tools
}

// Turn is one message: its role and all its text, including that of tools.
type Turn struct {
	Role, Text string
}

// Media is an image, a sound or a file.
type Media struct {
	Turn int    // its message: the index in Turns
	Kind string // the API's name: image, document, image_url, input_audio or file
	MIME string
	Data []byte
}

// add adds images, sounds and files to the last message.
func (r *Request) add(media []Media) {
	for _, m := range media {
		m.Turn = len(r.Turns) - 1
		r.Media = append(r.Media, m)
	}
}

// Last returns the text of the last message.
func (r Request) Last() string {
	if len(r.Turns) == 0 {
		return ""
	}
	return r.Turns[len(r.Turns)-1].Text
}

// Server is a provider's endpoint. Its URL is the base URL for both providers.
type Server struct {
	URL    string
	answer func(Request) Step
	http   *httptest.Server

	mu       sync.Mutex
	requests []Request
	seen     map[[32]byte]bool // prompts in the cache
	trouble  []string
}

// New starts a server that answers with the steps of answer. The caller closes it.
func New(answer func(Request) Step) *Server {
	s := &Server{answer: answer, seen: map[[32]byte]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", s.anthropic)
	mux.HandleFunc("POST /v1/chat/completions", s.openAI)
	mux.HandleFunc("POST /v1/audio/transcriptions", s.transcribe)
	s.http = httptest.NewServer(mux)
	s.URL = s.http.URL
	return s
}

// Start starts a server for a test, which fails if a request was wrong.
func Start(t testing.TB, answer func(Request) Step) *Server {
	s := New(answer)
	t.Cleanup(func() {
		s.Close()
		for _, trouble := range s.Trouble() {
			t.Errorf("wrong request to the fake model: %s", trouble)
		}
	})
	return s
}

// Play starts a server for a test that answers with steps in order, and refuses further
// requests.
func Play(t testing.TB, steps ...Step) *Server { return Start(t, Sequence(steps...)) }

// Sequence answers with one step after another.
func Sequence(steps ...Step) func(Request) Step {
	var mu sync.Mutex
	next := 0
	return func(Request) Step {
		mu.Lock()
		defer mu.Unlock()
		if next == len(steps) {
			return Step{Status: http.StatusBadRequest, Kind: "invalid_request_error", Text: "the scenario is over"}
		}
		next++
		return steps[next-1]
	}
}

// ServeHTTP serves a request without a network.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.http.Config.Handler.ServeHTTP(w, r)
}

// Close stops the server.
func (s *Server) Close() { s.http.Close() }

// Requests returns all requests it received.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Trouble returns what was wrong with requests.
func (s *Server) Trouble() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.trouble...)
}

// take records a request and returns the step that answers it.
func (s *Server) take(r Request) Step {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	step := s.answer(r)
	if missing := step.missing(r); missing != "" {
		s.mu.Lock()
		s.trouble = append(s.trouble, missing)
		s.mu.Unlock()
		return Step{Status: http.StatusBadRequest, Kind: "invalid_request_error", Text: missing}
	}
	if step.Echo {
		step.Say = append(step.Say, r.Last())
	}
	for i := range step.Use {
		if step.Use[i].ID == "" {
			step.Use[i].ID = fmt.Sprintf("toolu_%d_%d", len(r.Turns), i+1)
		}
	}
	return step
}

// missing returns which expectation of a step a request does not meet.
func (s Step) missing(r Request) string {
	for _, want := range s.Expect {
		if !strings.Contains(r.Last(), want) {
			return fmt.Sprintf("the last message does not contain %q: %s", want, r.Last())
		}
	}
	for _, want := range s.System {
		if !strings.Contains(r.System, want) {
			return fmt.Sprintf("the system prompt does not contain %q: %s", want, r.System)
		}
	}
	offered := "," + strings.Join(r.Tools, ",") + ","
	for _, want := range s.Offer {
		if !strings.Contains(offered, ","+want+",") {
			return fmt.Sprintf("the tool %q is not offered, only %s", want, offered)
		}
	}
	return ""
}

// cached reports whether a prompt is in the cache, and adds it.
func (s *Server) cached(prompt []byte) bool {
	sum := sha256.Sum256(prompt)
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen[sum]
	s.seen[sum] = true
	return seen
}

func readBody(r *http.Request) ([]byte, error) { return io.ReadAll(io.LimitReader(r.Body, 32<<20)) }

// pieces splits text at arbitrary places between characters, as models do.
func pieces(text string, size int) []string {
	var all []string
	runes := []rune(text)
	for len(runes) > 0 {
		n := min(size, len(runes))
		all = append(all, string(runes[:n]))
		runes = runes[n:]
	}
	return all
}
