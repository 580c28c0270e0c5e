package js

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	iter "maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
)

// Error is an exception that a script did not catch, or a syntax error. Positions are
// those of the source as it was written, TypeScript included.
type Error struct {
	Name    string  // "TypeError"; "" if the thrown value is not an Error
	Message string  // without the name
	Code    string  // its property code: the fault's code for errors of the host
	Hint    string  // what to do about it, if known
	Func    string  // the host function that raised it; "" if none
	Static  bool    // the source was refused and did not run
	Stack   []Frame // innermost first; empty if unknown
}

// Frame is one level of a stack.
type Frame struct {
	Function string // "" at the top level
	File     string
	Line     int // from 1
	Column   int // from 1
}

// Error reads "TypeError: x is not a function (script.js:3:5)".
func (e *Error) Error() string {
	var b strings.Builder
	if e.Name != "" {
		b.WriteString(e.Name + ": ")
	}
	b.WriteString(e.Message)
	if len(e.Stack) > 0 {
		b.WriteString(" (" + e.Stack[0].position() + ")")
	}
	return b.String()
}

func (f Frame) position() string { return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column) }

// String reads "at name (script.js:3:5)", as scripts see it.
func (f Frame) String() string {
	if f.Function == "" {
		return "at " + f.position()
	}
	return "at " + f.Function + " (" + f.position() + ")"
}

// frameLine matches a line of a stack: a function with its position, or a position.
var frameLine = lazyregexp.New(`^\s*at (?:(.*) \()?(.*?):(\d+)(?::(\d+))?\)?$`)

// parseStack parses a stack as the engine writes it. It omits frames of the prelude and of
// native functions, and maps positions to the original source.
func parseStack(text string, maps sourceMaps) []Frame {
	var frames []Frame
	for line := range strings.Lines(text) {
		m := frameLine().FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil || ours(m[2]) {
			continue
		}
		f := Frame{Function: m[1], File: m[2]}
		f.Line, _ = strconv.Atoi(m[3])
		f.Column, _ = strconv.Atoi(m[4])
		if f.Function == "<eval>" && maps[f.File].wraps() {
			continue // the function that wraps the script
		}
		if f.Function == "<eval>" || f.Function == "<anonymous>" {
			f.Function = ""
		}
		frames = append(frames, maps.original(f))
	}
	return frames
}

// thrown returns the pending exception as an error.
func (r *run) thrown(ctx context.Context) error {
	reason, err := r.in.exception(ctx)
	if err != nil {
		return err
	}
	return errors.Join(r.failure(ctx, reason), r.in.freeValue(ctx, reason))
}

// rejected returns the reason of a rejected promise as an error.
func (r *run) rejected(ctx context.Context, promise value) error {
	reason, err := r.in.call(ctx, fnPromiseResult, r.in.context, uint64(promise))
	if err != nil {
		return err
	}
	return errors.Join(r.failure(ctx, value(reason)), r.in.freeValue(ctx, value(reason)))
}

// failure converts a thrown JavaScript value to an error.
func (r *run) failure(ctx context.Context, reason value) error {
	if r.watch.stopped() {
		return r.stopped(ctx, r.where(ctx, reason))
	}
	e, err := r.describe(ctx, reason)
	if err != nil {
		return err
	}
	if r.starved(e) {
		return r.outOfMemory(e)
	}
	if e.Hint == "" {
		e.Hint = hintFor(e)
	}
	return (&fault.Error{Code: fault.Script, Err: e}).WithHint("%s", e.Hint)
}

// describe reads an error with the prelude.
func (r *run) describe(ctx context.Context, reason value) (*Error, error) {
	v, err := r.in.invoke(ctx, r.in.describe, reason)
	if err != nil {
		return nil, err
	}
	if v.isException() {
		if r.watch.stopped() {
			return nil, r.stopped(ctx, nil)
		}
		return &Error{Message: unreadable}, nil
	}
	text, err := r.in.text(ctx, v, 1<<20)
	if err != nil {
		return nil, err
	}
	var body struct{ Name, Message, Stack, Code, Hint, Func string }
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		return nil, fmt.Errorf("read the script's error: %w", err)
	}
	e := &Error{Name: body.Name, Message: body.Message, Code: body.Code, Hint: body.Hint, Func: body.Func}
	e.Stack = parseStack(body.Stack, r.maps)
	return e, r.in.freeValue(ctx, v)
}

// where reads the stack of an interrupted script without running any of it.
func (r *run) where(ctx context.Context, reason value) []Frame {
	const tagObject = -1
	if r.in.dead || reason.tag() != tagObject {
		return nil
	}
	stack, err := r.in.property(ctx, reason, "stack")
	if err != nil || stack.isException() || stack == undefined {
		return nil
	}
	text, err := r.in.text(ctx, stack, 64<<10)
	if err != nil {
		return nil
	}
	return parseStack(text, r.maps)
}

