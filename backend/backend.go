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
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

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
