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
	"path"
	"slices"
	"strconv"
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

// Parse reads a scenario: answers separated by lines of ---. Each line is a keyword and
// its arguments. Text in double quotes may contain escapes such as \
// .
//
//	expect WORDS      the last message must contain them
//	system WORDS      the system prompt must
//	offer NAME        the tool must be offered
//	think TEXT        thought before anything is said
//	say TEXT          a piece of text; several are pieces of one text
//	echo              say what the last message says
//	use NAME JSON     ask for a tool
//	stop REASON       such as refusal or max_tokens
//	status 529 KIND TEXT   refuse the request
//	after SECONDS     with Retry-After
//	error KIND TEXT   an error in the middle of the answer
//	ping              pings between all events
//	break             the connection ends before the answer does
//	half              the answer ends in the middle of an event
//	slow              every byte is sent on its own
//
// Empty lines and lines that begin with # are ignored.
func Parse(text string) ([]Step, error) {
	var steps []Step
	var step Step
	for n, line := range strings.Split(text+"\n---", "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if line == "---" {
			steps = append(steps, step)
			step = Step{}
			continue
		}
		if err := step.read(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return steps, nil
}

func (s *Step) read(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	rest, err := unquoted(strings.TrimSpace(rest))
	if err != nil {
		return err
	}
	switch word {
	case "expect":
		s.Expect = append(s.Expect, rest)
	case "system":
		s.System = append(s.System, rest)
	case "offer":
		s.Offer = append(s.Offer, rest)
	case "think":
		s.Think = rest
	case "say":
		s.Say = append(s.Say, rest)
	case "echo":
		s.Echo = true
	case "use":
		name, input, _ := strings.Cut(rest, " ")
		if input != "" && !json.Valid([]byte(input)) {
			return fmt.Errorf("the input of %s is not JSON", name)
		}
		s.Use = append(s.Use, Use{Name: name, Input: input})
	case "stop":
		s.Stop = rest
	case "status":
		code, why, _ := strings.Cut(rest, " ")
		s.Status, err = strconv.Atoi(code)
		s.Kind, s.Text, _ = strings.Cut(why, " ")
	case "after":
		s.RetryAfter = rest
	case "error":
		s.Kind, s.Text, _ = strings.Cut(rest, " ")
	case "ping":
		s.Ping = true
	case "break":
		s.Break = true
	case "half":
		s.Half = true
	case "slow":
		s.Slow = true
	default:
		err = fmt.Errorf("no word %q", word)
	}
	return err
}

func unquoted(text string) (string, error) {
	if strings.HasPrefix(text, `"`) {
		return strconv.Unquote(text)
	}
	return text, nil
}

// stream writes server-sent events and flushes each.
type stream struct {
	w     http.ResponseWriter
	ping  string // written after every event; may be empty
	slow  bool   // every byte is sent on its own
	hold  chan struct{}
	until string // part of the event after which it holds
	gone  <-chan struct{}

	ended bool // the client has gone
	onEnd func()
}

func begin(w http.ResponseWriter, r *http.Request, step Step, ping string) *stream {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	s := &stream{w: w, slow: step.Slow, hold: step.Hold, onEnd: step.Ended, gone: r.Context().Done()}
	if step.Ping {
		s.ping = ping
	}
	if step.HoldText {
		s.until = step.Say[0]
	}
	return s
}

// send writes one event; name may be empty.
func (s *stream) send(name string, data any) {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	text := fmt.Sprintf("data: %s\n\n%s", raw, s.ping)
	if name != "" {
		text = fmt.Sprintf("event: %s\n", name) + text
	}
	s.write(text)
	if s.hold != nil && strings.Contains(text, s.until) {
		select {
		case <-s.hold:
		case <-s.gone:
			s.ended = true // what follows could still arrive
			if s.onEnd != nil {
				s.onEnd()
			}
		}
		s.hold = nil
	}
}

// half writes the beginning of an event, and a blank line after it.
func (s *stream) half() { s.write("data: {\"type\":\"content_block_\n\n") }

// write sends text, as a whole or byte by byte.
func (s *stream) write(text string) {
	size := len(text)
	if s.slow {
		size = 1
	}
	for ; len(text) > 0 && !s.ended; text = text[min(size, len(text)):] {
		_, _ = io.WriteString(s.w, text[:min(size, len(text))]) // the client may have disconnected
		s.flush()
	}
}

func (s *stream) flush() {
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}

// cut closes the connection in the middle of the answer.
func cut() { panic(http.ErrAbortHandler) }

func writeJSON(w http.ResponseWriter, status int, retryAfter string, body any) {
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have disconnected
}

// transcribe is OpenAI's transcription API. The text is what the file contains, and its
// format; a file that contains "fail" is refused.
func (s *Server) transcribe(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, text string) {
		writeJSON(w, status, "", object{"error": object{"message": text, "type": "invalid_request_error", "param": nil, "code": nil}})
	}
	if r.Header.Get("Authorization") != "Bearer "+Key {
		refuse(http.StatusUnauthorized, "Incorrect API key provided")
		return
	}
	file, header, err := r.FormFile("file")
	if err != nil || r.FormValue("model") == "" {
		refuse(http.StatusBadRequest, "file and model are required")
		return
	}
	defer file.Close()
	format := path.Ext(header.Filename)
	if !slices.Contains([]string{".flac", ".m4a", ".mp3", ".mp4", ".mpeg", ".mpga", ".oga", ".ogg", ".wav", ".webm"}, format) {
		refuse(http.StatusBadRequest, fmt.Sprintf("Invalid file format %q", format))
		return
	}
	data, err := io.ReadAll(file)
	if err != nil || string(data) == "fail" {
		refuse(http.StatusBadRequest, "the audio could not be decoded")
		return
	}
	writeJSON(w, http.StatusOK, "", object{"text": fmt.Sprintf("%s in %s", data, format[1:])})
}
