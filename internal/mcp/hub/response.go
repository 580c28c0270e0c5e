package hub

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// response is what the hub sends for one request of a client. A request that asks a
// client of the modern era for input has another response each time the client returns
// with the input.
//
// Messages go to out. Over HTTP that is a stream of its own, which the handler starts to
// write when a message comes before the answer. Over stdio and HTTP+SSE it is the
// session's only stream.
type response struct {
	id         wire.ID
	token      json.RawMessage // the client's progress token, or nil
	level      level           // the least important log messages it wants
	out        *stream
	ownStream  stream // used as out unless that is shared
	shared     bool   // out belongs to the connection
	modern     bool   // errors set the HTTP status
	jsonOnly   bool   // the client does not accept streams and gets only the answer
	beforeSend func() // called for every message before the answer; may be nil

	mu        sync.Mutex
	doneChan  chan struct{} // closed when finished; made by done
	streaming bool
	finished  bool
	answer    []byte
	status    int
}

// newResponse makes a response with a stream of its own.
func newResponse(id wire.ID, streamName string) *response {
	r := &response{id: id}
	r.ownStream.open(streamName)
	r.out = &r.ownStream
	return r
}

// newSharedResponse makes a response that goes to the session's only stream.
func newSharedResponse(id wire.ID, out *stream) *response {
	return &response{id: id, out: out, shared: true}
}

// send sends a message before the answer; notifications may be dropped.
func (r *response) send(message []byte, must bool) {
	if r.jsonOnly {
		return
	}
	if must {
		r.out.send(message)
	} else {
		r.out.offer(message)
	}
	if r.beforeSend != nil {
		r.beforeSend()
	}
}

// finish sets the answer; only the first call counts. With silent, a shared response
// ends without an answer.
func (r *response) finish(result json.RawMessage, err error, silent bool) {
	m := wire.Message{ID: r.id, Result: result}
	status := http.StatusOK
	if err != nil {
		m.Error = wire.ErrorFrom(err)
		if r.modern {
			status = statusOf(m.Error.Code)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished {
		return
	}
	r.finished = true
	if r.shared {
		if !silent {
			r.out.send(m.Append(nil))
		}
		return
	}
	r.answer, r.status = m.Append(make([]byte, 0, len(result)+128)), status
	if r.streaming || !r.jsonOnly && r.out.pending() {
		r.streaming = true
		r.out.send(r.answer)
		r.out.end()
	}
	if r.doneChan != nil {
		close(r.doneChan)
	}
}

// done returns a channel that is closed when the response is finished. It is not for
// shared responses.
func (r *response) done() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.doneChan == nil {
		r.doneChan = make(chan struct{})
		if r.finished {
			close(r.doneChan)
		}
	}
	return r.doneChan
}

// beginStream decides that the response is written as a stream. It returns false if the
// answer is there already and no message came before it.
func (r *response) beginStream() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished {
		return r.streaming
	}
	r.streaming = true
	return true
}

func (r *response) isStreaming() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.streaming
}

