package host

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// Rehearsal is a Handler that changes nothing: reads are carried out, everything else is
// entered in a plan. Writes of files and contents go to an overlay, where the script can
// read them again; other effects are answered with a mock. Sleeping takes no time. It is
// safe for concurrent use.
type Rehearsal struct {
	tools   tool.Source
	answers map[string]json.RawMessage

	mu     sync.Mutex
	plan   []Planned
	reads  []Planned
	mocked bool // the script got a mock
}

// NewRehearsal mocks tools by their output schemas, which it finds in tools; tools may
// be nil. answers are mocks given by the caller, by the name of a tool
// ("github.create_issue") or of an effect ("http.request", "run_command").
func NewRehearsal(tools tool.Source, answers map[string]json.RawMessage) *Rehearsal {
	return &Rehearsal{tools: tools, answers: answers}
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
		if values, given := r.given(e); given {
			return values, nil
		}
		r.look(e)
		return live(ctx)
	case e.overlay:
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

// look lists a read. Queries for available tools are not listed.
func (r *Rehearsal) look(e Effect) {
	switch e.Name {
	case "mcp.has", "mcp.tools", "mcp.namespaces":
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := planned(e)
	p.Number, p.Uncertain = len(r.reads)+1, r.mocked
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
	defer r.mu.Unlock()
	p := planned(e)
	p.Number, p.Uncertain, p.Mock = len(r.reads)+1, r.mocked, answer
	r.reads, r.mocked = append(r.reads, p), true
	return values, true
}

// overlay carries out a write in the overlay. A write that is refused is not planned.
func (r *Rehearsal) overlay(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	values, err := live(ctx)
	if err != nil {
		return nil, err
	}
	r.add(planned(e), nil)
	return values, nil
}

// rehearse plans the effect and answers it with a mock.
func (r *Rehearsal) rehearse(ctx context.Context, e Effect) ([]Value, error) {
	answer, given := r.answer(e)
	if !given {
		answer = r.mock(ctx, e)
	}
	values, err := answered(e, answer)
	if err != nil {
		return nil, err
	}
	r.add(planned(e), answer)
	return values, nil
}

func (r *Rehearsal) add(p Planned, mock json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.Number, p.Uncertain, p.Mock = len(r.plan)+1, r.mocked, mock
	r.mocked = r.mocked || mock != nil
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
	switch e.Name {
	case callEffect:
		return Sample(r.outputOf(ctx, e))
	case runEffect:
		return json.RawMessage(`{"status":0,"stdout":"","stderr":""}`)
	case httpEffect:
		return json.RawMessage(`{"status":200,"headers":{},"body":""}`)
	case "tools.mcp_remove":
		return json.RawMessage("true")
	default:
		return nil
	}
}

// The effects whose answer has several values.
const (
	runEffect  = "__run"
	httpEffect = "http.request"
)

// answered converts a mock to the values of the effect's answer.
func answered(e Effect, mock json.RawMessage) ([]Value, error) {
	if mock == nil {
		return nil, nil
	}
	switch e.Name {
	case runEffect:
		var out struct {
			Status         int64
			Stdout, Stderr string
		}
		err := readMock(e, mock, &out)
		return []Value{out.Status, out.Stdout, out.Stderr}, err
	case httpEffect:
		var out struct {
			Status  int64
			Headers json.RawMessage
			Body    json.RawMessage
		}
		if err := readMock(e, mock, &out); err != nil {
			return nil, err
		}
		if out.Status == 0 {
			out.Status = 200
		}
		if out.Headers == nil {
			out.Headers = json.RawMessage("{}")
		}
		body := string(out.Body)
		_ = json.Unmarshal(out.Body, &body) // a body that is not a string is given as JSON
		return []Value{out.Status, out.Headers, body, argument(e, 1)}, nil
	default:
		return []Value{mock}, nil
	}
}

func readMock(e Effect, mock json.RawMessage, into any) error {
	if err := json.Unmarshal(mock, into); err != nil {
		return fault.New(fault.InvalidParams, "the mock for %s has the wrong type: %v", e.DisplayName(), err).
			WithHint(`give http.request {"status": 200, "headers": {}, "body": "…"} and run_command {"status": 0, "stdout": "…", "stderr": ""}`)
	}
	return nil
}

// finder is a source that finds one tool without listing all.
type finder interface {
	Find(ctx context.Context, ref tool.Ref) (info tool.Info, ok bool)
}

// outputOf returns the output schema of the tool that e calls, or nil.
func (r *Rehearsal) outputOf(ctx context.Context, e Effect) json.RawMessage {
	ref := calledTool(e)
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

// Certain reports whether the script would do the same live: no entry of its plan
// follows a mock.
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

// Mocked reports whether the script got a mock: then its output and result may differ in
// a live run.
func (r *Rehearsal) Mocked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mocked
}

var _ Handler = (*Rehearsal)(nil)