// stopped returns why the run was stopped, and where if that is known.
func (r *run) stopped(ctx context.Context, at []Frame) error {
	where := ""
	switch {
	case len(at) > 0:
		where = " (at " + at[0].position() + ")"
	case !r.calls.idle():
		where = " (waiting for " + r.calls.names() + ")"
	}
	if r.watch.spent {
		f := fault.New(fault.Limit, "the script used up its %d steps%s", r.limits.Steps, where)
		f.Err = &Stopped{at, nil}
		return f
	}
	if !r.watch.softened.IsZero() && ctx.Err() == nil { // stop saw the deadline pass before the timer of ctx fired
		select {
		case <-ctx.Done():
		case <-time.After(grace):
		}
	}
	cause := context.Cause(ctx)
	if cause != nil && !errors.Is(cause, errTime) && !errors.Is(cause, context.DeadlineExceeded) {
		return fault.Wrap(fault.Cancelled, &Stopped{at, cause}, "the script was cancelled%s", where)
	}
	f := fault.New(fault.Timeout, "the script ran longer than %s%s", r.watch.allowed.Round(time.Millisecond), where).
		WithHint("do less in one script, or raise its time limit")
	f.Err = &Stopped{at, nil}
	return f
}

// Stopped is inside the error of a script that was stopped: where, as far as that is
// known, and the cause of its context.
type Stopped struct {
	Stack []Frame
	Cause error
}

func (s *Stopped) Error() string {
	if s.Cause == nil {
		return errTime.Error()
	}
	return s.Cause.Error()
}

func (s *Stopped) Unwrap() error { return s.Cause }

// unreadable is the message of an error whose own message cannot be read; the prelude
// uses the same text.
const unreadable = "an error that cannot be read"

// starved reports whether an error is about memory. There may not be enough memory for
// the error itself: then null is thrown, or something that cannot be read.
func (r *run) starved(e *Error) bool {
	if e.Name == "InternalError" && e.Message == "out of memory" {
		return true
	}
	return r.in.memory.refused && (e.Name == "InternalError" && e.Message == "" || e.Name == "" && (e.Message == "null" || e.Message == unreadable))
}

func (r *run) outOfMemory(cause error) error {
	if denied := r.in.memory.denied; denied != nil { // not the script's own limit
		return fault.From(denied)
	}
	return fault.Wrap(fault.Limit, &OutOfMemory{cause}, "the script used more than its %d MiB of memory", r.limits.Memory>>20).
		WithHint("keep less data at a time, or raise the memory limit")
}

// OutOfMemory is inside the error of a script that used all its memory.
type OutOfMemory struct{ Err error }

func (e *OutOfMemory) Error() string { return e.Err.Error() }
func (e *OutOfMemory) Unwrap() error { return e.Err }

// Unconvertible is inside the error of a script whose result cannot be converted to
// JSON.
type Unconvertible struct{ Err error }

func (e *Unconvertible) Error() string { return e.Err.Error() }
func (e *Unconvertible) Unwrap() error { return e.Err }

// unconvertible explains why a result could not be converted to JSON.
func (r *run) unconvertible(ctx context.Context) error {
	err := r.thrown(ctx)
	var e *Error
	if errors.As(err, &e) && fault.CodeOf(err) == fault.Script {
		return fault.Wrap(fault.Script, &Unconvertible{e}, "convert the result to JSON").
			WithHint("return plain data without cycles, and only types that JSON supports")
	}
	return err
}

// stalled is the error of a script that waits for nothing.
func (r *run) stalled() error {
	if r.in.memory.refused {
		return r.outOfMemory(errNoGuestMemory) // there was no memory to continue
	}
	return fault.New(fault.Script, "the script awaits a promise that is never settled").
		WithHint("resolve the promise, or await a host function")
}

// explain converts errors of the engine: a trap is a stop, a stack overflow, memory that
// ran out, or a bug of the engine that the sandbox contained.
func (r *run) explain(ctx context.Context, err error) error {
	var f *fault.Error
	var size *overLimit
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return f
	case errors.As(err, &size):
		return fault.Wrap(fault.Limit, size, "read a value of the script").
			WithHint("return or pass less: a part, a summary, or a count")
	case r.in.dead && r.watch.stopped():
		return r.stopped(ctx, nil)
	case errors.Is(err, errNoGuestMemory), r.in.dead && r.in.memory.refused:
		return r.outOfMemory(errNoGuestMemory)
	case r.in.dead && (r.in.overflowed() || isOverflow(err)):
		return fault.New(fault.Limit, "the script's native stack overflowed").
			WithHint("nest data and calls less deeply")
	case r.in.dead:
		return fault.Wrap(fault.Internal, err, "the JavaScript engine failed inside its sandbox")
	default:
		return fault.Wrap(fault.Internal, err, "run the script")
	}
}