// statusOf is the HTTP status for an error of the modern era. Clients of the sessions
// era get 200 with every answer.
func statusOf(code int64) int {
	switch code {
	case wire.CodeMethodNotFound:
		return http.StatusNotFound
	case wire.CodeHeaderMismatch, wire.CodeMissingCapability, wire.CodeUnsupportedRevision:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// writeResponse writes a response to its client: as JSON if there is only the answer, as
// a stream if a message comes before it or the answer takes long. It returns true if the
// client disconnected first.
func (h *Hub) writeResponse(w http.ResponseWriter, r *http.Request, resp *response, prime bool, started func()) (disconnected bool) {
	if resp.jsonOnly {
		return h.writeJSONResponse(w, r, resp)
	}
	quiet := time.NewTimer(h.opts.Limits.Quiet)
	defer quiet.Stop()
	select {
	case <-resp.done():
	case <-resp.out.changed():
	case <-quiet.C:
	case <-r.Context().Done():
		return true
	}
	if !resp.beginStream() {
		writeJSON(w, resp.status, resp.answer)
		return false
	}
	return h.writeStream(w, r, resp, prime, started)
}

// writeStream writes a response as events. It returns true if the client disconnected
// first.
func (h *Hub) writeStream(w http.ResponseWriter, r *http.Request, resp *response, prime bool, started func()) (disconnected bool) {
	if started != nil {
		started()
	}
	me := resp.out.attach()
	events := h.newEventWriter(w, resp.out.name)
	if prime {
		events.prime(0)
	}
	return h.copyStream(r.Context(), events, resp.out, me) == clientDisconnected
}

// writeJSONResponse writes the answer alone.
func (h *Hub) writeJSONResponse(w http.ResponseWriter, r *http.Request, resp *response) (disconnected bool) {
	select {
	case <-resp.done():
		writeJSON(w, resp.status, resp.answer)
		return false
	case <-r.Context().Done():
		return true
	}
}

// ending is why copyStream returned.
type ending int

const (
	streamEnded    ending = iota // everything was written
	streamCut                    // the client has to reconnect for the rest
	readerReplaced               // another connection of the client reads the rest
	clientDisconnected
)

// copyStream writes a stream until it ends, its client disconnects, or another connection
// reads it.
func (h *Hub) copyStream(ctx context.Context, w *eventWriter, s *stream, me reader) ending {
	alive := time.NewTicker(h.opts.Limits.KeepAlive)
	defer alive.Stop()
	stirred := s.changed()
	for {
		b := s.take(me)
		w.batch(b)
		switch {
		case w.flush() != nil:
			return clientDisconnected
		case b.ended:
			return streamEnded
		case b.cut:
			return streamCut
		}
		select {
		case <-stirred:
		case <-alive.C:
			w.comment()
		case <-me:
			return readerReplaced
		case <-ctx.Done():
			return clientDisconnected
		}
	}
}

// eventWriter writes messages as server-sent events.
type eventWriter struct {
	w            http.ResponseWriter
	ctl          *http.ResponseController
	name         string        // of the stream; empty: events have no ids
	writeTimeout time.Duration // for one write
	buf          []byte
}

// newEventWriter begins an event stream as the response.
func (h *Hub) newEventWriter(w http.ResponseWriter, name string) *eventWriter {
	header := w.Header()
	header.Set("Content-Type", wire.ContentEvent)
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return &eventWriter{w: w, ctl: http.NewResponseController(w), name: name, writeTimeout: h.opts.Limits.Write}
}

// retryAfter is how long clients wait before they reconnect.
const retryAfter = time.Second

// prime writes an event without data. Its id lets a client reconnect before it has seen
// a message after number.
func (w *eventWriter) prime(number uint64) {
	w.buf = sse.Append(w.buf, sse.Event{ID: eventID(w.name, number), Retry: retryAfter})
}

func (w *eventWriter) batch(b batch) {
	for i, m := range b.messages {
		e := sse.Event{Name: "message", Data: m}
		if w.name != "" {
			e.ID = eventID(w.name, b.from+uint64(i))
		}
		w.buf = sse.Append(w.buf, e)
	}
	if b.cut && !b.ended {
		last := b.from + uint64(len(b.messages)) - 1
		w.buf = sse.Append(w.buf, sse.Event{ID: eventID(w.name, last), Retry: b.retry})
	}
}

func (w *eventWriter) comment() { w.buf = sse.AppendComment(w.buf, "") }

// flush writes the buffered events. The deadline is for this write only, since a stream
// may be silent for any time.
func (w *eventWriter) flush() error {
	// A ResponseWriter without deadlines is used without one.
	_ = w.ctl.SetWriteDeadline(time.Now().Add(w.writeTimeout))
	if len(w.buf) > 0 {
		if _, err := w.w.Write(w.buf); err != nil {
			return err
		}
		w.buf = w.buf[:0]
	}
	err := w.ctl.Flush()
	_ = w.ctl.SetWriteDeadline(time.Time{})
	return err
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header()["Content-Type"] = typeJSON
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have disconnected
}

// typeJSON is shared by all responses.
var typeJSON = []string{wire.ContentJSON}

// streamBytes is how much a stream stores: unread messages before notifications are
// dropped, and read messages for replay.
const streamBytes = 1 << 20

// stream is a queue of messages to one client. Senders never block. A stream with a name
// numbers its messages from 1 and stores the latest, so that a client that lost its
// connection can resume after the last message it saw.
type stream struct {
	name string

	mu     sync.Mutex
	wake   chan struct{} // see changed
	log    [][]byte      // messages first, first+1, …
	first  uint64        // number of log[0]
	next   uint64        // number of the first message not yet taken
	size   int           // bytes in log
	ended  bool          // nothing more will come
	cut    bool          // the reader has to disconnect and to reconnect later
	retry  time.Duration // after which the reader reconnects
	reader reader        // the current reader; nil if there is only ever one
}

// reader is a connection that reads a stream. It is closed when another connection
// replaces it.
type reader chan struct{}

func newStream(name string) *stream {
	s := new(stream)
	s.open(name)
	return s
}

// open prepares a zero stream.
func (s *stream) open(name string) {
	s.name, s.first, s.next = name, 1, 1
}

// send adds a message that must not be dropped.
func (s *stream) send(message []byte) { s.add(message, true) }

// offer adds a message that is dropped if the client reads too slowly.
func (s *stream) offer(message []byte) { s.add(message, false) }

func (s *stream) add(message []byte, must bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || !must && s.waiting() > streamBytes {
		return
	}
	s.log = append(s.log, message)
	s.size += len(message)
	s.trim()
	s.signal()
}

// end ends the stream after its last message.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.signal()
}

// disconnect makes the reader disconnect, and reconnect for the rest after retry.
func (s *stream) disconnect(retry time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut, s.retry = true, retry
	s.signal()
}

// changed returns a channel that holds a token when there is something to read. It is made
// when first needed, since the streams of most requests are never read.
func (s *stream) changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wake == nil {
		s.wake = make(chan struct{}, 1)
		if s.ended || s.cut || s.untaken() {
			s.signal()
		}
	}
	return s.wake
}

