package lua

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Options configure a state. The zero value is a state without output.
type Options struct {
	// Stdout takes what print and io write. Nil discards it.
	Stdout io.Writer
	// Stderr takes warnings. Nil discards them.
	Stderr io.Writer
	// Stdin is what io.read reads. Nil is empty.
	Stdin io.Reader
	// Loader finds modules for require. Nil finds none.
	Loader Loader
	// Seed seeds math.random, so that a host can replay a run. Zero draws a
	// random seed.
	Seed uint64
	// BinaryChunks lets load accept what string.dump wrote. Off, such chunks
	// are refused.
	BinaryChunks bool
}

// Loader finds the source of a module. It returns the text of the chunk and
// the name for its error messages (beginning with "@" for a file), or ok =
// false and a message such as "\n\tno file 'x.lua'" that tells where it looked.
type Loader func(ctx context.Context, module string) (source, chunkname string, ok bool, err error)

// State is an independent Lua interpreter: globals, libraries, threads, budgets.
// It is used by one goroutine at a time.
type State struct {
	globals *Table
	loaded  *Table // what require keeps
	preload *Table
	// registry is the table debug.getregistry shows.
	registry *Table
	main     *Thread
	cur      *Thread // running
	libs     []*Library
	// strings are the interned constants of chunks compiled here.
	strings map[string]*Str
	// metas are the metatables of types that have one for all their values.
	metas   [kindLight + 1]*Table
	account account
	// depth counts host functions that call back into Lua, and parsers.
	// handlers counts message handlers that are running.
	handlers   int
	depth      int
	freeCall   *Call
	lastID     uint32
	opts       Options
	warnings   warnings
	gc         collector
	gcSettings gcSettings
	// random is the generator of math.random; forks and snapshots carry it.
	random random
	// patterns are those compiled last; nil until the first.
	patterns *patternCache
	// nextFunction is the next of the base library, for pairs.
	nextFunction Value
	// traps is code that stops at each instruction, for hooks.
	traps []instruction
	// trapped is set while the instruction a hook has seen is still to run.
	trapped bool
	// values of libraries, by their own keys; see Store.
	store map[any]any
}

// New returns a state without any library.
func New(opts Options) *State {
	s := &State{globals: NewTable(0, 0), loaded: NewTable(0, 0), opts: opts}
	s.main = newThread(s)
	s.main.status = running
	s.cur = s.main
	s.account.memoryNext = s.nextMeasure()
	s.account.ctx = context.Background()
	s.loaded.makeEntries(entryCap(12)) // the libraries there are
	_ = s.loaded.setStr(nil, setupNames["_G"], s.globals.Value())
	return s
}

// Globals returns the table of global variables.
func (s *State) Globals() *Table { return s.globals }

// Options returns what the state was made with.
func (s *State) Options() Options { return s.opts }

// StringMetatable returns the metatable all strings share, or nil.
func (s *State) StringMetatable() *Table { return s.metas[KindString] }

// SetStringMetatable sets the metatable all strings share.
func (s *State) SetStringMetatable(t *Table) { s.metas[KindString] = t }

// Stored returns what a library keeps with the state under a key of its own
// type, or nil. Forks carry it if it is a Forker, snapshots do not.
func (s *State) Stored(key any) any { return s.store[key] }

// Store keeps a Go value of a library with the state.
func (s *State) Store(key, value any) {
	if s.store == nil {
		s.store = map[any]any{}
	}
	s.store[key] = value
}

// stdout, stderr and stdin never return nil.
func (s *State) stdout() io.Writer {
	if s.opts.Stdout == nil {
		return io.Discard
	}
	return s.opts.Stdout
}

func (s *State) stderr() io.Writer {
	if s.opts.Stderr == nil {
		return io.Discard
	}
	return s.opts.Stderr
}

