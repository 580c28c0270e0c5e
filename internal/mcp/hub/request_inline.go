package hub

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// runsInline tells whether the request can run in the goroutine of its HTTP request: it
// is a tool call that cannot outlive it. A call of the modern era can if it asks its
// client for input, which comes with another HTTP request; any call can if its tool may
// call Release.
func (req *request) runsInline() bool {
	if req.method != wire.MethodToolsCall || req.ep.hub.opts.Releases {
		return false
	}
	if req.era == wire.Legacy {
		return true
	}
	return rawjson.Lacks(req.caps, "elicitation") && rawjson.Lacks(req.caps, "sampling") && rawjson.Lacks(req.caps, "roots")
}

// serve runs the request and writes its response. It avoids a second goroutine where it
// can, since waking it and being woken by it cost more than the rest of most calls.
func (s *inlineRun) serve() {
	h, w, r, req, resp := s.hub, s.w, s.r, s.request, s.response
	if !req.runsInline() {
		req.start(r.Context(), resp)
		if h.writeResponse(w, r, resp, s.prime, s.started) {
			req.disconnected(r.Context(), resp)
		}
		return
	}
	if !resp.jsonOnly {
		resp.beforeSend = s.open
		defer time.AfterFunc(h.opts.Limits.Quiet, s.open).Stop()
	}
	if ctx, ok := req.begin(context.WithoutCancel(r.Context()), resp); ok {
		stop := context.AfterFunc(r.Context(), func() { req.disconnected(r.Context(), resp) })
		req.run(ctx)
		stop()
	}
	if !resp.isStreaming() {
		writeJSON(w, resp.status, resp.answer)
		return
	}
	s.open()
	<-s.done
}

// inlineRun serves one request in the goroutine of its HTTP request. A second goroutine
// writes the response as a stream if a message comes before the answer, or if the answer
// takes long.
type inlineRun struct {
	hub      *Hub
	w        http.ResponseWriter
	r        *http.Request
	request  *request
	response *response
	prime    bool
	started  func()
	once     sync.Once
	done     chan struct{} // made by open, closed when the stream is written
}

func (s *inlineRun) open() {
	s.once.Do(func() {
		s.done = make(chan struct{})
		go s.write()
	})
}

func (s *inlineRun) write() {
	defer close(s.done)
	if s.response.beginStream() && s.hub.writeStream(s.w, s.r, s.response, s.prime, s.started) {
		s.request.disconnected(s.r.Context(), s.response)
	}
}
