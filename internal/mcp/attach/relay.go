package attach

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// Relay connects an MCP client on a pair of pipes with a server. If the server ends, the
// calls that it did not answer fail, and the relay attaches to the next one.
type Relay struct {
	// Find returns the server to attach to. It is called again after the server ended.
	Find func(ctx context.Context) (Server, error)
	Menu string // the list of tools that the client asks for; or ""
	// Log is told when the server ended and when another was found.
	Log func(message string)

	attached bool
}

// Attached reports whether Run found a server. Otherwise it has read nothing.
func (r *Relay) Attached() bool { return r.attached }

// Times of a lost connection.
const (
	retryInterval = 100 * time.Millisecond
	firstTries    = 3
	retryTimeout  = 15 * time.Second // after which calls of the client fail at once
)

// relaying is a relay that runs.
type relaying struct {
	*Relay
	*conversation
	lines   chan []byte   // of the client
	ended   chan struct{} // closed when the client's input has ended
	pipe    *pipe         // nil while there is no server
	lost    chan struct{} // closed when pipe has ended
	retries int
}

// Run relays messages until in or ctx ends. It returns an error if there is no server at the
// beginning; nothing was read from in then.
func (r *Relay) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	run := &relaying{Relay: r, conversation: newConversation(out), lines: make(chan []byte), ended: make(chan struct{})}
	err := run.connect(ctx)
	for try := 1; try < firstTries && err != nil && !errors.Is(err, ErrNone); try++ {
		err = run.connect(ctx) // the server may have ended after it was found
	}
	if err != nil {
		return err
	}
	r.attached = true
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go run.read(ctx, in) // a read of a terminal cannot be ended; the process ends soon
	return run.loop(ctx)
}

// read passes on the lines of the client.
func (r *relaying) read(ctx context.Context, in io.Reader) {
	defer close(r.ended)
	reader := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := reader.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			select {
			case r.lines <- line:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// loop handles the client's lines and the end of the connection.
func (r *relaying) loop(ctx context.Context) error {
	retry := time.NewTimer(retryInterval)
	defer retry.Stop()
	for {
		lines, lost := r.lines, r.lost
		if r.pipe == nil {
			lost = nil
			if r.retrying() {
				lines = nil // they wait for the server
			}
		}
		select {
		case <-ctx.Done():
			r.disconnect()
			return nil
		case line := <-lines:
			r.fromClient(ctx, line)
		case <-r.ended:
			return r.finish(ctx)
		case <-lost:
			r.disconnect()
			r.Log("the server ended; waiting for it to return")
			r.retries = 0
			retry.Reset(retryInterval)
		case <-retry.C:
			if r.retry(ctx) {
				retry.Reset(retryInterval)
			}
		}
	}
}

// retrying reports whether the client's calls wait for the server to return.
func (r *relaying) retrying() bool { return r.retries < int(retryTimeout/retryInterval) }

// retry tries to attach again and reports whether to do so once more.
func (r *relaying) retry(ctx context.Context) (again bool) {
	if r.pipe != nil {
		return false
	}
	r.retries++
	return r.connect(ctx) != nil && r.retrying()
}

// connect attaches to a server and repeats what the next one must know.
func (r *relaying) connect(ctx context.Context) error {
	server, err := r.Find(ctx)
	if err != nil {
		return err
	}
	pipe, err := server.open(ctx, r.Menu)
	if err != nil {
		return err
	}
	again := r.begin()
	lost := make(chan struct{})
	r.pipe, r.lost = pipe, lost
	go func() {
		defer close(lost)
		for {
			line, err := pipe.in.ReadBytes('\n')
			if line = bytes.TrimSpace(line); len(line) > 0 && r.fromServer(line) != nil {
				return // the client does not read any more
			}
			if err != nil {
				return
			}
		}
	}()
	for _, line := range again {
		r.send(line)
	}
	if len(again) > 0 {
		r.Log("attached to the server again")
		r.announceChanges()
	}
	return nil
}

// send sends a line to the server. If that fails, the end of the pipe is noticed by its
// reader.
func (r *relaying) send(line []byte) {
	_, _ = r.pipe.Write(append(line, '\n'))
}

// fromClient handles one message of the client.
func (r *relaying) fromClient(ctx context.Context, line []byte) {
	m, err := wire.Parse(line)
	if r.pipe == nil && r.connect(ctx) != nil {
		if err == nil && m.IsRequest() {
			r.answer(m.ID, fault.New(fault.Unavailable, "the luanette server is not running").
				WithHint("start it with `luanette serve`; the session continues then"))
		}
		return
	}
	if err == nil {
		if line = r.sent(m, line); line == nil {
			return
		}
	}
	r.send(line) // what cannot be parsed is for the server to refuse
}

// disconnect closes the pipe, and ends what the server can no longer end.
func (r *relaying) disconnect() {
	if r.pipe == nil {
		return
	}
	_ = r.pipe.Close() // it may be closed already
	<-r.lost
	r.pipe = nil
	r.abandon(fault.New(fault.Unavailable, "the luanette server ended during the call, its outcome is unknown").
		WithHint("find out whether it took effect before you repeat it"))
}

// finish waits for the answers to what was asked, after the client's last message. The
// server cancels what is left when the connection ends.
func (r *relaying) finish(ctx context.Context) error {
	if r.pipe == nil {
		return nil
	}
	for r.awaitsAnswers() {
		select {
		case <-r.answered:
			continue
		case <-r.lost:
		case <-ctx.Done():
		}
		break
	}
	r.disconnect()
	return nil
}
