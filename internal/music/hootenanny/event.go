package hootenanny

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// TransportStateChanged is published when playback starts, stops or moves.
type TransportStateChanged struct {
	Project  string  `json:"project"`
	State    string  `json:"state"`
	Position float64 `json:"position_beats"`
	Tempo    float64 `json:"tempo_bpm"`
}

// EventType is "transport.state_changed".
func (TransportStateChanged) EventType() string { return "transport.state_changed" }

// BeatTick is published when playback reaches a beat.
type BeatTick struct {
	Project  string  `json:"project"`
	Beat     uint64  `json:"beat"`
	Position float64 `json:"position_beats"`
	Tempo    float64 `json:"tempo_bpm"`
}

// EventType is "beat.tick".
func (BeatTick) EventType() string { return "beat.tick" }

// MarkerReached is published when playback reaches a marker.
type MarkerReached struct {
	Project  string  `json:"project"`
	ID       string  `json:"marker_id"`
	Position float64 `json:"position_beats"`
	Type     string  `json:"marker_type"`
	Metadata object  `json:"metadata,omitempty"`
}

// EventType is "marker.reached".
func (MarkerReached) EventType() string { return "marker.reached" }

// RegionEntered is published when playback enters a region.
type RegionEntered struct {
	Project string `json:"project"`
	Region
}

// EventType is "region.entered".
func (RegionEntered) EventType() string { return "region.entered" }

// RegionLeft is published when playback leaves a region.
type RegionLeft struct {
	Project string `json:"project"`
	Region
}

// EventType is "region.left".
func (RegionLeft) EventType() string { return "region.left" }

// ring stores the newest events of music and jobs, so that a client that polls now
// and then misses none. There are too many beats: only the latest is stored.
type ring struct {
	clock clock.Clock
	sub   *event.Subscription
	done  sync.WaitGroup
	begun int64 // start time, part of cursors: those of another process are invalid

	mu     sync.Mutex
	events []storedEvent // oldest first
	last   uint64        // number of the newest
	beat   *BeatTick
	added  chan struct{} // closed and replaced with every event
	bounds int
}

// ringSize is how many events are stored.
const ringSize = 16_384

// storedTypes are the events that are stored.
var storedTypes = []string{"artifact.*", "job.*", "transport.*", "marker.*", "region.*", "beat.*"}

func newRing(events *event.Bus, c clock.Clock) *ring {
	r := &ring{clock: c, begun: c.Now().UnixNano(), added: make(chan struct{}), bounds: ringSize}
	if events == nil {
		return r
	}
	r.sub = events.Subscribe(event.Options{Types: storedTypes, Buffer: 4096})
	r.done.Go(func() {
		for e := range r.sub.All(context.Background()) {
			r.add(e)
		}
	})
	return r
}

func (r *ring) close() {
	if r.sub != nil {
		r.sub.Close()
	}
	r.done.Wait()
}

// storedEvent is an event with whose it is: everybody polls the same ring.
type storedEvent struct {
	PolledEvent
	of event.Event // without its data
}

// PolledEvent is an event.
type PolledEvent struct {
	Seq  uint64         `json:"seq"`
	Time int64          `json:"timestamp_ms"`
	Type string         `json:"event_type" jsonschema:"such as artifact_created or job_finished"`
	Data toolset.Object `json:"data"`
}