// isOverflow reports whether a trap is that of wazero's own stack.
func isOverflow(err error) bool { return strings.Contains(err.Error(), "stack overflow") }

// missing holds advice for names that scripts often expect.
var missing = map[string]string{
	"setTimeout":      "use await sleep(ms)",
	"setInterval":     "use a loop with await sleep(ms)",
	"setImmediate":    "use queueMicrotask(f)",
	"fetch":           "scripts have no network of their own; call a tool",
	"XMLHttpRequest":  "scripts have no network of their own; call a tool",
	"require":         "modules are not available; everything a script may use is global",
	"process":         "scripts have no access to the process",
	"Buffer":          "use Uint8Array, atob and btoa",
	"structuredClone": "use JSON.parse(JSON.stringify(x))",
	"window":          "use globalThis",
	"global":          "use globalThis",
}

func hintFor(e *Error) string {
	if strings.HasPrefix(e.Message, "could not load module") {
		return missing["require"]
	}
	name, ok := strings.CutSuffix(e.Message, " is not defined")
	if e.Name != "ReferenceError" || !ok {
		return ""
	}
	return missing[strings.Trim(name, "'")]
}

// lead is put before every source: the engine counts the columns of the first line wrongly.
const lead = "\n"

// sourceMaps map positions in the code that ran to the original sources, by file name.
// Sources that ran unchanged have no entry.
type sourceMaps map[string]sourceMap

// maxSourceMaps is the largest number of source maps that a session stores.
const maxSourceMaps = 64

// set adds, replaces or removes an entry.
func (maps sourceMaps) set(file string, m sourceMap) {
	delete(maps, file)
	if m == (sourceMap{}) {
		return
	}
	if len(maps) >= maxSourceMaps {
		delete(maps, slices.Min(slices.Collect(iter.Keys(maps))))
	}
	maps[file] = m
}

// sourceMap maps positions in one text to another. The zero value removes lead only.
type sourceMap struct {
	// Wrapped is the length of the text inserted before the first line of the code that ran.
	Wrapped int `json:"wrapped,omitempty"`
	// Mappings is in the format of source maps, revision 3; "" maps nothing.
	Mappings string `json:"mappings,omitempty"`
	// Shifted is the length of the text inserted before the first line of the source that
	// Mappings refer to.
	Shifted int `json:"shifted,omitempty"`
}

// original maps a frame to its position in the source. Frames of code that scripts create
// themselves, in files such as <input>, are unchanged.
func (maps sourceMaps) original(f Frame) Frame {
	if strings.HasPrefix(f.File, "<") {
		return f
	}
	m := maps[f.File]
	f.Line -= len(lead)
	if f.Line == 1 {
		f.Column = max(1, f.Column-m.Wrapped)
	}
	if m.Mappings != "" {
		f.Line, f.Column = m.lookup(f.Line, f.Column)
	}
	if f.Line == 1 {
		f.Column = max(1, f.Column-m.Shifted)
	}
	return f
}

// wraps reports whether the source was wrapped in a function.
func (m sourceMap) wraps() bool { return m.Wrapped+m.Shifted > 0 }

// lookup finds the last mapping at or before a position of the generated text. Lines and
// columns count from 1.
func (m sourceMap) lookup(line, column int) (int, int) {
	var d mappingDecoder
	bestLine, bestColumn := line, column
	for n, text := range strings.Split(m.Mappings, ";") {
		if n >= line {
			break
		}
		d.column = 0
		for segment := range strings.SplitSeq(text, ",") {
			if segment == "" || d.next(segment) != nil {
				continue
			}
			if n == line-1 && d.column <= column-1 {
				bestLine, bestColumn = d.sourceLine+1, d.sourceColumn+1
			}
		}
	}
	return bestLine, bestColumn
}

// mappingDecoder sums the relative numbers of a source map.
type mappingDecoder struct{ column, source, sourceLine, sourceColumn int }

func (d *mappingDecoder) next(segment string) error {
	for _, field := range []*int{&d.column, &d.source, &d.sourceLine, &d.sourceColumn} {
		if segment == "" {
			return nil // a segment may end after its column
		}
		v, rest, err := decodeVLQ(segment)
		if err != nil {
			return err
		}
		*field += v
		segment = rest
	}
	return nil
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// decodeVLQ reads one number: base-64 digits of five bits, least significant first,
// the sign in the lowest bit.
func decodeVLQ(s string) (v int, rest string, err error) {
	for i := range len(s) {
		digit := strings.IndexByte(base64Digits, s[i])
		if digit < 0 || i > 6 {
			break
		}
		v |= (digit & 31) << (5 * i)
		if digit < 32 {
			if v&1 != 0 {
				return -(v >> 1), s[i+1:], nil
			}
			return v >> 1, s[i+1:], nil
		}
	}
	return 0, "", errors.New("broken source map")
}
