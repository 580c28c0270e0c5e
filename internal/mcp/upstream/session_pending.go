package upstream

import (
	"encoding/json"
	"sync"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

// flight is a request under way, as far as the server talks about it before it
// answers. What it says reaches the caller in order, and all of it before the
// answer does.
type flight struct {
	draft
	clock *patience // which is the request's context

	mu     sync.Mutex
	last   float64
	landed bool
	queue  chan func()   // to the caller; made when there is something to tell it
	told   chan struct{} // closed when the queue is empty for good
}

// flightQueue is how much the caller may lag behind; what comes beyond is lost,
// since nobody may hold up the server's stream.
const flightQueue = 256

// progress passes on a notification, if it goes forward.
func (f *flight) progress(params json.RawMessage) {
	p, ok := parseProgress(params)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !ok || f.landed || p.Progress <= f.last {
		return
	}
	f.last = p.Progress
	f.clock.touch()
	if f.caller != nil && f.caller.Progress != nil {
		f.tell(func() { f.caller.Progress(p) })
	}
}

// log passes on a log message.
func (f *flight) log(params json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.landed || f.caller == nil || f.caller.Log == nil {
		return
	}
	entry := tool.Log{}
	entry.Level, _ = rawjson.GetText(params, "level")
	entry.Logger, _ = rawjson.GetText(params, "logger")
	entry.Data, _ = rawjson.Get(params, "data")
	f.tell(func() { f.caller.Log(entry) })
}

// tell queues; f.mu is held. Most calls are answered before there is anything to
// tell, so the queue and who empties it are made by the first that has.
func (f *flight) tell(what func()) {
	if f.queue == nil {
		queue, told := make(chan func(), flightQueue), make(chan struct{})
		f.queue, f.told = queue, told
		go func() {
			defer close(told)
			for tell := range queue {
				tell()
			}
		}()
	}
	select {
	case f.queue <- what:
	default:
	}
}

// land ends the talking and waits until the caller has heard all of it.
func (f *flight) land() {
	f.mu.Lock()
	f.landed = true
	told := f.told
	if f.queue != nil {
		close(f.queue)
	}
	f.mu.Unlock()
	if told != nil {
		<-told
	}
}

func parseProgress(params json.RawMessage) (p tool.Progress, ok bool) {
	raw, _ := rawjson.Get(params, "progress")
	if p.Progress, ok = rawjson.Number(raw); !ok {
		return p, false
	}
	if raw, found := rawjson.Get(params, "total"); found {
		p.Total, _ = rawjson.Number(raw)
	}
	p.Message, _ = rawjson.GetText(params, "message")
	return p, true
}
