package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/plural"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/kv"
)

// Rehearsal is a Handler that changes nothing: reads are carried out, everything else is
// entered in a plan. Writes of files and contents go to an overlay, where the script can
// read them again; other effects are checked as in a live run and answered with a mock.
// Sleeping takes no time. It is safe for concurrent use.
type Rehearsal struct {
	tools   tool.Source
	guard   Approver
	answers map[string]json.RawMessage

	mu     sync.Mutex
	plan   []Planned
	reads  []Planned
	looked bool // the script looked into a mock
	// started are the mocks of jobs that would have been started, by made-up ids.
	started map[string]json.RawMessage
	files   map[string]upstreamFile // of servers, as they would be, by server and path
}

// NewRehearsal mocks tools by their output schemas, which it finds in tools; tools may
// be nil. answers are mocks given by the caller, by the name of a tool
// ("github.create_issue") or of an effect ("http.request", "run_command"). Reads that need
// approval are planned and mocked like changes: guard says which; nil: none does.
func NewRehearsal(tools tool.Source, guard Approver, answers map[string]json.RawMessage) *Rehearsal {
	return &Rehearsal{tools: tools, guard: guard, answers: answers}
}

type rehearsingKey struct{}

// inRehearsal reports whether an effect is carried out in an overlay.
func inRehearsal(ctx context.Context) bool { return ctx.Value(rehearsingKey{}) != nil }

// Handle carries out the effect if it changes nothing, and otherwise plans it.
func (r *Rehearsal) Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	ctx = context.WithValue(ctx, rehearsingKey{}, true)
	switch {
	case e.Kind == Observe || e.Kind == Nondeterministic || e.Kind == Nested:
		return live(ctx)
	case e.Kind == Read:
		if values, planned := r.resultOf(e); planned {
			return values, nil
		}
		if values, given := r.given(e); given {
			return values, nil
		}
		return r.read(ctx, e, live)
	case e.function().inOverlay():
		return r.overlay(ctx, e, live)
	default:
		return r.rehearse(ctx, e)
	}
}

// Rehearsing reports whether h rehearses, or has paused and rehearses from then on.
func Rehearsing(d Handler) bool {
	r, ok := d.(interface{ Rehearsing() bool })
	return ok && r.Rehearsing()
}

// Rehearsing is always true.
func (*Rehearsal) Rehearsing() bool { return true }

// read makes a read that may be made without asking anybody.
func (r *Rehearsal) read(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	if r.guard != nil {
		switch verdict, err := r.guard.Decide(ctx, e); {
		case err != nil:
			return nil, err
		case verdict == Deny:
			return nil, denied(e)
		case verdict == Ask:
			return r.rehearse(ctx, e)
		}
	}
	r.look(e)
	return live(tool.ForPlan(ctx))
}

// look lists a read. Queries for available tools are not listed.
func (r *Rehearsal) look(e Effect) {
	switch e.Name {
	case "mcp.has", "mcp.tools", "mcp.namespaces":
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := planned(e)
	p.Number, p.Uncertain = len(r.reads)+1, r.looked
	r.reads = append(r.reads, p)
}

// given answers a read with the caller's mock.
func (r *Rehearsal) given(e Effect) ([]Value, bool) {
	answer, given := r.answer(e)
	if !given {
		return nil, false
	}
	values, err := answered(e, answer)
	if err != nil {
		return nil, false
	}
	r.mu.Lock()
	p := planned(e)
	p.Number, p.Uncertain, p.Mock = len(r.reads)+1, r.looked, answer
	r.reads = append(r.reads, p)
	r.mu.Unlock()
	return r.observed(values), true
}

// observed marks the script as uncertain as soon as it has looked into an answer. Values
// other than tables cannot be observed and count as looked at.
func (r *Rehearsal) observed(values []Value) []Value {
	for i, value := range values {
		raw, ok := value.(json.RawMessage)
		if ok && (rawjson.IsObject(raw) || len(raw) > 0 && raw[0] == '[') {
			values[i] = &Lazy{JSON: raw, Look: r.see}
		} else if value != nil {
			r.see()
		}
	}
	return values
}

// see records that the script looked into a mock.
func (r *Rehearsal) see() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looked = true
}

// overlay carries out a write in the overlay. A write that is refused is not planned.
func (r *Rehearsal) overlay(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	p := planned(e)
	if e.file != nil {
		p.before = e.file()
	}
	values, err := live(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case e.file == nil:
		r.add(p, nil)
	case !r.extend(p, e.file()):
		p.changes(e.file())
		r.add(p, nil)
	}
	return values, nil
}

// changes completes the entry of a change of a file.
func (p *Planned) changes(after fileState) {
	p.Diff = fileDiff(after.path, p.before.content, after.content)
	if !after.there { // it was removed
		return
	}
	p.Bytes = after.size
	if p.Effect == "fs.append" {
		p.Bytes -= p.before.size
	}
	p.Action = fmt.Sprintf("%s (%s)", p.change, plural.Count(p.Bytes, "byte"))
}

