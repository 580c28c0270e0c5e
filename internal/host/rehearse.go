package host

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/luanette/luanette/internal/tool"
)

// Rehearsal is a door that touches nothing: what only looks at the world is done,
// everything else is written into a plan and answered with a mock. It is safe for
// concurrent use.
type Rehearsal struct {
	tools   tool.Source
	answers map[string]json.RawMessage

	mu     sync.Mutex
	plan   []Planned
	reads  []Planned
	mocked bool // a mock with something in it was given to the script
}

// Planned is one thing a script would have done, or did to look.
type Planned struct {
	Number    int             `json:"number"`              // 1, 2, 3 … among its kind
	Effect    string          `json:"effect"`              // "mcp.call", "fs.write"
	Action    string          `json:"action"`              // "call github.create_issue", "write notes.txt"
	Arguments json.RawMessage `json:"arguments,omitempty"` // as a list, or the tool's own
	Bytes     int             `json:"bytes"`               // how large the arguments are
	Mock      json.RawMessage `json:"mock,omitempty"`      // what the script was told instead
	// Uncertain says that a mock was given before: with the real answer the script
	// may do something else here.
	Uncertain bool `json:"uncertain,omitempty"`
}

// NewRehearsal mocks tools by their output schemas, which tools knows; it may be
// nil. answers are mocks given by the caller, under the name of a tool
// ("github.create_issue") or of an effect ("fs.write").
func NewRehearsal(tools tool.Source, answers map[string]json.RawMessage) *Rehearsal {
	return &Rehearsal{tools: tools, answers: answers}
}

// Pass does the effect when it changes nothing, else plans it.
func (r *Rehearsal) Pass(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	switch e.Kind {
	case Observe, Moment:
		return live(ctx)
	case Read:
		r.read(e)
		return live(ctx)
	default:
		return r.pretend(ctx, e), nil
	}
}

func (r *Rehearsal) read(e Effect) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := planned(e)
	p.Number, p.Uncertain = len(r.reads)+1, r.mocked
	r.reads = append(r.reads, p)
}

func (r *Rehearsal) pretend(ctx context.Context, e Effect) []Value {
	p := planned(e)
	p.Mock = r.mock(ctx, e)
	r.mu.Lock()
	defer r.mu.Unlock()
	p.Number, p.Uncertain = len(r.plan)+1, r.mocked
	r.plan = append(r.plan, p)
	if p.Mock == nil {
		return nil
	}
	r.mocked = true
	return []Value{p.Mock}
}

// mock is what the script is told; nil when the effect answers nothing.
func (r *Rehearsal) mock(ctx context.Context, e Effect) json.RawMessage {
	if answer, given := r.answers[title(e.Name, e.Args)]; given {
		return answer
	}
	if e.Name != callEffect {
		return nil
	}
	return Sample(r.outputOf(ctx, e))
}

// outputOf is the output schema of the tool that e calls, or nil.
func (r *Rehearsal) outputOf(ctx context.Context, e Effect) json.RawMessage {
	if r.tools == nil {
		return nil
	}
	infos, err := r.tools.Tools(ctx)
	if err != nil {
		return nil
	}
	for i := range infos {
		if infos[i].Ref.String() == title(e.Name, e.Args) {
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

// planned describes an effect for people.
func planned(e Effect) Planned {
	p := Planned{Effect: e.Name, Action: action(e)}
	rest := e.Args
	if e.Name == callEffect && len(rest) >= 2 {
		rest = rest[2:]
		if len(rest) == 1 {
			if raw, ok := rest[0].(json.RawMessage); ok {
				p.Arguments, p.Bytes = raw, len(raw)
				return p
			}
		}
	}
	list := make([]any, len(rest))
	for i, arg := range rest {
		p.Bytes += size(arg)
		list[i] = arg
		if text, ok := arg.(string); ok {
			list[i] = short(text)
		}
	}
	if raw, err := json.Marshal(list); err == nil && len(list) > 0 {
		p.Arguments = raw
	}
	return p
}

// action says what the effect would do, most telling first.
func action(e Effect) string {
	switch {
	case e.Name == callEffect:
		return "call " + title(e.Name, e.Args)
	case e.Kind == Read && len(e.Args) > 0:
		return fmt.Sprintf("%s %v", e.Name, show(e.Args[0]))
	case len(e.Args) > 1:
		if text, ok := e.Args[1].(string); ok {
			return fmt.Sprintf("%s %s (%d bytes)", e.Name, show(e.Args[0]), len(text))
		}
		return fmt.Sprintf("%s %s", e.Name, show(e.Args[0]))
	case len(e.Args) == 1:
		return fmt.Sprintf("%s %s", e.Name, show(e.Args[0]))
	default:
		return e.Name
	}
}

func size(v Value) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case json.RawMessage:
		return len(v)
	default:
		return len(fmt.Sprint(v))
	}
}

// short cuts a long text so that plans stay readable.
func short(text string) string {
	const most = 2000
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", text[:most], len(text))
}

var _ Door = (*Rehearsal)(nil)
