// Package backend serves tools to Luanette from Go functions, over ZeroMQ. A backend is
// a program of its own, on this machine or another one; Luanette finds its tools,
// exposes them over MCP and reconnects when the backend restarts.
//
//	type Greeting struct {
//		Name string `json:"name" jsonschema:"whom to greet"`
//	}
//
//	b := backend.New("greeter", backend.Options{Listen: "tcp://127.0.0.1:5580"})
//	backend.Add(b, backend.Tool{Name: "greet", Description: "Greet a person", ReadOnly: true},
//		func(ctx context.Context, in Greeting) (string, error) {
//			return "Hello, " + in.Name + "!", nil
//		})
//	log.Fatal(b.Serve(ctx))
//
// The package does what docs/backends.md asks of a backend: it lists the tools, runs
// calls concurrently, answers heartbeats while they run, cancels calls whose callers
// gave up, and ends without losing a call.
package backend

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/toolset"
	"github.com/luanette/luanette/internal/zmq/hootproto"
	"github.com/luanette/luanette/internal/zmq/hootserver"
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

// Options configure a backend. The zero value listens on tcp://127.0.0.1:5580.
type Options struct {
	// Listen is where Luanette connects to: tcp://HOST:PORT or ipc://PATH. Without CURVE
	// it should be an address that only this machine can reach.
	Listen string
	// Broadcasts is where progress and events are published; empty means the port after
	// that of Listen, or its path with an ending.
	Broadcasts string

	// SecretKey turns CURVE on: connections are encrypted, and clients must know its
	// public key. `luanette backend keygen` makes a pair.
	SecretKey string
	// ClientKeys are the public keys of the clients that are allowed; empty allows every
	// client that knows the public key of SecretKey.
	ClientKeys []string

	// MaxCalls limits the calls that run at a time; further ones are refused. Zero means
	// 1024.
	MaxCalls int
	// Grace is how long running calls may take to finish when the backend ends; zero
	// means two seconds.
	Grace time.Duration
	// MessagePack asks for requests in MessagePack instead of JSON.
	MessagePack bool
	// Log takes what goes wrong; nil means nothing is logged.
	Log *slog.Logger
}

// Backend is a set of tools and the sockets that serve them.
type Backend struct {
	name string
	opts Options

	mu     sync.Mutex
	tools  []toolset.Tool
	server *hootserver.Server
}

// New returns a backend without tools. The name tells people which backend it is.
func New(name string, opts Options) *Backend {
	if opts.Listen == "" {
		opts.Listen = "tcp://127.0.0.1:5580"
	}
	if opts.Broadcasts == "" {
		opts.Broadcasts = hootserver.NextEndpoint(opts.Listen)
	}
	return &Backend{name: name, opts: opts}
}