// extend adds a write to the last entry if that writes the same file: opening a file,
// writing to it and closing it is one change. mu is held.
func (r *Rehearsal) extend(p Planned, after fileState) bool {
	if len(r.plan) == 0 {
		return false
	}
	last := &r.plan[len(r.plan)-1]
	if last.before.path != p.before.path || last.Uncertain != r.looked || !isWrite(last.Effect) || !isWrite(p.Effect) {
		return false
	}
	if p.Effect != "fs.append" {
		last.Arguments = p.Arguments
	}
	last.changes(after)
	last.Digest += " " + p.Digest
	return true
}

func isWrite(effect string) bool { return effect == "fs.write" || effect == "fs.append" }

// rehearse checks the effect, plans it and answers it with a mock.
func (r *Rehearsal) rehearse(ctx context.Context, e Effect) ([]Value, error) {
	if e.check != nil {
		if err := e.check(ctx); err != nil && !r.mayBeMade(err) {
			return nil, err
		}
	}
	answer, given := r.answer(e)
	if !given {
		answer = r.mock(ctx, e)
	}
	if e.function().Starts {
		return r.start(e, answer), nil
	}
	values, err := answered(e, answer)
	if err != nil {
		return nil, err
	}
	p := planned(e)
	r.showFile(ctx, e, &p)
	r.mu.Lock()
	r.add(p, answer)
	r.mu.Unlock()
	return r.observed(values), nil
}

// mayBeMade reports whether a refusal may be due to a made-up answer, such as the hash of
// a script or the id of a job that were not stored.
func (r *Rehearsal) mayBeMade(refusal error) bool {
	code := fault.CodeOf(refusal)
	return r.Mocked() && (code == fault.InvalidParams || code == fault.NotFound)
}

// add appends an entry to the plan; mu is held.
func (r *Rehearsal) add(p Planned, mock json.RawMessage) {
	p.Number, p.Uncertain, p.Mock = len(r.plan)+1, r.looked, mock
	r.plan = append(r.plan, p)
}

// answer returns the caller's mock for an effect.
func (r *Rehearsal) answer(e Effect) (json.RawMessage, bool) {
	for _, name := range []string{title(e.Name, e.Args), e.DisplayName()} {
		if answer, given := r.answers[name]; given {
			return answer, true
		}
	}
	return nil, false
}

// mock makes up an answer; nil if the effect has none.
func (r *Rehearsal) mock(ctx context.Context, e Effect) json.RawMessage {
	if e.Name == callEffect || e.Name == startCallEffect {
		return Sample(r.outputOf(ctx, e))
	}
	if mock := e.function().Mock; mock != "" {
		return json.RawMessage(mock)
	}
	return nil
}

// answered converts a mock to the values of the effect's answer.
func answered(e Effect, mock json.RawMessage) ([]Value, error) {
	if mock == nil {
		return nil, nil
	}
	if mocked := e.function().Mocked; mocked != nil {
		return mocked(Args{Func: e.Name, Values: e.Args}, mock)
	}
	return []Value{mock}, nil
}

// ReadMock decodes a mock that is a table.
func ReadMock(args Args, mock json.RawMessage, into any) error {
	if err := json.Unmarshal(mock, into); err != nil {
		return fault.New(fault.InvalidParams, "the mock for %s has the wrong type: %v", ShownName(args.Func), err).
			WithHint(`give http.request {"status": 200, "headers": {}, "body": "…"} and run_command {"status": 0, "stdout": "…", "stderr": ""}`)
	}
	return nil
}

// finder is a source that finds one tool without listing all.
type finder interface {
	Find(ctx context.Context, ref tool.Ref) (info tool.Info, ok bool)
}

// outputOf returns the output schema of the tool that e calls, otherwise the one that was
// learned from its results, or nil.
func (r *Rehearsal) outputOf(ctx context.Context, e Effect) json.RawMessage {
	ref := calledTool(e)
	if s, ok := r.tools.(interface {
		OutputOf(ctx context.Context, ref tool.Ref) json.RawMessage
	}); ok {
		return s.OutputOf(ctx, ref)
	}
	if f, ok := r.tools.(finder); ok {
		info, _ := f.Find(ctx, ref)
		return info.Output
	}
	if r.tools == nil {
		return nil
	}
	infos, err := r.tools.Tools(ctx)
	if err != nil {
		return nil
	}
	for i := range infos {
		if infos[i].Ref == ref {
			return infos[i].Output
		}
	}
	return nil
}

// Plan returns what the script would have done, in order.
func (r *Rehearsal) Plan() []Planned {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Planned{}, r.plan...)
}

// Reads returns the reads that were carried out.
func (r *Rehearsal) Reads() []Planned {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Planned{}, r.reads...)
}

// Certain reports whether the script would do the same live: it made every entry of its
// plan before it looked into a mock.
func (r *Rehearsal) Certain() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.plan {
		if p.Uncertain {
			return false
		}
	}
	return true
}

// Mocked reports whether the script looked into a mock: then its output and result may
// differ in a live run.
func (r *Rehearsal) Mocked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.looked
}

var _ Handler = (*Rehearsal)(nil)

