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
	files  map[string]*string // files it would have written by now, nil for removed
	mocked bool               // a mock with something in it was given to the script
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
	return &Rehearsal{tools: tools, answers: answers, files: map[string]*string{}}
}

// Pass does the effect when it changes nothing, else plans it.
func (r *Rehearsal) Pass(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	switch e.Kind {
	case Observe, Moment:
		return live(ctx)
	case Read:
		if values, pretended := r.lookup(e); pretended {
			return values, nil
		}
		return live(ctx)
	default:
		return r.pretend(ctx, e), nil
	}
}

// lookup notes a read, and answers it when it is of a file that the script would
// have written before.
func (r *Rehearsal) lookup(e Effect) ([]Value, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := planned(e)
	p.Number, p.Uncertain = len(r.reads)+1, r.mocked
	r.reads = append(r.reads, p)
	content, known := r.files[pathOf(e)]
	if !known {
		return nil, false
	}
	switch e.Name {
	case "fs.read", "read_file":
		if content != nil {
			return []Value{*content}, true
		}
	case "fs.exists", "temp.exists":
		return []Value{content != nil}, true
	}
	return nil, false
}

// remember keeps what the file would hold now. What is added to a file that is
// there for real is not known as a whole, and not kept.
func (r *Rehearsal) remember(e Effect) {
	text, _ := argument(e, 1).(string)
	switch e.Name {
	case "fs.write", "write_file":
		r.files[pathOf(e)] = &text
	case "fs.append":
		if before := r.files[pathOf(e)]; before != nil {
			text = *before + text
			r.files[pathOf(e)] = &text
		}
	case "fs.remove", "temp.remove":
		r.files[pathOf(e)] = nil
	}
}

func pathOf(e Effect) string {
	path, _ := argument(e, 0).(string)
	return path
}

func argument(e Effect, i int) Value {
	if i >= len(e.Args) {
		return nil
	}
	return e.Args[i]
}

func (r *Rehearsal) pretend(ctx context.Context, e Effect) []Value {
	p := planned(e)
	values := r.mock(ctx, e)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remember(e)
	p.Number, p.Uncertain = len(r.plan)+1, r.mocked
	if len(values) > 0 {
		r.mocked = true
		if len(values) == 1 {
			p.Mock, _ = values[0].(json.RawMessage)
		}
	}
	r.plan = append(r.plan, p)
	return values
}

// mock is what the script is told; nil when the effect answers nothing.
func (r *Rehearsal) mock(ctx context.Context, e Effect) []Value {
	if answer, given := r.answers[title(e.Name, e.Args)]; given {
		return []Value{answer}
	}
	switch e.Name {
	case callEffect:
		return []Value{Sample(r.outputOf(ctx, e))}
	case runEffect:
		return []Value{int64(0), "", ""} // status and what it printed
	case httpEffect:
		return []Value{int64(200), json.RawMessage("{}"), "", argument(e, 1)}
	default:
		return nil
	}
}

// The effects that answer with several values: a program run, a request sent.
const (
	runEffect  = "__run"
	httpEffect = "http.request"
)

// finder is a source that can look up one tool without listing all.
type finder interface {
	Find(ctx context.Context, ref tool.Ref) (info tool.Info, ok bool)
}

// outputOf is the output schema of the tool that e calls, or nil.
func (r *Rehearsal) outputOf(ctx context.Context, e Effect) json.RawMessage {
	space, _ := argument(e, 0).(string)
	name, _ := argument(e, 1).(string)
	ref := tool.Ref{Space: space, Name: name}
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
	case e.Name == runEffect:
		return fmt.Sprintf("run %v %s", argument(e, 0), show(argument(e, 1)))
	case e.Name == httpEffect:
		return fmt.Sprintf("send %v %v", argument(e, 0), argument(e, 1))
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
