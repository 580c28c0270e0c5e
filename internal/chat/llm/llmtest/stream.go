package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// stream writes server-sent events and flushes each.
type stream struct {
	w    http.ResponseWriter
	ping string // written after every event; may be empty
	hold chan struct{}
	gone <-chan struct{}
}

func begin(w http.ResponseWriter, r *http.Request, step Step, ping string) *stream {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	s := &stream{w: w, hold: step.Hold, gone: r.Context().Done()}
	if step.Ping {
		s.ping = ping
	}
	return s
}

// send writes one event; name may be empty.
func (s *stream) send(name string, data any) {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	if name != "" {
		fmt.Fprintf(s.w, "event: %s\n", name)
	}
	fmt.Fprintf(s.w, "data: %s\n\n%s", raw, s.ping)
	s.flush()
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-s.gone:
		}
		s.hold = nil
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
