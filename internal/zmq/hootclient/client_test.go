package hootclient_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/zmq/hootclient"
	"github.com/luanette/luanette/internal/zmq/hootproto"
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

func TestDialFails(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it never answers the handshake
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	errForbidden := errors.New("forbidden")
	errGaveUp := errors.New("gave up")
	ended, end := context.WithCancelCause(t.Context())
	end(errGaveUp)
	for name, c := range map[string]struct {
		ctx      context.Context
		endpoint string
		opts     hootclient.Options
		want     error
	}{
		"no listener": {t.Context(), "tcp://127.0.0.1:1", hootclient.Options{}, syscall.ECONNREFUSED},
		"no endpoint": {t.Context(), "http://127.0.0.1:1", hootclient.Options{}, nil},
		"cancelled":   {ended, "tcp://" + silent.Addr().String(), hootclient.Options{}, errGaveUp},
		"forbidden":   {t.Context(), "tcp://" + silent.Addr().String(), hootclient.Options{Control: func(string, string, syscall.RawConn) error { return errForbidden }}, errForbidden},
	} {
		client, err := hootclient.Dial(c.ctx, c.endpoint, c.opts)
		if client != nil || !errors.Is(err, hootclient.ErrNotSent) || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// A client that is closed says so to the backend, and fails its pending calls: whether
// they were executed is unknown.
func TestClose(t *testing.T) {
	t.Parallel()
	b := listen(t)
	c := b.dial(hootclient.Options{})
	pending := call(t.Context(), c, "echo")
	b.next(hootproto.Request)
	c.Close()
	b.next(hootproto.Disconnect)
	if got := <-pending; got.err == nil || errors.Is(got.err, hootclient.ErrNotSent) {
		t.Errorf("the pending call: %v", got.err)
	}
	<-c.Done()
	if c.Err() == nil {
		t.Error("the client has not ended")
	}
	if got := <-call(t.Context(), c, "echo"); !errors.Is(got.err, hootclient.ErrNotSent) {
		t.Errorf("a call after Close: %v", got.err)
	}
	if err := c.Subscribe(t.Context(), b.socket.Addr(), nil); err == nil {
		t.Error("a subscription after Close succeeded")
	}
	c.Close()
}

// When the connection is lost, pending calls fail, and later ones are not sent.
func TestConnectionLost(t *testing.T) {
	t.Parallel()
	b := listen(t)
	c := b.dial(hootclient.Options{})
	pending := call(t.Context(), c, "echo")
	b.next(hootproto.Request)
	b.socket.Close()
	if got := <-pending; fault.CodeOf(got.err) != fault.Unavailable || errors.Is(got.err, hootclient.ErrNotSent) {
		t.Errorf("the pending call: %v", got.err)
	}
	<-c.Done()
	if got := <-call(t.Context(), c, "echo"); !errors.Is(got.err, hootclient.ErrNotSent) || !strings.Contains(got.err.Error(), "connection to the backend was lost") {
		t.Errorf("a later call: %v", got.err)
	}
	if err := c.Heartbeat(t.Context()); !errors.Is(err, hootclient.ErrNotSent) {
		t.Errorf("a heartbeat: %v", err)
	}
}

// A backend that sends Disconnect answers the calls it has; further ones wait until the
// connection has ended, and are not sent.
func TestBackendDisconnects(t *testing.T) {
	t.Parallel()
	b := listen(t)
	c := b.dial(hootclient.Options{})
	pending := call(t.Context(), c, "echo")
	request := b.next(hootproto.Request)
	b.send(request.Answer(hootproto.Disconnect), nil)
	b.send(hootproto.Message{Protocol: hootproto.Hoot02, Command: hootproto.Heartbeat, ID: hootproto.NewID(), Identity: request.Identity}, nil)
	b.next(hootproto.HeartbeatReply) // so it has handled Disconnect
	late := call(t.Context(), c, "late")
	b.send(request.Answer(hootproto.Reply), text("last"))
	if got := <-pending; got.err != nil || got.Output.Text != "last" {
		t.Errorf("the pending call: %+v", got)
	}
	if got := <-late; !errors.Is(got.err, hootclient.ErrNotSent) || !strings.Contains(got.err.Error(), "the backend disconnected") {
		t.Errorf("a call after Disconnect: %v", got.err)
	}
	<-c.Done()
}

// Messages that belong to no request, and those that cannot be read, do not disturb the
// connection.
func TestUnexpectedMessages(t *testing.T) {
	t.Parallel()
	b := listen(t)
	changed, invalid := make(chan struct{}, 1), make(chan error, 1)
	c := b.dial(hootclient.Options{
		OnToolsChanged: func() { changed <- struct{}{} },
		OnInvalid:      func(err error) { invalid <- err },
	})
	pending := call(t.Context(), c, "echo")
	request := b.next(hootproto.Request)
	stray := hootproto.Message{ID: hootproto.NewID(), Identity: request.Identity}
	b.send(stray.Answer(hootproto.Reply), text("to no request"))
	b.send(stray.Answer(hootproto.Request), nil)
	b.send(stray.Answer(hootproto.Ready), nil)
	<-changed
	if err := b.socket.Send(t.Context(), zmtp.Message{request.Identity[0], []byte("nonsense")}); err != nil {
		t.Fatal(err)
	}
	if err := <-invalid; fault.CodeOf(err) != fault.Upstream {
		t.Errorf("nonsense: %v", err)
	}
	before := c.LastReceived()
	b.send(request.Answer(hootproto.Reply), text("hello"))
	if got := <-pending; got.err != nil || got.Output.Text != "hello" || !c.LastReceived().After(before) {
		t.Errorf("the call: %+v", got)
	}
}