// Listen opens the sockets, so that Addr is known and clients can connect. Tools cannot
// be added any more. Serve calls it if it was not called before.
func (b *Backend) Listen(ctx context.Context) error {
	curve, err := zmtp.ServerCurve(b.opts.SecretKey, b.opts.ClientKeys)
	if err != nil {
		return fmt.Errorf("backend %s: %w", b.name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server != nil {
		return nil
	}
	b.server, err = hootserver.Listen(ctx, hootserver.Options{
		Name: b.name, Listen: b.opts.Listen, Broadcast: b.opts.Broadcasts, Curve: curve,
		Source: toolset.NewSet("", b.tools), MaxCalls: b.opts.MaxCalls, Grace: b.opts.Grace,
		OfferMsgPack: b.opts.MessagePack, Log: b.opts.Log,
	})
	if err != nil {
		return fmt.Errorf("backend %s: %w", b.name, err)
	}
	return nil
}

// Serve answers requests until ctx ends. Then it announces its end, lets running calls
// finish and closes the sockets.
func (b *Backend) Serve(ctx context.Context) error {
	if err := b.Listen(ctx); err != nil {
		return err
	}
	return b.listening().Serve(ctx)
}

// Addr is where clients connect to, once the backend listens; before, it is
// Options.Listen.
func (b *Backend) Addr() string {
	if s := b.listening(); s != nil {
		return s.Addr()
	}
	return b.opts.Listen
}

// Publish sends an event to everyone who listens: an object with a type such as
// "artifact_created" (docs/backends.md lists those that have a meaning). Events may be
// lost; before the backend listens they are.
func (b *Backend) Publish(ctx context.Context, kind string, data map[string]any) error {
	event := map[string]any{"type": kind}
	for name, value := range data {
		if name != "type" {
			event[name] = value
		}
	}
	raw, err := json.Marshal(event)
	if err != nil {
		return fmt.Errorf("publish %s: %w", kind, err)
	}
	if s := b.listening(); s != nil {
		s.Broadcast(ctx, hootproto.RawBroadcast{Type: kind, Raw: raw})
	}
	return nil
}

func (b *Backend) listening() *hootserver.Server {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.server
}

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

// Result is the output of a tool that has more than a text or data.
type Result struct {
	// Text is for people and models.
	Text string
	// Data is for programs: anything that encodes to JSON; nil means none.
	Data any
	// Attachments are images, sounds and other files.
	Attachments []Attachment
}

// Attachment is a file: its bytes, its text, or only where it is.
type Attachment struct {
	Name     string
	MimeType string
	Data     []byte
	Text     string
	URI      string
}

// Error is why a tool failed.
type Error struct {
	// Code is for programs: invalid_params, not_found, unavailable … or one of your own;
	// docs/backends.md lists the usual ones.
	Code    string
	Message string
	// Hint says what to do about it; it may be empty.
	Hint string
	// Details are data of any form; nil means none.
	Details any
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Errorf returns an error with a code.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// faultOf converts an error of a tool.
func faultOf(err error) error {
	var own *Error
	if !errors.As(err, &own) {
		return err
	}
	f := fault.New(fault.Code(own.Code), "%s", own.Message)
	if own.Hint != "" {
		f = f.WithHint("%s", own.Hint)
	}
	if own.Details != nil {
		f = f.WithDetails(own.Details)
	}
	return f
}

// resultOf converts the output of a tool.
func resultOf(out any) (tool.Result, error) {
	switch out := out.(type) {
	case string:
		return tool.Output(out, nil)
	case Result:
		return out.encode()
	case interface{ Text() string }:
		return tool.Output(out.Text(), out)
	}
	raw, err := tool.Encode(out)
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Output(string(raw), raw)
}

func (r Result) encode() (tool.Result, error) {
	result, err := tool.Output(r.Text, r.Data)
	if err != nil || len(r.Attachments) == 0 {
		return result, err
	}
	view, err := result.View()
	if err != nil {
		return result, err
	}
	for _, a := range r.Attachments {
		block, err := tool.Encode(a.block())
		if err != nil {
			return result, err
		}
		view.Content = append(view.Content, block)
	}
	result.Raw, err = tool.Encode(view)
	return result, err
}

// block is the attachment as a content block, which hootserver converts.
func (a Attachment) block() map[string]any {
	meta := map[string]string{"luanette/name": a.Name}
	kind, _, _ := strings.Cut(a.MimeType, "/")
	data := base64.StdEncoding.EncodeToString(a.Data)
	switch {
	case len(a.Data) > 0 && (kind == "image" || kind == "audio"):
		return map[string]any{"type": kind, "mimeType": a.MimeType, "data": data, "_meta": meta}
	case len(a.Data) == 0 && a.Text == "" && a.URI != "":
		return map[string]any{"type": "resource_link", "uri": a.URI, "name": a.Name, "mimeType": a.MimeType}
	}
	resource := map[string]any{"uri": a.URI, "mimeType": a.MimeType, "_meta": meta}
	if len(a.Data) > 0 {
		resource["blob"] = data
	} else {
		resource["text"] = a.Text
	}
	return map[string]any{"type": "resource", "resource": resource}
}
