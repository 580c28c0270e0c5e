package processes

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/store/db"
)

// eventReader reads the events of all nodes on one node, and on another when that ends.
// It must receive the end of every job, or an event that reports a gap.
type eventReader struct {
	stop context.CancelFunc
	done chan struct{}

	mu       sync.Mutex
	last     string                // id of the last event
	lastAt   time.Time             // when it arrived
	lastOf   map[string]time.Time  // time of the last event of each node, by name
	ended    map[string]int        // how often the end of a job was received since the last move
	started  map[string]*time.Time // the last kill before a job was started or resumed
	finished map[string]bool       // jobs whose end was received
	dead     map[string]bool       // nodes whose end was received
	gaps     []gap                 // times of which events may be missing
	resumed  []time.Duration       // from a kill until a job was resumed
	twice    []string              // jobs whose end was received twice on one node
	moves    int                   // from node to node
}

// gap is a time in which the reader may have missed events.
type gap struct {
	node     string // "" means all nodes
	from, to time.Time
}

// watch starts to read events.
func (f *testCluster) watch(t *testing.T) *eventReader {
	ctx, stop := context.WithCancel(t.Context())
	w := &eventReader{stop: stop, done: make(chan struct{}), started: map[string]*time.Time{}, finished: map[string]bool{}, dead: map[string]bool{}, lastAt: time.Now(), lastOf: map[string]time.Time{}}
	go func() {
		defer close(w.done)
		var at *clusterNode
		for ctx.Err() == nil {
			at, _ = f.runningNode(t, at)
			w.read(ctx, f, at)
			_ = clock.Real().Sleep(ctx, 10*time.Millisecond) // before it reconnects
		}
	}()
	t.Cleanup(func() {
		stop()
		<-w.done
	})
	return w
}

// read reads events on one node until it ends.
func (w *eventReader) read(ctx context.Context, f *testCluster, at *clusterNode) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.URL()+"/api/v1/events?types=job.finished,job.started,node.gone&after=all", nil)
	if err != nil {
		return
	}
	if w.last != "" {
		r.Header.Set("Last-Event-ID", w.last)
	}
	answer, err := httpjsontest.Client.Do(r)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	w.mu.Lock()
	w.ended = map[string]int{}
	w.moves++
	w.mu.Unlock()
	events := sse.NewReader(answer.Body, 0)
	for {
		e, err := events.Next()
		if err != nil {
			return
		}
		w.record(f, at.name, e.ID, e.Data)
	}
}

// record records an event.
func (w *eventReader) record(f *testCluster, at, id string, raw []byte) {
	var e struct {
		Type string
		Node string // of another node
		Time time.Time
		Data struct {
			Job     string `json:"job_id"`
			Node    string `json:"id"`
			Resumed bool
		}
	}
	if json.Unmarshal(raw, &e) != nil {
		return
	}
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Type {
	case "job.finished":
		w.finished[e.Data.Job] = true
		if w.ended[e.Data.Job]++; w.ended[e.Data.Job] == 2 {
			w.twice = append(w.twice, e.Data.Job)
		}
	case "job.started":
		killed := f.lastKill.Load()
		before := w.started[e.Data.Job]
		w.started[e.Data.Job] = killed
		if e.Data.Resumed && killed != nil && before != killed && e.Time.After(*killed) {
			w.resumed = append(w.resumed, e.Time.Sub(*killed))
		}
	case "node.gone":
		w.dead[e.Data.Node] = true
	case "event.missed":
		w.noteGap(f, e.Node, at, now)
	}
	w.last, w.lastAt = id, now
	if e.Type != "event.missed" || e.Node != "" {
		w.lastOf[cmp.Or(e.Node, at)] = e.Time // it may arrive later, on another node
	}
}

// noteGap notes that events may be missing: of one other node, or of all if the gap is of none or
// of the node at which they are read, which has lost contact with the others.
func (w *eventReader) noteGap(f *testCluster, of, at string, now time.Time) {
	all := of == "" || of == at
	if all {
		w.gaps = append(w.gaps, gap{"", w.lastAt, now})
	}
	for _, c := range f.nodes {
		if !all && c.name != of {
			continue
		}
		from, known := w.lastOf[c.name]
		if !known {
			from = w.lastAt // no event of the node was received
		}
		w.gaps = append(w.gaps, gap{c.name, from, now})
	}
}

// lag is how late an event may arrive in normal operation.
const lag = time.Second

// covers reports whether a job may have ended during the gap. It ended between the stored
// time and when a client received its end.
func (g gap) covers(e jobEnd) bool {
	return (g.node == "" || g.node == e.name) && e.reported.After(g.from.Add(-lag)) && e.at.Before(g.to)
}

// missed returns the jobs whose end was neither received nor reported as possibly missed,
// and how many were reported.
func (w *eventReader) missed(ends map[string]jobEnd) (lost []string, reported int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, e := range ends {
		if w.finished[id] {
			continue
		}
		if w.dead[e.node] || slices.ContainsFunc(w.gaps, func(g gap) bool { return g.covers(e) }) {
			reported++
		} else {
			lost = append(lost, id)
		}
	}
	return lost, reported
}

// check checks what it received after all jobs have ended.
func (w *eventReader) check(t *testing.T, f *testCluster) {
	ends := f.ends(t)
	var lost []string
	var reported int
	ctx, cancel := context.WithTimeout(t.Context(), clocktest.Timeout)
	defer cancel()
	clocktest.Poll(ctx, func() bool { // the last events may still arrive
		lost, reported = w.missed(ends)
		return len(lost) == 0
	})
	w.stop()
	<-w.done
	for _, id := range lost {
		t.Errorf("the end of job %s was neither received nor reported as missed: %+v; gaps %+v", id, ends[id], w.gaps)
	}
	for _, id := range w.twice {
		t.Errorf("the end of job %s was received twice", id)
	}
	if len(w.finished) < len(f.jobs)/2 {
		t.Errorf("received the end of %d of %d jobs", len(w.finished), len(f.jobs))
	}
	t.Logf("the end of %d jobs was received, of %d reported as missed; the reader moved %d times", len(w.finished), reported, w.moves-1)
	t.Logf("jobs of a dead node were resumed after %s", summarize(w.resumed))
}

// jobEnd is on which node a job ended, when, and when a client received it.
type jobEnd struct {
	node, name   string // id and name of the node
	at, reported time.Time
}

// ends returns the ends of the jobs that clients waited for.
func (f *testCluster) ends(t *testing.T) map[string]jobEnd {
	t.Helper()
	ends := map[string]jobEnd{}
	for _, c := range f.nodes {
		f.nodeID(t, c)
	}
	err := f.store.Read(t.Context(), func(tx *db.Tx) error {
		_, err := db.All(t.Context(), tx, func(row db.Scanner) (id string, err error) {
			var e jobEnd
			var at int64
			err = row.Scan(&id, &e.node, &at)
			e.name, e.at = f.names[e.node], time.UnixMicro(at)
			if job, waited := f.jobs[id]; waited {
				e.reported = job.endedAt
				ends[id] = e
			}
			return id, err
		}, "SELECT id, node, finished FROM jobs")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ends
}
