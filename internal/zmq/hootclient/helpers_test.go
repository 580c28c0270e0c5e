package hootclient_test

import (
	"context"
	"encoding/json"
	"testing"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/zmq/hootclient"
	"github.com/luanette/luanette/internal/zmq/hootproto"
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(clocktest.Settled(m)) }

// backend is a ROUTER whose messages the test reads and writes, so that it can do what a
// hootserver never does.
type backend struct {
	*testing.T
	socket *zmtp.Socket
}

func listen(t *testing.T) backend {
	t.Helper()
	socket, err := zmtp.Listen(t.Context(), zmtp.Router, "tcp://127.0.0.1:0", zmtp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(socket.Close)
	return backend{t, socket}
}

func (b backend) dial(opts hootclient.Options) *hootclient.Client {
	b.Helper()
	c, err := hootclient.Dial(b.Context(), b.socket.Addr(), opts)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	return c
}

// next returns the next message of the client, which must be of that command.
func (b backend) next(command hootproto.Command) hootproto.Message {
	b.Helper()
	frames, err := b.socket.Recv(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	m, err := hootproto.Parse(frames)
	if err != nil || m.Command != command {
		b.Fatalf("received a %s, want a %s (%v)", m.Command, command, err)
	}
	return m
}

// send sends a message with a JSON body, if there is one, to the peer that it names.
func (b backend) send(m hootproto.Message, body any) {
	b.Helper()
	if body != nil {
		var err error
		if m, err = m.With(hootproto.JSON, body); err != nil {
			b.Fatal(err)
		}
	}
	if err := b.socket.Send(b.Context(), m.Frames()); err != nil {
		b.Fatal(err)
	}
}

// ready answers the client's Ready with a catalog and returns the error that the client
// got.
func (b backend) ready(c *hootclient.Client, catalog any) error {
	b.Helper()
	done := make(chan error, 1)
	go func() {
		_, _, err := c.Ready(b.Context())
		done <- err
	}()
	b.send(b.next(hootproto.Ready).Answer(hootproto.Ready), catalog)
	return <-done
}

// outcome is how a call ended.
type outcome struct {
	hootproto.Outcome
	err error
}

// call starts a call.
func call(ctx context.Context, c *hootclient.Client, name string) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		got, err := c.Call(ctx, hootclient.ToolCall{ID: hootproto.NewID(), Name: name, Arguments: json.RawMessage(`{"n":1}`)})
		done <- outcome{got, err}
	}()
	return done
}

// text is the outcome of a call that succeeded.
func text(s string) hootproto.Outcome {
	return hootproto.Outcome{Output: hootproto.ToolOutput{Text: s}}
}
