package hub

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/luanette/luanette/internal/mcp/wire"
)

// round is one request and its answer. A task has one, and another each time a
// client of the modern era comes back with the answers it was asked for.
//
// Its messages go to out. On HTTP that is a stream of the round's own, which the
// handler starts to write when the first message comes before the answer; where
// a connection has one channel for everything, out is that channel and there is
// nobody to wait for the round.
type round struct {
	id     wire.ID
	token  json.RawMessage // the client's progress token, or nil
	level  level           // the least important log messages it wants
	out    *stream
	own    stream // out, unless that is shared
	shared bool   // out belongs to the connection
	modern bool   // errors show in the HTTP status
	mute   bool   // the client reads no streams: only the answer reaches it
	early  func() // called with every message before the answer; may be nil

	mu        sync.Mutex
	done      chan struct{} // closed when settled; nil as long as nobody waits
	streaming bool
	settled   bool
	answer    []byte
	status    int
}

// newRound makes a round with a stream of its own.
func newRound(id wire.ID, streamName string) *round {
	r := &round{id: id}
	r.own.open(streamName)
	r.out = &r.own
	return r
}

// sharedRound makes a round whose messages go to a connection's channel.
func sharedRound(id wire.ID, out *stream) *round {
	return &round{id: id, out: out, shared: true}
}

// say sends a message before the answer; notifications may get lost.
func (r *round) say(message []byte, must bool) {
	if r.mute {
		return
	}
	if must {
		r.out.send(message)
	} else {
		r.out.offer(message)
	}
	if r.early != nil {
		r.early()
	}
}

// settle answers. Only the first answer counts; silent ends the round without
// one where the transport can do so.
func (r *round) settle(result json.RawMessage, err error, silent bool) {
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
	if r.settled {
		return
	}
	r.settled = true
	if r.shared {
		if !silent {
			r.out.send(m.Append(nil))
		}
		return
	}
	r.answer, r.status = m.Append(make([]byte, 0, len(result)+128)), status
	if r.streaming || !r.mute && r.out.pending() {
		r.streaming = true
		r.out.send(r.answer)
		r.out.end()
	}
	if r.done != nil {
		close(r.done)
	}
}

// over is closed when the round is settled. It is for those whose out is their own.
func (r *round) over() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done == nil {
		r.done = make(chan struct{})
		if r.settled {
			close(r.done)
		}
	}
	return r.done
}

// beginStream decides that the round's messages are written as a stream. It
// says no when the answer came first and is all there is.
func (r *round) beginStream() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.settled {
		return r.streaming
	}
	r.streaming = true
	return true
}

func (r *round) isStreaming() bool {
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
