package backend_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/backend"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/zmq/hootclient"
	"github.com/luanette/luanette/internal/zmq/hootproto"
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(clocktest.Settled(m)) }

type numbers struct {
	A int  `json:"a" jsonschema:"the first"`
	B *int `json:"b,omitempty" jsonschema:"the second"`
}

type sum struct {
	Sum int `json:"sum"`
}

func (s sum) Text() string { return "the sum" }

// serve serves a backend for the length of a test and connects to it.
func serve(t *testing.T, opts backend.Options, curve *zmtp.Curve, add func(*backend.Backend)) *hootclient.Client {
	t.Helper()
	opts.Listen, opts.Broadcasts = "tcp://127.0.0.1:0", "tcp://127.0.0.1:0"
	b := backend.New("test", opts)
	add(b)
	if err := b.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- b.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	c, err := hootclient.Dial(t.Context(), b.Addr(), hootclient.Options{Curve: curve})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func call(t *testing.T, c *hootclient.Client, name, args string) hootproto.Outcome {
	t.Helper()
	outcome, err := c.Call(t.Context(), hootclient.ToolCall{ID: hootproto.NewID(), Name: name, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return outcome
}

// addAll adds a tool of each kind.
func addAll(b *backend.Backend) {
	backend.Add(b, backend.Tool{Name: "add", Description: "Adds", ReadOnly: true}, func(_ context.Context, in numbers) (sum, error) {
		if in.B == nil {
			return sum{}, &backend.Error{Code: "odd", Message: "b is missing", Hint: "give b", Details: map[string]int{"a": in.A}}
		}
		return sum{in.A + *in.B}, nil
	})
	backend.Add(b, backend.Tool{Name: "say", Destructive: true}, func(context.Context, struct{}) (string, error) { return "hello", nil })
	backend.Add(b, backend.Tool{Name: "fail"}, func(context.Context, struct{}) (string, error) { return "", errors.New("broken") })
	backend.Add(b, backend.Tool{Name: "files"}, func(context.Context, struct{}) (backend.Result, error) {
		return backend.Result{Text: "two", Data: []int{2}, Attachments: []backend.Attachment{
			{Name: "a.txt", MimeType: "text/plain", Text: "a"}, {Name: "b.png", MimeType: "image/png", Data: []byte{1}}, {Name: "c", URI: "https://c"},
		}}, nil
	})
}

func TestTools(t *testing.T) {
	t.Parallel()
	for _, packed := range []bool{false, true} {
		c := serve(t, backend.Options{MessagePack: packed}, nil, addAll)
		catalog, service, err := c.Ready(t.Context())
		if err != nil || service != "test" || len(catalog.Tools) != 4 || catalog.AcceptsMsgPack != packed || c.Protocol() != hootproto.Hoot02 {
			t.Fatalf("catalog %+v of %s: %v", catalog, service, err)
		}
		if add := catalog.Tools[0]; add.Name != "add" || !add.ReadOnly || add.Destructive || !strings.Contains(string(add.InputSchema), `"the first"`) || !strings.Contains(string(add.OutputSchema), `"sum"`) {
			t.Errorf("add is listed as %+v", add)
		}
		if got := call(t, c, "add", `{"a":1,"b":2}`); got.Err != nil || got.Output.Text != "the sum" || string(got.Output.Data) != `{"sum":3}` {
			t.Errorf("add: %+v", got)
		}
		if e := call(t, c, "add", `{"a":1}`).Err; e == nil || e.Code != "odd" || e.Hint != "give b" || string(e.Details) != `{"a":1}` {
			t.Errorf("add without b: %+v", e)
		}
		if e := call(t, c, "add", `{"a":"x"}`).Err; e == nil || e.Code != "invalid_params" {
			t.Errorf("add x: %+v", e)
		}
		if got := call(t, c, "say", `{}`); got.Output.Text != "hello" || got.Output.Data != nil {
			t.Errorf("say: %+v", got)
		}
		if e := call(t, c, "fail", `{}`).Err; e == nil || e.Code != "internal_error" || e.Message != "broken" {
			t.Errorf("fail: %+v", e)
		}
		got := call(t, c, "files", `{}`)
		if a := got.Output.Attachments; got.Output.Text != "two" || string(got.Output.Data) != "[2]" || len(a) != 3 ||
			a[0].Name != "a.txt" || a[0].Text != "a" || a[1].Name != "b.png" || string(a[1].Data) != "\x01" || a[2].URI != "https://c" || a[2].Name != "c" {
			t.Errorf("files: %+v", got)
		}
		if err := c.Heartbeat(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Progress and logs reach those who listen, and a call whose caller gives up ends.
func TestProgressAndCancel(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	c := serve(t, backend.Options{}, nil, func(b *backend.Backend) {
		backend.Add(b, backend.Tool{Name: "wait"}, func(ctx context.Context, _ struct{}) (string, error) {
			for ctx.Err() == nil { // broadcasts before the subscription are lost
				backend.Progress(ctx, 1, 4, "a quarter")
				backend.Log(ctx, "info", "waiting")
				if err := b.Publish(ctx, "news", map[string]any{"n": 1, "type": "forged"}); err != nil {
					return "", err
				}
			}
			ended <- context.Cause(ctx)
			return "", ctx.Err()
		})
	})
	catalog, _, err := c.Ready(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan hootproto.RawBroadcast, 1<<16)
	if err := c.Subscribe(t.Context(), catalog.Broadcasts, func(b hootproto.RawBroadcast) {
		select {
		case received <- b:
		default:
		}
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	id := hootproto.NewID()
	done := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, hootclient.ToolCall{ID: id, Name: "wait"})
		done <- err
	}()
	want := map[string]string{
		"progress": `{"type":"progress","job_id":"` + id.String() + `","percent":0.25,"message":"a quarter","done":1,"total":4}`,
		"log":      `{"type":"log","level":"info","message":"waiting","source":"","job_id":"` + id.String() + `"}`,
		"news":     `{"n":1,"type":"news"}`,
	}
	for len(want) > 0 {
		b := <-received
		if text, missing := want[b.Type]; missing && string(b.Raw) != text {
			t.Errorf("received %s, want %s", b.Raw, text)
		}
		delete(want, b.Type)
	}
	cancel()
	if err := <-ended; err == nil || <-done == nil {
		t.Errorf("the call ended with %v", err)
	}
}

func TestCurve(t *testing.T) {
	t.Parallel()
	server, client := zmtp.NewSecretKey(), zmtp.NewSecretKey()
	c := serve(t, backend.Options{SecretKey: server.Text(), ClientKeys: []string{client.Public().Text()}},
		&zmtp.Curve{Secret: client, Server: server.Public()}, addAll)
	if got := call(t, c, "say", `{}`); got.Output.Text != "hello" {
		t.Errorf("say: %+v", got)
	}
	if err := backend.New("x", backend.Options{SecretKey: "short"}).Serve(t.Context()); err == nil || !strings.Contains(err.Error(), "key") {
		t.Errorf("a bad key: %v", err)
	}
}

// Mistakes in the program show when it starts.
func TestAddPanics(t *testing.T) {
	t.Parallel()
	say := func(context.Context, struct{}) (string, error) { return "", nil }
	for want, add := range map[string]func(b *backend.Backend){
		"letters, digits, _ or -": func(b *backend.Backend) { backend.Add(b, backend.Tool{Name: "a b"}, say) },
		"two tools are named a": func(b *backend.Backend) {
			backend.Add(b, backend.Tool{Name: "a"}, say)
			backend.Add(b, backend.Tool{Name: "a"}, say)
		},
		"while the backend listens": func(b *backend.Backend) {
			if err := b.Listen(t.Context()); err != nil {
				t.Fatal(err)
			}
			backend.Add(b, backend.Tool{Name: "a"}, say)
		},
	} {
		func() {
			ctx, cancel := context.WithCancel(t.Context())
			b := backend.New("x", backend.Options{Listen: "tcp://127.0.0.1:0"})
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, want) {
					t.Errorf("panicked with %q, want %q", text, want)
				}
				cancel()
				if err := b.Serve(ctx); err != nil {
					t.Error(err)
				}
			}()
			add(b)
		}()
	}
}
