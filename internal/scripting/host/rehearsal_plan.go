package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/plural"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/base/textdiff"
	"github.com/luanette/luanette/internal/core/tool"
)

// Planned is one effect in a plan: a change that the script would make, or a read that
// it made.
type Planned struct {
	Number    int             `json:"number"` // 1, 2, 3 … among changes or among reads
	Effect    string          `json:"effect" jsonschema:"such as mcp.call or fs.write"`
	Action    string          `json:"action"`                         // "call github.create_issue", "write notes.txt"
	Arguments json.RawMessage `json:"arguments,omitempty" schema:"-"` // as a list, or the tool's own
	Bytes     int             `json:"bytes" jsonschema:"size of what it writes into a file, or of its arguments"`
	Mock      json.RawMessage `json:"mock,omitempty" schema:"-"` // the answer the script got instead
	Diff      string          `json:"diff,omitempty" jsonschema:"of the text file it changes, as a unified diff"`
	// Unread says why there is no Diff, although a tool changes a file.
	Unread string `json:"unread,omitempty" schema:"-"`
	// Uncertain is set if the script looked into a mock before: with the real answer it
	// may do something else here.
	Uncertain bool `json:"uncertain,omitempty" jsonschema:"true when the script had looked into a made-up answer before"`

	Digest string `json:"-"` // of the effect; several, separated by spaces, of an entry that stands for several effects

	change string    // Action without a size
	before fileState // the file it changes, before
}

// Line returns the entry as a line of a list.
func (p Planned) Line() string {
	line := fmt.Sprintf("%d. would %s", p.Number, p.Action)
	if p.Effect == callEffect && len(p.Arguments) > 0 {
		line += " " + Shown(p.Arguments)
	}
	if p.Uncertain {
		line += " (uncertain)"
	}
	return line
}

// PlanText lists a plan, with what each entry changes below it, and says how reliable it
// is.
func PlanText(plan []Planned) string { return planText(plan, Planned.Line) }

// PlanWhole is PlanText with all of the arguments.
func PlanWhole(plan []Planned) string { return planText(plan, Planned.whole) }

func planText(plan []Planned, line func(Planned) string) string {
	if len(plan) == 0 {
		return "Nothing would be changed."
	}
	var lines []string
	uncertain := false
	for _, p := range plan {
		lines = append(lines, line(p))
		if p.Diff != "" {
			lines = append(lines, indented(strings.TrimSuffix(p.Diff, "\n")))
		}
		if p.Unread != "" {
			lines = append(lines, indented("what it changes is not shown: "+p.Unread))
		}
		uncertain = uncertain || p.Uncertain
	}
	if uncertain {
		lines = append(lines, "Entries marked uncertain follow a made-up answer that the script looked into.")
	}
	return strings.Join(lines, "\n")
}

func indented(text string) string { return "   " + strings.ReplaceAll(text, "\n", "\n   ") }

// whole is Line with all of the arguments below it.
func (p Planned) whole() string {
	arguments := p.Arguments
	p.Arguments = nil
	if len(arguments) == 0 {
		return p.Line()
	}
	var out bytes.Buffer
	if json.Indent(&out, arguments, "", "  ") != nil {
		return p.Line() + "\n" + indented(string(arguments))
	}
	return p.Line() + "\n" + indented(out.String())
}

// DisplayName returns the effect's name as scripts write it: "git.commit", "fs.write",
// "run_command".
func (e Effect) DisplayName() string {
	if e.Name == callEffect {
		return calledTool(e).String()
	}
	return ShownName(e.Name)
}

// shownNames are the effects of functions that only preludes call, by the function that
// a script calls. A step of a journal has nothing but its name.
var shownNames = map[string]string{
	"__run":         "run_command",
	"__background":  "background",
	"__print":       "print",
	"os.__now":      "os.time",
	"events.__want": "on",
	"events.__hook": "on",
	"events.__next": "events.wait",
	"parallel.land": "parallel.wait",
}

// ShownName returns the name of an effect for people.
func ShownName(effect string) string {
	if name, ok := shownNames[effect]; ok {
		return name
	}
	return effect
}

// Tool returns the tool an effect calls; ok is false if it calls none.
func (e Effect) Tool() (ref tool.Ref, ok bool) {
	if e.Name != callEffect {
		return tool.Ref{}, false
	}
	return calledTool(e), true
}

// CalledTool returns the tool that the arguments of a call name.
func CalledTool(args Args) tool.Ref { return calledTool(Effect{Args: args.Values}) }

// calledTool returns the tool that e calls, directly or through one that relays calls.
func calledTool(e Effect) tool.Ref {
	space, _ := argument(e, 0).(string)
	name, _ := argument(e, 1).(string)
	direct := tool.Ref{Space: space, Name: name}
	if !direct.IsRelay() {
		return direct
	}
	if ref, _, ok := RelayedCall(Args{Values: e.Args}); ok {
		return ref
	}
	return direct
}

