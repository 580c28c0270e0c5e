package hootclient_test

import (
	"context"
	"errors"
	"testing"

	"github.com/luanette/luanette/internal/zmq/hootclient"
	"github.com/luanette/luanette/internal/zmq/hootproto"
)

// giveUp sends a heartbeat with a context that ends before the answer.
func giveUp(t *testing.T, c *hootclient.Client, sent func()) {
	t.Helper()
	errEnough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Heartbeat(ctx) }()
	sent()
	cancel(errEnough)
	if err := <-done; !errors.Is(err, errEnough) {
		t.Errorf("heartbeat of a silent backend: %v", err)
	}
}

// nothingBut checks that the next message of the client is its next request: it sent
// nothing before.
func (b backend) nothingBut(c *hootclient.Client) {
	b.Helper()
	pending := call(b.Context(), c, "echo")
	b.send(b.next(hootproto.Request).Answer(hootproto.Reply), text("hello"))
	if got := <-pending; got.err != nil || got.Output.Text != "hello" {
		b.Errorf("the call: %+v", got)
	}
}

// In HOOT01 an answer looks like a question. There is one unanswered heartbeat at most,
// and what answers no heartbeat is dropped: answering it would never end.
func TestHeartbeatsInHoot01(t *testing.T) {
	t.Parallel()
	b := listen(t)
	c := b.dial(hootclient.Options{})
	if err := b.ready(c, hootproto.Catalog{Protocol: hootproto.Hoot01}); err != nil {
		t.Fatal(err)
	}
	var sent hootproto.Message
	giveUp(t, c, func() { sent = b.next(hootproto.Heartbeat) })
	for range 3 { // the backend has not answered: no further heartbeat is sent
		giveUp(t, c, func() {})
	}
	b.nothingBut(c)
	if sent.Protocol != hootproto.Hoot01 {
		t.Errorf("sent %+v", sent)
	}
	stray := hootproto.Message{Command: hootproto.Heartbeat, ID: hootproto.NewID(), Identity: sent.Identity}
	for range 3 { // the late answer, repeated, and others
		b.send(sent.HeartbeatReply(), nil)
		b.send(stray, nil)
	}
	b.nothingBut(c)
	done := make(chan error, 1)
	go func() { done <- c.Heartbeat(t.Context()) }()
	next := b.next(hootproto.Heartbeat)
	b.send(next.HeartbeatReply(), nil)
	if err := <-done; err != nil || next.ID == sent.ID {
		t.Errorf("the next heartbeat, %v after %v: %v", next.ID, sent.ID, err)
	}
}

// In HOOT02 a heartbeat of the backend is answered, whenever it comes, and a late reply
// is dropped.
func TestHeartbeatsInHoot02(t *testing.T) {
	t.Parallel()
	b := listen(t)
	c := b.dial(hootclient.Options{})
	if err := b.ready(c, hootproto.Catalog{Protocol: hootproto.Hoot01, Protocols: []string{"HOOT99", hootproto.Hoot02}}); err != nil {
		t.Fatal(err)
	}
	var sent hootproto.Message
	giveUp(t, c, func() { sent = b.next(hootproto.Heartbeat) })
	if sent.Protocol != hootproto.Hoot02 || c.Protocol() != hootproto.Hoot02 {
		t.Errorf("sent %+v in %s", sent, c.Protocol())
	}
	question := hootproto.Message{Protocol: hootproto.Hoot02, Command: hootproto.Heartbeat, ID: hootproto.NewID(), Identity: sent.Identity}
	b.send(question, nil)
	if answer := b.next(hootproto.HeartbeatReply); answer.ID != question.ID || answer.Protocol != hootproto.Hoot02 {
		t.Errorf("%+v was answered with %+v", question, answer)
	}
	for range 3 {
		b.send(sent.HeartbeatReply(), nil)
	}
	b.nothingBut(c)
}
