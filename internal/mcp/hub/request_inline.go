package hub

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// runsInline tells that a task needs nothing beyond its HTTP request: it is a tool
// call which nobody will want to leave before its answer, neither to ask its
// client something in the modern era, which takes another request, nor to let go
// of the connection meanwhile, as tools of our own may.
func (t *request) runsInline() bool {
	if t.method != wire.MethodToolsCall || t.ep.hub.opts.Releases {
		return false
	}
	if t.era == wire.Legacy {
		return true
	}
	return rawjson.Lacks(t.caps, "elicitation") && rawjson.Lacks(t.caps, "sampling") && rawjson.Lacks(t.caps, "roots")
}

// serve runs a task and writes its round to the client. Where it can, it does so
// without a second goroutine: waking one, and being woken by it, costs more than
// what most calls do here.
func (s *inlineRun) serve() {
	h, w, r, t, rd := s.hub, s.w, s.r, s.task, s.round
	if !t.runsInline() {
		t.start(r.Context(), rd)
		if h.writeResponse(w, r, rd, s.prime, s.started) {
			t.disconnected(r.Context(), rd)
		}
		return
	}
	if !rd.jsonOnly {
		rd.beforeSend = s.open
		defer time.AfterFunc(h.opts.Limits.Quiet, s.open).Stop()
	}
	if ctx, ok := t.begin(context.WithoutCancel(r.Context()), rd); ok {
		stop := context.AfterFunc(r.Context(), func() { t.disconnected(r.Context(), rd) })
		t.run(ctx)
		stop()
	}
	if !rd.isStreaming() {
		writeJSON(w, rd.status, rd.answer)
		return
	}
	s.open()
	<-s.done
}

// inlineRun writes a round as a stream while its task has the request's own
// goroutine. It is opened by what comes before the answer, or when that takes
// long.
type inlineRun struct {
	hub     *Hub
	w       http.ResponseWriter
	r       *http.Request
	task    *request
	round   *response
	prime   bool
	started func()
	once    sync.Once
	done    chan struct{} // made by open, closed when all is written
}

func (s *inlineRun) open() {
	s.once.Do(func() {
		s.done = make(chan struct{})
		go s.write()
	})
}

func (s *inlineRun) write() {
	defer close(s.done)
	if s.round.beginStream() && s.hub.writeStream(s.w, s.r, s.round, s.prime, s.started) {
		s.task.disconnected(s.r.Context(), s.round)
	}
}