// add stores an event.
func (r *ring) add(e event.Event) {
	raw, err := json.Marshal(e.Data)
	if err != nil {
		return // it has no JSON form
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if beat, ok := e.Data.(BeatTick); ok {
		r.beat = &beat
		return
	}
	r.last++
	polled := PolledEvent{r.last, e.Time.UnixMilli(), eventName(e.Type), raw}
	e.Data = nil
	r.events = append(r.events, storedEvent{polled, e})
	if len(r.events) > r.bounds {
		r.events = slices.Delete(r.events, 0, len(r.events)-r.bounds)
	}
	close(r.added)
	r.added = make(chan struct{})
}

// eventName is an event type as scripts and tools write it: artifact_created for
// artifact.created.
func eventName(kind string) string { return strings.ReplaceAll(kind, ".", "_") }

// wantedEvents says which events a call wants, and who calls.
type wantedEvents struct {
	who   principal.Principal
	types []string // none: all
	since int64    // in milliseconds since 1970
	limit int
}

func (w *wantedEvents) has(e *storedEvent) bool {
	return e.Time >= w.since && (len(w.types) == 0 || slices.Contains(w.types, e.Type)) && e.of.VisibleTo(w.who)
}

// after returns the stored events after a number that a call wants and its caller may see.
func (r *ring) after(number uint64, w *wantedEvents) (found []PolledEvent, upTo uint64, more bool, woken <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, upTo = []PolledEvent{}, r.last
	for i := range r.events {
		e := &r.events[i]
		if e.Seq <= number || !w.has(e) {
			continue
		}
		if len(found) == w.limit {
			return found, found[w.limit-1].Seq, true, r.added
		}
		found = append(found, e.PolledEvent)
	}
	return found, upTo, false, r.added
}

func (r *ring) cursor(number uint64) string { return fmt.Sprintf("%x-%d", r.begun, number) }

// parse parses a cursor.
func (r *ring) parse(text string) (uint64, error) {
	begun, number, _ := strings.Cut(text, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0, invalid("%q is not a cursor", text).WithHint("use the cursor of the previous result, or none").WithDetails(map[string]string{"reason": "invalid_cursor"})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	expired := begun != strconv.FormatInt(r.begun, 16) || len(r.events) > 0 && n+1 < r.events[0].Seq
	switch {
	case expired:
		return 0, invalid("the cursor is too old: later events are no longer stored").
			WithHint("begin again without a cursor").WithDetails(map[string]string{"reason": "cursor_expired"})
	case n > r.last:
		return 0, invalid("%q is not a cursor", text).WithHint("use the cursor of the previous result, or none").WithDetails(map[string]string{"reason": "invalid_cursor"})
	}
	return n, nil
}

func (h *Backend) eventTools() []toolset.Tool {
	return []toolset.Tool{define("event_poll", reads(), h.eventPoll)}
}

// eventTypes are the names that can be polled.
var eventTypes = []string{
	"artifact_created", "job_submitted", "job_started", "job_progress", "job_finished",
	"transport_state_changed", "marker_reached", "region_entered", "region_left",
}

type eventPollIn struct {
	Cursor  string   `json:"cursor,omitempty" jsonschema:"cursor of the previous result; without it the call returns at once" max:"64"`
	Since   int      `json:"since_ms,omitempty" jsonschema:"only events of the last milliseconds" min:"1"`
	Types   []string `json:"types,omitempty" jsonschema:"only these, such as artifact_created, job_finished or marker_reached" max:"32"`
	Timeout *int     `json:"timeout_ms,omitempty" jsonschema:"how long to wait for new events; default 5000" min:"0" max:"30000"`
	Limit   int      `json:"limit,omitempty" jsonschema:"maximum number; default 100" min:"1" max:"1000"`
}

// EventsPolled is the result of polling events.
type EventsPolled struct {
	Events   []PolledEvent `json:"events"`
	Cursor   string        `json:"cursor" jsonschema:"pass it to the next call"`
	HasMore  bool          `json:"has_more"`
	Snapshot EventSnapshot `json:"snapshot"`
	Buffer   EventBuffer   `json:"buffer"`
	Now      int64         `json:"server_time_ms"`
}

// EventSnapshot is the current state.
type EventSnapshot struct {
	Transport  GardenState `json:"transport"`
	LatestBeat *BeatTick   `json:"latest_beat,omitempty"`
	ActiveJobs int         `json:"active_jobs" jsonschema:"how many of the caller's jobs have not ended"`
}

// EventBuffer describes the stored events.
type EventBuffer struct {
	Oldest   uint64 `json:"oldest"`
	Newest   uint64 `json:"newest"`
	Total    int    `json:"total"`
	Capacity int    `json:"capacity"`
}

// Text has one line per item.
func (p EventsPolled) Text() string {
	lines := []string{fmt.Sprintf("%d events", len(p.Events))}
	for _, e := range p.Events {
		lines = append(lines, fmt.Sprintf("%d %s %s", e.Seq, e.Type, e.Data))
	}
	return strings.Join(lines, "\n")
}

func (h *Backend) eventPoll(ctx context.Context, call tool.Call, in eventPollIn) (EventsPolled, error) {
	types, err := knownTypes(in.Types)
	if err != nil {
		return EventsPolled{}, err
	}
	if in.Limit == 0 {
		in.Limit = 100
	}
	wait := 5 * time.Second
	if in.Timeout != nil {
		wait = min(time.Duration(*in.Timeout)*time.Millisecond, 30*time.Second)
	}
	var from uint64
	wanted := wantedEvents{who: principal.Of(ctx), types: types, limit: in.Limit}
	if in.Since > 0 {
		wanted.since = h.clock.Now().Add(-time.Duration(in.Since) * time.Millisecond).UnixMilli()
	}
	switch {
	case in.Cursor != "":
		if from, err = h.ring.parse(in.Cursor); err != nil {
			return EventsPolled{}, err
		}
	case in.Since > 0:
		wait = 0
	default: // from now on
		from, wait = h.ring.newest(), 0
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	if wait == 0 {
		cancel()
	}
	defer h.clock.AfterFunc(wait, cancel)()
	return h.await(ctx, waiting, call, func() ([]PolledEvent, uint64, bool, <-chan struct{}) {
		return h.ring.after(from, &wanted)
	})
}

// await calls look until there are events or the wait ends.
func (h *Backend) await(ctx, waiting context.Context, call tool.Call, look func() (found []PolledEvent, upTo uint64, more bool, woken <-chan struct{})) (EventsPolled, error) {
	for {
		found, upTo, more, woken := look()
		if len(found) > 0 {
			return h.polled(ctx, call, found, upTo, more)
		}
		select {
		case <-woken:
		case <-waiting.Done():
			if ctx.Err() != nil {
				return EventsPolled{}, context.Cause(ctx)
			}
			return h.polled(ctx, call, found, upTo, more)
		}
	}
}

func (h *Backend) polled(ctx context.Context, call tool.Call, found []PolledEvent, upTo uint64, more bool) (EventsPolled, error) {
	r := h.ring
	r.mu.Lock()
	buffer := EventBuffer{Newest: r.last, Total: len(r.events), Capacity: r.bounds}
	if len(r.events) > 0 {
		buffer.Oldest = r.events[0].Seq
	}
	beat := r.beat
	r.mu.Unlock()
	transport, err := onProject(h, h.gardenStatus)(ctx, call, projectIn{})
	if err != nil {
		return EventsPolled{}, err
	}
	active, err := h.jobs.Active(ctx)
	return EventsPolled{
		Events: found, Cursor: r.cursor(upTo), HasMore: more, Buffer: buffer, Now: h.clock.Now().UnixMilli(),
		Snapshot: EventSnapshot{Transport: transport, LatestBeat: beat, ActiveJobs: active},
	}, err
}

func (r *ring) newest() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// knownTypes checks names of events; dots may stand for underscores.
func knownTypes(names []string) ([]string, error) {
	var types []string
	for _, name := range names {
		name = eventName(name)
		if !slices.Contains(eventTypes, name) {
			return nil, invalid("unknown event type %q", name).
				WithHint("types: %s", strings.Join(eventTypes, ", ")).WithDetails(map[string]string{"reason": "invalid_types"})
		}
		types = append(types, name)
	}
	return types, nil
}
