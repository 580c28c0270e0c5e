package host

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// Rehearsal is a door that touches nothing: what only looks at the world is done,
// everything else is written into a plan. A file that would be written is kept
// aside, where the script finds it again; what is beyond us is answered with a
// mock. Waiting takes no time. It is safe for concurrent use.
type Rehearsal struct {
	tools   tool.Source
	answers map[string]json.RawMessage

	mu     sync.Mutex
	plan   []Planned
	reads  []Planned
	mocked bool // the script was told something made up
}

// NewRehearsal mocks tools by their output schemas, which tools knows; it may be
// nil. answers are mocks given by the caller, under the name of a tool
// ("github.create_issue") or of an effect ("http.request", "run_command").
func NewRehearsal(tools tool.Source, answers map[string]json.RawMessage) *Rehearsal {
	return &Rehearsal{tools: tools, answers: answers}
}

type pretendingKey struct{}

// pretending tells that an effect is to be done aside.
func pretending(ctx context.Context) bool { return ctx.Value(pretendingKey{}) != nil }

// Handle does the effect when it changes nothing, else plans it.
func (r *Rehearsal) Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	ctx = context.WithValue(ctx, pretendingKey{}, true)
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
		return r.aside(ctx, e, live)
	default:
		return r.pretend(ctx, e)
	}
}

// Rehearsing tells whether a door does nothing for real, or has stopped to.
func Rehearsing(d Handler) bool {
	r, ok := d.(interface{ Rehearsing() bool })
	return ok && r.Rehearsing()
}

// Rehearsing is always true.
func (*Rehearsal) Rehearsing() bool { return true }

// look notes a read. That a script asks which tools there are is not worth a line.
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

// given answers a read with what the caller wants it to see.
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

// overlay writes a file where nobody else sees it. What would be refused is refused
// and not planned.
func (r *Rehearsal) aside(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	values, err := live(ctx)
	if err != nil {
		return nil, err
	}
	r.add(planned(e), nil)
	return values, nil
}

// pretend plans the effect and makes up its answer.
func (r *Rehearsal) pretend(ctx context.Context, e Effect) ([]Value, error) {
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

// answer is the mock that the caller gave for an effect.
func (r *Rehearsal) answer(e Effect) (json.RawMessage, bool) {
	for _, name := range []string{title(e.Name, e.Args), e.DisplayName()} {
		if answer, given := r.answers[name]; given {
			return answer, true
		}
	}
	return nil, false
}

// mock makes an answer up; nil when the effect answers nothing.
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

// The effects that answer with several values: a program run, a request sent.
const (
	runEffect  = "__run"
	httpEffect = "http.request"
)

// answered is a mock as the values that the effect would answer with.
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
		_ = json.Unmarshal(out.Body, &body) // what is no string is given as JSON
		return []Value{out.Status, out.Headers, body, argument(e, 1)}, nil
	default:
		return []Value{mock}, nil
	}
}

func readMock(e Effect, mock json.RawMessage, into any) error {
	if err := json.Unmarshal(mock, into); err != nil {
		return fault.New(fault.InvalidParams, "the mock for %s does not fit: %v", e.DisplayName(), err).
			WithHint(`give http.request {"status": 200, "headers": {}, "body": "…"} and run_command {"status": 0, "stdout": "…", "stderr": ""}`)
	}
	return nil
}

// finder is a source that can look up one tool without listing all.
type finder interface {
	Find(ctx context.Context, ref tool.Ref) (info tool.Info, ok bool)
}

// outputOf is the output schema of the tool that e calls, or nil.
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

// Plan is what the script would have done, in its order.
func (r *Rehearsal) Plan() []Planned {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Planned{}, r.plan...)
}

// Reads is what it looked at for real.
func (r *Rehearsal) Reads() []Planned {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Planned{}, r.reads...)
}

// Certain tells whether the script would do the same for real: nothing in its
// plan came after a mock that it could have looked at.
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

// Mocked tells whether the script was told anything made up: then its output and
// result may be others for real.
func (r *Rehearsal) Mocked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mocked
}

var _ Handler = (*Rehearsal)(nil)
