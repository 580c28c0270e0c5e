package hub

import (
	"encoding/json"
	"net/http"
	"sync"

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
