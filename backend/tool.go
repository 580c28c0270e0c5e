package backend

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/toolset"
	"github.com/luanette/luanette/internal/zmq/hootproto"
)

// Tool describes a tool.
type Tool struct {
	// Name has 1 to 128 letters, digits, _ or -.
	Name string
	// Title is its name for people; it may be empty.
	Title string
	// Description says what it does, in one or two sentences, for people and models.
	Description string

	// ReadOnly says that a call changes nothing, Idempotent that two calls have the same
	// effect as one. Only such calls are repeated when a reply is lost.
	ReadOnly   bool
	Idempotent bool
	// Destructive says that a call may destroy something.
	Destructive bool
	// ClosedWorld says that it uses only data of the backend itself.
	ClosedWorld bool
}

// Add adds a tool that calls a function. In is a struct; its json tags name the
// arguments, jsonschema tags describe them, omitempty or omitzero makes them optional,
// and enum, min and max tags limit them. Out is a string, a Result, or a struct that
// becomes data; a method Text() string gives it a text for people.
//
// The context ends when the caller gives up; Progress and Log report on the call. An
// error of type *Error reaches the caller with its code, hint and details; others have
// the code internal_error.
//
// Add panics if the name is invalid or taken, or a type has no JSON schema: these are
// mistakes in the program.
func Add[In, Out any](b *Backend, t Tool, f func(ctx context.Context, in In) (Out, error)) {
	if err := (&hootproto.Tool{Name: t.Name}).Validate(); err != nil {
		panic("backend: " + err.Error())
	}
	made := toolset.DefineInfo[In](t.info(), outputType[Out](), func(ctx context.Context, call tool.Call, in In) (tool.Result, error) {
		out, err := f(withCaller(ctx, call.Caller), in)
		if err != nil {
			return tool.Result{}, faultOf(err)
		}
		return resultOf(out)
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server != nil {
		panic("backend: tool " + t.Name + " is added while the backend listens")
	}
	all := append(slices.Clip(b.tools), made)
	toolset.NewSet("", all) // panics if the name is taken
	b.tools = all
}

func (t Tool) info() tool.Info {
	return tool.Info{
		Ref: tool.Ref{Name: t.Name}, Title: t.Title, Description: t.Description,
		Hints: tool.Hints{ReadOnly: t.ReadOnly, Idempotent: t.Idempotent, NonDestructive: !t.Destructive, ClosedWorld: t.ClosedWorld},
	}
}

// outputType is the type whose schema clients are shown; nil if there is none.
func outputType[Out any]() reflect.Type {
	t := reflect.TypeFor[Out]()
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[Result]() {
		return nil
	}
	return t
}

// callerKey is the key of the caller in the context of a call.
type callerKey struct{}

func withCaller(ctx context.Context, c *tool.Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

func callerOf(ctx context.Context) *tool.Caller {
	c, _ := ctx.Value(callerKey{}).(*tool.Caller)
	if c == nil {
		return &tool.Caller{}
	}
	return c
}

// Progress reports how far the call of ctx is: done of total, in any unit. A total of
// zero means that it is unknown. Progress also extends the time that the call has.
func Progress(ctx context.Context, done, total float64, message string) {
	if report := callerOf(ctx).Progress; report != nil {
		report(tool.Progress{Progress: done, Total: total, Message: message})
	}
}

// Log sends a line to the caller. The level is that of MCP, such as info or warning.
func Log(ctx context.Context, level, message string) {
	report := callerOf(ctx).Log
	if report == nil {
		return
	}
	if raw, err := json.Marshal(message); err == nil {
		report(tool.Log{Level: level, Data: raw})
	}
}
