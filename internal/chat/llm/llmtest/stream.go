package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

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