func (s *State) stdin() io.Reader {
	if s.opts.Stdin == nil {
		return eof{}
	}
	return s.opts.Stdin
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// intern returns the one string object the state uses for the constant text.
// Library names come first, so that field accesses find them by identity.
func (s *State) intern(text string) *Str {
	if o := s.strings[text]; o != nil {
		return o
	}
	o := s.libraryName(text)
	if o == nil {
		o = newConstant(text)
	}
	if s.strings == nil {
		s.strings = map[string]*Str{}
	}
	s.strings[text] = o
	return o
}

func (s *State) libraryName(text string) *Str {
	if o := eventNames[text]; o != nil {
		return o
	}
	if o := setupNames[text]; o != nil {
		return o
	}
	key := Str{header: header{kind: KindString}, s: text}
	for _, l := range s.libs {
		if l.name == text && l.name != "" {
			return l.key
		}
		if e := l.template.findStr(&key); e != nil {
			return e.k.str()
		}
	}
	return nil
}

// identify returns v's number, giving it one at the first time.
func (s *State) identify(v Value) uint32 {
	slot := idSlot(v)
	if slot == nil {
		return 0
	}
	if *slot == 0 {
		s.lastID++
		*slot = s.lastID
	}
	return *slot
}

// tostring formats v without metamethods, numbering objects.
func (s *State) tostring(v Value) string {
	if id := s.identify(v); id != 0 {
		return formatObject(v, id)
	}
	return v.String()
}

// Error is an error raised by a script or by the engine on its behalf.
type Error struct {
	// Value is the error object: any value but usually a string that begins
	// with the position.
	Value Value
	// Traceback tells where the error was raised. It is filled in when the
	// error leaves the state through State.Call.
	Traceback string
	// Cause is the Go error a host function returned, if it did.
	Cause error
	// handled is set once a message handler has seen the error.
	handled bool
}

// Error returns the message as the standalone interpreter prints it.
func (e *Error) Error() string {
	if s, ok := e.Value.AsString(); ok {
		return s
	}
	if e.Value.isNumber() {
		return e.Value.String()
	}
	return fmt.Sprintf("(error object is a %s value)", e.Value.TypeName())
}

// Unwrap returns the host's error, if one is the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Throw returns an error that raises v as it is.
func Throw(v Value) error { return &Error{Value: v} }

// Limit says which budget ran out.
type Limit string

// The budgets.
const (
	LimitSteps    Limit = "steps"
	LimitMemory   Limit = "memory"
	LimitReserve  Limit = "reserve" // of memory that several states share
	LimitDeadline Limit = "deadline"
	LimitContext  Limit = "context"
)

// BudgetError is returned when a budget of the state runs out or its context
// is done. Scripts can neither catch nor delay it.
type BudgetError struct {
	Limit Limit
	// Used and Allowed are in steps or bytes; both are 0 for other limits.
	Used, Allowed int64
	// Traceback tells where the script was.
	Traceback string
	// Cause is the context's or the reserve's error, if that was it.
	Cause error
}

// Error says what ran out.
func (e *BudgetError) Error() string {
	switch e.Limit {
	case LimitSteps:
		return fmt.Sprintf("script used up its %d steps", e.Allowed)
	case LimitMemory:
		return fmt.Sprintf("script needs more than its %d bytes of memory", e.Allowed)
	case LimitReserve:
		return fmt.Sprintf("script gets no more memory: %v", e.Cause)
	case LimitDeadline:
		return "script ran past its deadline"
	}
	return fmt.Sprintf("script was cancelled: %v", e.Cause)
}

// Unwrap returns the context's error, if that was the cause.
func (e *BudgetError) Unwrap() error { return e.Cause }

// isFatal reports errors no protected call may swallow.
func isFatal(err error) bool {
	if _, ok := err.(*Error); ok || err == nil { //nolint:errorlint // nearly always; wrapped ones follow
		return false
	}
	var budget *BudgetError
	var exit *ExitError
	return errors.As(err, &budget) || errors.As(err, &exit)
}

// asError returns the *Error that err is or wraps, or makes one of its text.
func (s *State) asError(err error) *Error {
	if e, ok := err.(*Error); ok { //nolint:errorlint // nearly always; wrapped ones follow
		return e
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Value: String(err.Error()), Cause: err}
}
