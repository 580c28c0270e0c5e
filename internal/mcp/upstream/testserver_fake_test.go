package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// fake is a legacy server in memory, reached by URLs of the scheme "fake". It
// needs no network, so that tests can use virtual time.
type fake struct {
	// handle answers what the fake does not answer itself; nil answers {}.
	handle func(ctx context.Context, m wire.Message) (json.RawMessage, error)
	mu     sync.Mutex
	// dialling, if set, is called before a connection is made.
	dialling func(ctx context.Context, attempt int) error
	down     error // why it cannot be reached
	dials    int
	links    map[*fakeLink]bool
	tools    string
	answers  chan wire.Message  // gets what clients answer
	sent     func(wire.Message) // called with notifications and answers of clients; may be nil
}

func newFake() *fake {
	return &fake{links: map[*fakeLink]bool{}, tools: `{"tools":[` +
		`{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},` +
		`{"name":"write","inputSchema":{"type":"object"}}]}`}
}

func (f *fake) options() upstream.Options {
	return upstream.Options{Dialers: map[string]upstream.Dialer{"fake": f.dial}}
}

func (f *fake) dial(ctx context.Context, _ upstream.Spec, hooks upstream.Hooks) (upstream.Transport, error) {
	f.mu.Lock()
	f.dials++
	attempt, down, dialling := f.dials, f.down, f.dialling
	f.mu.Unlock()
	if dialling != nil {
		if err := dialling(ctx, attempt); err != nil {
			return nil, err
		}
	}
	if down != nil {
		return nil, fmt.Errorf("%w: %w", upstream.ErrNotSent, down)
	}
	l := &fakeLink{server: f, hooks: hooks, done: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.links[l] = true
	return l, nil
}

// drop cuts all connections; err, if not nil, prevents new ones.
func (f *fake) drop(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = err
	for l := range f.links {
		l.cut(errors.New("cut"))
	}
	clear(f.links)
}

func (f *fake) onDial(dialling func(ctx context.Context, attempt int) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dialling = dialling
}

func (f *fake) attempts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dials
}

// notify sends a notification on all connections.
func (f *fake) notify(method string, params json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for l := range f.links {
		l.hooks.Received("", wire.Notification(method, params))
	}
}

// ask sends a request on all connections; to gets the answer.
func (f *fake) ask(m wire.Message, to chan wire.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = to
	for l := range f.links {
		l.hooks.Received("", m)
	}
}

func (f *fake) list(tools string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tools = tools
}

type fakeLink struct {
	server *fake
	hooks  upstream.Hooks
	done   chan struct{}
	once   sync.Once
	err    error
}

func (l *fakeLink) Call(ctx context.Context, out upstream.Outgoing) (wire.Message, error) {
	m := out.Message
	select {
	case <-l.done:
		return wire.Message{}, fmt.Errorf("%w: %w", upstream.ErrNotSent, l.err)
	default:
	}
	answer := make(chan wire.Message, 1)
	go func() {
		result, err := l.server.answer(ctx, m)
		if ctx.Err() == nil { // or the call has ended, perhaps because the link was cut
			answer <- wire.Answer(m.ID, result, err)
		}
	}()
	select {
	case a := <-answer:
		return a, nil
	case <-ctx.Done():
		return wire.Message{}, context.Cause(ctx)
	case <-l.done:
		return wire.Message{}, l.err
	}
}

func (f *fake) answer(ctx context.Context, m wire.Message) (json.RawMessage, error) {
	switch m.Method {
	case wire.MethodDiscover:
		return nil, wire.Errorf(wire.CodeMethodNotFound, "no")
	case wire.MethodInitialize:
		return json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"fake","version":"1"}}`), nil
	case wire.MethodToolsList:
		f.mu.Lock()
		defer f.mu.Unlock()
		return json.RawMessage(f.tools), nil
	}
	if f.handle == nil {
		return json.RawMessage(`{"content":[]}`), nil
	}
	return f.handle(ctx, m)
}

func (l *fakeLink) Send(_ context.Context, m wire.Message) error {
	l.server.mu.Lock()
	to := l.server.answers
	l.server.mu.Unlock()
	if m.IsResponse() && to != nil {
		to <- m
	}
	if l.server.sent != nil {
		l.server.sent(m)
	}
	return nil
}

func (l *fakeLink) SetRevision(string)      {}
func (l *fakeLink) Traits() upstream.Traits { return upstream.Traits{} }
func (l *fakeLink) Done() <-chan struct{}   { return l.done }
func (l *fakeLink) Err() error              { return l.err }
func (l *fakeLink) Close()                  { l.cut(errors.New("closed")) }

func (l *fakeLink) cut(err error) {
	l.once.Do(func() {
		l.err = err
		close(l.done)
	})
}
