package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Step is one journal entry: an effect and its outcome.
type Step struct {
	Seq  int64 // the effect's number
	Name string
	Kind Kind
	Args []Value // large ones as a Digest
	At   time.Time
	Boot string // the process that began it, if that was recorded beforehand

	Done   bool    // the outcome is known; otherwise the process died during the effect
	Values []Value // the outcome, or
	Err    *fault.Error
}

// InDoubt reports whether it is unknown if the step, which changes something, was carried out.
func (s Step) InDoubt() bool { return !s.Done && s.Kind == Write }

// Assume returns the step as carried out. A call of a tool has the result, others have none.
func (s Step) Assume(result json.RawMessage) Step {
	s.Done = true
	if s.Called() {
		if len(result) == 0 {
			result = json.RawMessage("{}")
		}
		s.Values = []Value{result}
	}
	return s
}

// Digest replaces a large argument in a journal. Arguments are only compared.
type Digest struct {
	Size int
	Sum  [sha256.Size]byte
}

// String shows the size and the beginning of the hash.
func (d Digest) String() string { return fmt.Sprintf("<%d bytes %x…>", d.Size, d.Sum[:6]) }

// largest is the size in bytes up to which a journal stores an argument itself.
const largest = 16 << 10

// storedArg returns an argument as a journal stores it.
func storedArg(v Value) Value {
	switch v := v.(type) {
	case string:
		if len(v) > largest {
			return Digest{len(v), sha256.Sum256([]byte(v))}
		}
	case json.RawMessage:
		if len(v) > largest {
			return Digest{len(v), sha256.Sum256(v)}
		}
	}
	return v
}

// Title names the step for people: a tool call by its tool.
func (s Step) Title() string { return title(s.Name, s.Args) }

// Call returns the step as it would be written in a script, shortened.
func (s Step) Call() string { return written(s.Name, s.Args) }

func title(name string, args []Value) string {
	if name == callEffect && len(args) >= 2 {
		return fmt.Sprintf("%v.%v", args[0], args[1])
	}
	return ShownName(name)
}

func written(name string, args []Value) string {
	rest := args
	if name == callEffect && len(args) >= 2 {
		rest = args[2:]
	}
	shown := make([]string, len(rest))
	for i, arg := range rest {
		shown[i] = Shown(arg)
	}
	return title(name, args) + "(" + strings.Join(shown, ", ") + ")"
}

// callEffect is the effect of every tool call: its arguments are the namespace, the tool
// and the tool's arguments.
const callEffect = "mcp.call"

func Shown(v Value) string {
	const most = 200
	text := ""
	switch v := v.(type) {
	case nil:
		text = "nil"
	case string:
		text = fmt.Sprintf("%q", v)
	case json.RawMessage:
		text = string(v)
	default:
		text = fmt.Sprint(v)
	}
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + fmt.Sprintf("… (%d bytes)", len(text))
	}
	return text
}

// matches reports whether e is the effect that the step recorded.
func (s Step) matches(e Effect) bool {
	return s.Name == e.Name && slices.EqualFunc(s.Args, e.Args, func(a, b Value) bool { return same(a, storedArg(b)) })
}

func same(a, b Value) bool {
	if x, ok := a.(json.RawMessage); ok {
		y, ok := b.(json.RawMessage)
		return ok && bytes.Equal(x, y)
	}
	if x, ok := a.(float64); ok && math.IsNaN(x) {
		y, ok := b.(float64)
		return ok && math.IsNaN(y)
	}
	return a == b
}

// The encodings of a step in a record.
const (
	formIntent  = '?' // begun, outcome unknown
	formOutcome = '=' // begun and done
	formSettled = '!' // done; begun by an earlier intent
)

// appendStep appends a step to a record.
func appendStep(record []byte, form byte, s Step) []byte {
	w := writer{record}
	w.byte(form)
	w.int(s.Seq)
	w.int(s.At.UnixMilli())
	if form != formSettled {
		w.text(s.Name)
		w.byte(byte(s.Kind))
		w.values(s.Args, storedArg)
		w.text(s.Boot)
	}
	if form != formIntent {
		w.fault(s.Err)
		w.values(s.Values, func(v Value) Value { return v })
	}
	return w.data
}

// WriteJournal encodes steps that have an outcome, for ReadJournal.
func WriteJournal(steps []Step) []byte {
	journal := []byte{}
	for _, s := range steps {
		journal = appendStep(journal, formOutcome, s)
	}
	return journal
}