// overlayContents is a store of contents for rehearsals: it holds what would be stored in
// memory, over the real store.
type overlayContents struct {
	Contents
	limit int64

	mu   sync.Mutex
	held map[cas.Ref]overlayContent
}

type overlayContent struct {
	Content
	data []byte
}

func newOverlayContents(c Contents, limit int64) Contents {
	return &overlayContents{Contents: c, limit: limit, held: map[cas.Ref]overlayContent{}}
}

// Put computes the hash and holds the content in memory.
func (c *overlayContents) Put(_ context.Context, r io.Reader, about Stored) (Content, error) {
	data, err := io.ReadAll(io.LimitReader(r, c.limit+1))
	if err != nil {
		return Content{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limit -= int64(len(data)); c.limit < 0 {
		return Content{}, fault.New(fault.Limit, "the rehearsal stores more than it may hold in memory")
	}
	one := overlayContent{Content{Hash: cas.Sum(data), Size: int64(len(data)), MIME: about.MIME}, data}
	c.held[one.Hash] = one
	return one.Content, nil
}

// Find looks in memory first.
func (c *overlayContents) Find(ctx context.Context, hash string) (Content, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	short := strings.TrimPrefix(strings.TrimPrefix(hash, cas.Scheme), "//")
	for ref, one := range c.held {
		if len(short) >= 12 && strings.HasPrefix(ref.String(), short) {
			return one.Content, nil
		}
	}
	return c.Contents.Find(ctx, hash)
}

// Open looks in memory first.
func (c *overlayContents) Open(ctx context.Context, hash cas.Ref) (io.ReadCloser, error) {
	c.mu.Lock()
	one, held := c.held[hash]
	c.mu.Unlock()
	if held {
		return io.NopCloser(bytes.NewReader(one.data)), nil
	}
	return c.Contents.Open(ctx, hash)
}

// overlayKV is a KV for rehearsals: it holds what would be stored or deleted in memory,
// over the real one. Nothing expires.
type overlayKV struct {
	KV

	mu   sync.Mutex
	held map[string]json.RawMessage // nil means deleted
}

func newOverlayKV(k KV) KV { return &overlayKV{KV: k, held: map[string]json.RawMessage{}} }

// Get looks in memory first.
func (o *overlayKV) Get(ctx context.Context, key string) (json.RawMessage, error) {
	o.mu.Lock()
	value, held := o.held[key]
	o.mu.Unlock()
	if held {
		return value, nil
	}
	return o.KV.Get(ctx, key)
}

func (o *overlayKV) put(key string, value json.RawMessage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held[key] = value
}

// Set checks the value as the store does and holds it in memory.
func (o *overlayKV) Set(_ context.Context, key string, value json.RawMessage, _ time.Duration) error {
	if err := kv.Check(key, value); err != nil {
		return err
	}
	o.put(key, value)
	return nil
}

// Delete remembers that the value is gone.
func (o *overlayKV) Delete(ctx context.Context, key string) (bool, error) {
	value, err := o.Get(ctx, key)
	if err == nil {
		o.put(key, nil)
	}
	return value != nil, err
}

// Swap compares with what Get returns.
func (o *overlayKV) Swap(ctx context.Context, key string, c kv.Change) (bool, error) {
	value, err := o.Get(ctx, key)
	if err == nil {
		err = kv.Check(key, c.New)
	}
	if err != nil || !kv.Equal(value, c.Old) {
		return false, err
	}
	o.put(key, c.New)
	return true, nil
}

// List merges what is held with what is stored.
func (o *overlayKV) List(ctx context.Context, prefix string) ([]KVEntry, error) {
	stored, err := o.KV.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	all := map[string]KVEntry{}
	for _, e := range stored {
		all[e.Key] = e
	}
	for key, value := range o.held {
		if delete(all, key); value != nil && strings.HasPrefix(key, prefix) {
			all[key] = KVEntry{Key: key, Value: value}
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b KVEntry) int { return strings.Compare(a.Key, b.Key) }), nil
}

// start plans a job that would be started. The script gets a made-up id, which tells it
// nothing; it looks into a mock when it asks for the job's result.
func (r *Rehearsal) start(e Effect, mock json.RawMessage) []Value {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(planned(e), mock)
	id := fmt.Sprintf("planned-%d", len(r.plan))
	if r.started == nil {
		r.started = map[string]json.RawMessage{}
	}
	r.started[id] = mock
	return []Value{id}
}

// resultOf answers a question for the result of a job that was only planned.
func (r *Rehearsal) resultOf(e Effect) ([]Value, bool) {
	id, _ := argument(e, 0).(string)
	r.mu.Lock()
	defer r.mu.Unlock()
	mock, ok := r.started[id]
	if e.Name != resultEffect || !ok {
		return nil, false
	}
	r.looked = true
	if mock == nil {
		return []Value{nil, "complete"}, true
	}
	return []Value{mock, "complete"}, true
}

// The effects that start a job which calls a tool, and ask for the result of one.
const (
	startCallEffect = "tools.mcp_call"
	resultEffect    = "tools.mcp_result"
)
