package hub

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// ServeStdio serves one client over a pair of pipes, with one message per line. It returns
// when in ends, after all answers are written, and when ctx is done, after running
// requests are cancelled. It closes in when ctx is done, if in is an io.Closer, to end a
// pending read. The client is shown the menu that ctx names.
func (h *Hub) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	s := newSession(ctx, h.local, "", true)
	s.menu = tool.MenuOf(ctx)
	if err := h.local.sessions.add(ctx, s); err != nil {
		return err
	}
	s.readers.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if closer, ok := in.(io.Closer); ok {
		stop := context.AfterFunc(ctx, func() { closer.Close() })
		defer stop()
	}
	written := make(chan error, 1)
	go func() {
		written <- writeLines(s.main, out)
		cancel() // the client does not read any more
	}()
	err := h.readLines(ctx, s, in)
	if ctx.Err() == nil {
		s.drain(ctx)
	}
	h.local.sessions.remove(ctx, s)
	return errors.Join(err, <-written)
}

// readLines handles messages until in ends. It answers an invalid line with an error.
func (h *Hub) readLines(ctx context.Context, s *session, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), h.opts.Limits.Line)
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		m, err := wire.Parse(bytes.Clone(line))
		if err != nil {
			if m.ID == "" {
				m.ID = wire.NullID
			}
			answer := wire.Answer(m.ID, nil, err)
			s.main.send(answer.Append(nil))
			continue
		}
		s.received(ctx, m, nil, "pipe")
	}
	if err := lines.Err(); err != nil && ctx.Err() == nil {
		return fault.Wrap(fault.Unavailable, err, "read standard input")
	}
	return nil
}

// drain waits until the running requests are answered.
func (s *session) drain(ctx context.Context) {
	for {
		s.mu.Lock()
		var left *request
		for _, req := range s.calls {
			left = req
			break
		}
		s.mu.Unlock()
		if left == nil {
			return
		}
		// subscriptions/listen runs until the client disconnects, which it has.
		if left.method == wire.MethodListen {
			left.cancel(errDisconnected)
		}
		select {
		case <-left.finished:
		case <-ctx.Done():
			return
		}
	}
}

// writeLines writes a stream until it ends.
func writeLines(s *stream, out io.Writer) error {
	var line []byte // messages are shared between streams, so each is copied
	for range s.changed() {
		b := s.take(nil)
		for _, m := range b.messages {
			line = append(append(line[:0], m...), '\n')
			if _, err := out.Write(line); err != nil {
				return fault.Wrap(fault.Unavailable, err, "write standard output")
			}
		}
		if b.ended {
			return nil
		}
	}
	return nil
}

// received handles a message of a client that has a single stream for all answers.
// Requests run concurrently and are answered as they finish.
func (s *session) received(ctx context.Context, m wire.Message, header http.Header, network string) {
	switch {
	case m.IsNotification():
		s.notified(m)
		return
	case m.IsResponse():
		s.deliver(m)
		return
	}
	resp := newSharedResponse(m.ID, s.main)
	req, err := s.channelRequest(m, resp)
	switch {
	case err != nil:
		resp.finish(nil, err, false)
		return
	case !req.isNew():
		return // a request that waited for input was resumed
	}
	req.header, req.network = traceHeadersOf(header), network
	req.start(ctx, resp)
	if m.Method == wire.MethodInitialize {
		<-req.finished // the messages after it rely on what it negotiates
	}
}

// channelRequest makes a request of a message. Both eras may use the same channel: a
// message that states its revision is of the modern one.
func (s *session) channelRequest(m wire.Message, resp *response) (*request, error) {
	if eraOf("", m) == wire.Modern {
		about, err := readModern(m, nil)
		if err != nil {
			return nil, err
		}
		resp.token, resp.level = about.token, about.level
		req, err := s.ep.modernRequest(about, m, s.who, resp)
		if err == nil && req.isNew() {
			req.session = s
			req.meetClient(s.menu)
		}
		return req, err
	}
	if version, _ := s.negotiated(); version == "" && m.Method != wire.MethodInitialize && m.Method != wire.MethodPing {
		return nil, wire.Errorf(wire.CodeInvalidRequest, "begin with initialize")
	}
	return s.newRequest(m, resp), nil
}
