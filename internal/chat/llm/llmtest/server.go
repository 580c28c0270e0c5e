// Package llmtest stands in for model providers. A Server speaks Anthropic's and
// OpenAI's HTTP and server-sent events as they are on the wire, checks requests as
// strictly as the real ones do, and answers as a scenario says: text and tools in
// pieces, pings, busy and broken answers. So what is above a model can be proven
// without one.
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

// Key is what a Server wants to be shown.
const Key = "sk-stand-in-0123456789abcdef"

// Step is one answer.
type Step struct {
	// What the request must contain, else it is refused: in its last message, in the
	// system prompt, among the tools.
	Expect, System, Offer []string

	Think string   // what the model thinks first; at Anthropic only
	Say   []string // the text, in the pieces it arrives in
	Echo  bool     // say what the last message says
	Use   []Use    // tools it asks for
	Stop  string   // Anthropic's word for it; made of the rest when empty

	Status     int    // other than 200: the request is refused, with
	Kind, Text string // the error's type and message; without Status told inside the stream
	RetryAfter string
	Ping       bool          // between all events
	Break      bool          // the connection ends before the answer does
	Spoken     func()        // called when the first piece of the text is about to be sent; may be nil
	Hold       chan struct{} // the answer goes on after its first event when this is closed
}

// speak tells that the text begins.
func (s Step) speak() {
	if s.Spoken != nil && len(s.Say) > 0 {
		s.Spoken()
	}
}

// Use is a tool asked for. ID is made when empty.
type Use struct {
	ID, Name string
	Input    string // JSON; sent in pieces of a few bytes
}

// Request is what a Server was asked.
type Request struct {
	Wire   string // "anthropic" or "openai"
	Header http.Header
	Body   json.RawMessage
	Model  string
	System string
	Tools  []string // names, in order
	Turns  []Turn
}

// Turn is one message: who said it and all its text, that of tools included.
type Turn struct {
	Role, Text string
}

// Last is the text of the last message.
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

// New starts a server that answers as it is told. Close it.
func New(answer func(Request) Step) *Server {
	s := &Server{answer: answer, seen: map[[32]byte]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", s.anthropic)
	mux.HandleFunc("POST /v1/chat/completions", s.openAI)
	s.http = httptest.NewServer(mux)
	s.URL = s.http.URL
	return s
}

// Start starts a server for a test, which fails when a request was not as it had
// to be.
func Start(t testing.TB, answer func(Request) Step) *Server {
	s := New(answer)
	t.Cleanup(func() {
		s.Close()
		for _, trouble := range s.Trouble() {
			t.Errorf("the stand-in model was asked wrongly: %s", trouble)
		}
	})
	return s
}

// Play starts a server for a test that answers with steps, one after another, and
// no more.
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

// ServeHTTP answers a request that did not come over the network.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.http.Config.Handler.ServeHTTP(w, r)
}

// Close ends the server.
func (s *Server) Close() { s.http.Close() }

// Requests is everything it was asked.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Trouble is what was wrong with requests.
func (s *Server) Trouble() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.trouble...)
}

// take keeps a request and finds the step that answers it.
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

// missing says what of a step's expectations a request does not fulfil.
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

// cached tells whether a prompt is in the cache, and puts it there.
func (s *Server) cached(prompt []byte) bool {
	sum := sha256.Sum256(prompt)
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen[sum]
	s.seen[sum] = true
	return seen
}

func readBody(r *http.Request) ([]byte, error) { return io.ReadAll(io.LimitReader(r.Body, 32<<20)) }

// pieces cuts text as models do: anywhere, and never inside a character.
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
