package hub

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/luanette/luanette/internal/mcp/wire"
)

// response is one request and its answer. A task has one, and another each time a
// client of the modern era comes back with the answers it was asked for.
//
// Its messages go to out. On HTTP that is a stream of the round's own, which the
// handler starts to write when the first message comes before the answer; where
// a connection has one channel for everything, out is that channel and there is
// nobody to wait for the round.
type response struct {
	id         wire.ID
	token      json.RawMessage // the client's progress token, or nil
	level      level           // the least important log messages it wants
	out        *stream
	ownStream  stream // out, unless that is shared
	shared     bool   // out belongs to the connection
	modern     bool   // errors show in the HTTP status
	jsonOnly   bool   // the client reads no streams: only the answer reaches it
	beforeSend func() // called with every message before the answer; may be nil

	mu        sync.Mutex
	doneChan  chan struct{} // closed when settled; nil as long as nobody waits
	streaming bool
	finished  bool
	answer    []byte
	status    int
}

// newResponse makes a round with a stream of its own.
func newResponse(id wire.ID, streamName string) *response {
	r := &response{id: id}
	r.ownStream.open(streamName)
	r.out = &r.ownStream
	return r
}

// newSharedResponse makes a round whose messages go to a connection's channel.
func newSharedResponse(id wire.ID, out *stream) *response {
	return &response{id: id, out: out, shared: true}
}

// send sends a message before the answer; notifications may get lost.
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

// finish answers. Only the first answer counts; silent ends the round without
// one where the transport can do so.
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

// done is closed when the round is settled. It is for those whose out is their own.
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

// beginStream decides that the round's messages are written as a stream. It
// says no when the answer came first and is all there is.
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

// statusOf is the HTTP status that goes with an error of the modern era; older
// clients get 200 with every answer.
func statusOf(code int64) int {
	switch code {
	case wire.CodeMethodNotFound:
		return http.StatusNotFound
	case wire.CodeHeaderMismatch, wire.CodeMissingCapability, wire.CodeUnsupportedRevision:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