// RelayedCall returns the tool that a relaying tool calls, with its arguments; ok is false
// if the call is not one of such a tool.
func RelayedCall(args Args) (ref tool.Ref, arguments json.RawMessage, ok bool) {
	raw, _ := args.At(3).(json.RawMessage)
	var relayed struct {
		Name      string
		Arguments json.RawMessage
	}
	space, _ := args.At(1).(string)
	name, _ := args.At(2).(string)
	if !(tool.Ref{Space: space, Name: name}).IsRelay() || json.Unmarshal(raw, &relayed) != nil {
		return ref, nil, false
	}
	if space, name, ok := strings.Cut(strings.TrimPrefix(relayed.Name, "mcp."), "."); ok {
		return tool.Ref{Space: space, Name: name}, relayed.Arguments, true
	}
	return tool.Ref{Name: relayed.Name}, relayed.Arguments, true
}

// Digest identifies an effect: two effects have the same digest if their names and
// arguments are equal.
func (e Effect) Digest() string { return digest(e.Name, e.Args) }

// Digest returns the digest of the effect the step records.
func (s Step) Digest() string { return digest(s.Name, s.Args) }

func digest(name string, args []Value) string {
	var w writer
	w.text(name)
	w.values(args, storedArg)
	sum := sha256.Sum256(w.data)
	return hex.EncodeToString(sum[:16])
}

// planned describes an effect for people.
func planned(e Effect) Planned {
	p := Planned{Effect: e.Name, Action: action(e), Digest: e.Digest()}
	p.change = p.Action
	rest := e.Args
	if e.Name == callEffect && len(rest) >= 2 {
		rest = rest[2:]
		if len(rest) == 1 {
			if raw, ok := rest[0].(json.RawMessage); ok {
				p.Arguments, p.Bytes = bounded(raw), len(raw)
				return p
			}
		}
	}
	list := make([]any, len(rest))
	for i, arg := range rest {
		p.Bytes += size(arg)
		switch arg := arg.(type) {
		case string:
			list[i] = short(arg)
		case json.RawMessage:
			list[i] = bounded(arg)
		default:
			list[i] = arg
		}
	}
	if raw, err := json.Marshal(list); err == nil && len(list) > 0 {
		p.Arguments = raw
	}
	return p
}

// maxDiff is the size of a diff in a plan, in bytes.
const maxDiff = 8 << 10

// fileDiff returns what an effect changes in a text file.
func fileDiff(path string, before, after []byte) string {
	if !utf8.Valid(before) || !utf8.Valid(after) || bytes.IndexByte(before, 0) >= 0 || bytes.IndexByte(after, 0) >= 0 {
		return ""
	}
	diff := textdiff.Unified(path, before, after)
	if len(diff) > maxDiff {
		return redact.Cut(diff, maxDiff) + fmt.Sprintf("\n… %d bytes", len(diff))
	}
	return diff
}

// action says what the effect would do.
func action(e Effect) string {
	if e.Name == callEffect {
		return "call " + e.DisplayName()
	}
	if say := e.function().Action; say != nil {
		return say(Args{Func: e.Name, Values: e.Args})
	}
	if len(e.Args) == 0 {
		return e.Name
	}
	return e.Name + " " + Shown(argument(e, 0))
}

// Sized says how large a text is.
func Sized(v Value) string {
	if v == nil {
		return ""
	}
	return " (" + plural.Count(size(v), "byte") + ")"
}

func argument(e Effect, i int) Value {
	if i >= len(e.Args) {
		return nil
	}
	return e.Args[i]
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
		return strings.ToValidUTF8(text, "�")
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:most], ""), len(text))
}

// bounded shortens a large table to the beginning of its text.
func bounded(raw json.RawMessage) json.RawMessage {
	if len(raw) <= largest {
		return raw
	}
	text, _ := json.Marshal(short(string(raw))) // strings always encode
	return text
}

// Inspection is a Handler for inspecting a script, as when describe() is called. Nothing
// reaches the world: what scripts usually do at their top level is answered as Func.Inspected
// says, everything else is refused. It is safe for concurrent use.
type Inspection struct {
	deny    denyHandler
	varied  atomic.Bool
	refused atomic.Int64
}

// NewInspection makes an Inspection; doing says in errors why an effect is refused.
func NewInspection(doing string) *Inspection { return &Inspection{deny: denyHandler{doing}} }

// Varied reports whether the script used something that may be different the next time:
// the time, or an environment variable.
func (i *Inspection) Varied() bool { return i.varied.Load() }

// Refused returns how many effects were refused.
func (i *Inspection) Refused() int64 { return i.refused.Load() }

// Handle answers the effect without a change.
func (i *Inspection) Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	f := e.function()
	switch {
	case e.Name == seedEffect:
		return []Value{int64(1)}, nil
	case f.Varies:
		i.varied.Store(true)
		return live(ctx)
	case f.Inspectable:
		return live(ctx)
	case f.Inspected != nil:
		return f.Inspected(Args{Func: e.Name, Values: e.Args}), nil
	case e.Kind == Observe:
		return nil, nil
	default:
		i.refused.Add(1)
		return i.deny.Handle(ctx, e, live)
	}
}

var _ Handler = (*Inspection)(nil)