// ReadJournal decodes the records of a Journal, in their order: first the steps with an
// outcome, in the order of their outcomes, then those without.
func ReadJournal(records ...[]byte) ([]Step, error) {
	var steps []Step
	var begun []Step
	for _, record := range records {
		r := reader{data: record}
		for len(r.data) > 0 && r.err == nil {
			form, step := r.step()
			if form == formIntent {
				begun = append(begun, step)
				continue
			}
			if i := slices.IndexFunc(begun, func(b Step) bool { return b.Seq == step.Seq }); form == formSettled && i >= 0 {
				first := begun[i]
				step.Name, step.Kind, step.Args, step.Boot = first.Name, first.Kind, first.Args, first.Boot
				begun = slices.Delete(begun, i, i+1)
			}
			step.Done = true
			steps = append(steps, step)
		}
		if r.err != nil {
			return nil, fault.Wrap(fault.Internal, r.err, "read journal")
		}
	}
	return append(steps, begun...), nil
}

// writer encodes values. Strings may hold any bytes.
type writer struct{ data []byte }

func (w *writer) byte(b byte) { w.data = append(w.data, b) }

func (w *writer) int(n int64) { w.data = binary.AppendVarint(w.data, n) }

func (w *writer) text(s string) {
	w.int(int64(len(s)))
	w.data = append(w.data, s...)
}

func (w *writer) values(values []Value, as func(Value) Value) {
	w.int(int64(len(values)))
	for _, v := range values {
		w.value(as(v))
	}
}

func (w *writer) value(v Value) {
	switch v := v.(type) {
	case bool:
		if v {
			w.byte('t')
		} else {
			w.byte('f')
		}
	case int64:
		w.byte('i')
		w.int(v)
	case float64:
		w.byte('d')
		w.data = binary.BigEndian.AppendUint64(w.data, math.Float64bits(v))
	case string:
		w.byte('s')
		w.text(v)
	case json.RawMessage:
		w.byte('j')
		w.text(string(v))
	case Digest:
		w.byte('h')
		w.int(int64(v.Size))
		w.data = append(w.data, v.Sum[:]...)
	default:
		w.byte('n')
	}
}

func (w *writer) fault(f *fault.Error) {
	if f == nil {
		w.byte('-')
		return
	}
	w.byte('+')
	w.text(string(f.Code))
	w.text(f.Error())
	w.text(fault.HintOf(f))
	w.text(string(f.Details))
}

// reader decodes what a writer wrote. It keeps the first error.
type reader struct {
	data []byte
	err  error
}

func (r *reader) step() (form byte, s Step) {
	form = r.byte()
	s.Seq, s.At = r.int(), time.UnixMilli(r.int())
	switch form {
	case formIntent, formOutcome:
		s.Name, s.Kind, s.Args, s.Boot = r.text(), Kind(r.byte()), r.values(), r.text()
	case formSettled:
	default:
		r.fail("unknown form %q", form)
	}
	if form != formIntent {
		s.Err, s.Values = r.fault(), r.values()
	}
	if s.Kind > Nested {
		r.fail("unknown kind %d", s.Kind)
	}
	return form, s
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	r.data = nil
}

func (r *reader) take(n int64) []byte {
	if n < 0 || n > int64(len(r.data)) {
		r.fail("record ends too early")
		return nil
	}
	taken := r.data[:n]
	r.data = r.data[n:]
	return taken
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) int() int64 {
	n, size := binary.Varint(r.data)
	if size <= 0 {
		r.fail("record ends too early")
		return 0
	}
	r.data = r.data[size:]
	return n
}

func (r *reader) text() string { return string(r.take(r.int())) }

func (r *reader) values() []Value {
	n := r.int()
	if n < 0 || n > int64(len(r.data)) {
		r.fail("record ends too early")
		return nil
	}
	values := make([]Value, n)
	for i := range values {
		values[i] = r.value()
	}
	return values
}

func (r *reader) value() Value {
	switch tag := r.byte(); tag {
	case 'n':
		return nil
	case 't', 'f':
		return tag == 't'
	case 'i':
		return r.int()
	case 'd':
		if raw := r.take(8); raw != nil {
			return math.Float64frombits(binary.BigEndian.Uint64(raw))
		}
	case 's':
		return r.text()
	case 'j':
		return json.RawMessage(r.text())
	case 'h':
		d := Digest{Size: int(r.int())}
		copy(d.Sum[:], r.take(sha256.Size))
		return d
	default:
		r.fail("unknown value %q", tag)
	}
	return nil
}

func (r *reader) fault() *fault.Error {
	if r.byte() != '+' {
		return nil
	}
	f := &fault.Error{Code: fault.Code(r.text()), Msg: r.text(), Hint: r.text()}
	if details := r.text(); details != "" {
		f.Details = json.RawMessage(details)
	}
	return f
}