func (s *stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// waiting is the number of unread bytes.
func (s *stream) waiting() int {
	n := 0
	for _, m := range s.log[s.next-s.first:] {
		n += len(m)
	}
	return n
}

// trim drops read messages: all of them in a stream without a name, otherwise the oldest
// beyond streamBytes.
func (s *stream) trim() {
	for len(s.log) > 0 && s.first < s.next && (s.name == "" || s.size > streamBytes) {
		s.size -= len(s.log[0])
		s.log[0] = nil
		s.log = s.log[1:]
		s.first++
	}
}

func (s *stream) pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.untaken()
}

func (s *stream) untaken() bool { return s.next < s.first+uint64(len(s.log)) }

// position is the number of the last message taken.
func (s *stream) position() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next - 1
}

// batch is what a reader takes: messages, the number of the first, and the state of the
// stream after them.
type batch struct {
	messages [][]byte
	from     uint64
	ended    bool
	cut      bool
	retry    time.Duration
}

// take returns the unread messages. A reader that was replaced gets none.
func (s *stream) take(by reader) batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if by != s.reader {
		return batch{}
	}
	b := batch{from: s.next, ended: s.ended, cut: s.cut, retry: s.retry}
	if rest := s.log[s.next-s.first:]; len(rest) > 0 {
		b.messages = append(b.messages, rest...)
		s.next += uint64(len(rest))
	}
	s.cut = false
	s.trim()
	return b
}

// attach makes a new reader, which replaces the one before.
func (s *stream) attach() reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replaceReader()
}

var errNotStored = errors.New("events after that id are no longer stored")

// attachAfter makes a new reader that begins after a message.
func (s *stream) attachAfter(number uint64) (reader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number+1 < s.first || number >= s.first+uint64(len(s.log)) {
		return nil, errNotStored
	}
	s.next = number + 1
	return s.replaceReader(), nil
}

func (s *stream) replaceReader() reader {
	if s.reader != nil {
		close(s.reader)
	}
	s.reader = make(reader)
	return s.reader
}

// eventID names a message of a stream: "name-number". Number 0 stands before the
// first message.
func eventID(name string, number uint64) string {
	return name + "-" + strconv.FormatUint(number, 10)
}

func parseEventID(id string) (name string, number uint64, ok bool) {
	name, digits, found := strings.Cut(id, "-")
	number, err := strconv.ParseUint(digits, 10, 64)
	return name, number, found && err == nil
}
