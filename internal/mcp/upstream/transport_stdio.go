package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// stdioTransport exchanges messages with a child process, one per line.
type stdioTransport struct {
	*dispatcher
	process *process
	stdin   *stdioWriter
	stderr  *stderrLines
	refused *refusals    // nil without a sandbox
	read    atomic.Int64 // bytes of its input that the process has read, once it has ended
	limit   int
	grace   time.Duration
	wg      sync.WaitGroup
}

// personalGrace is how long the process of one principal has to end by itself, so that it
// is gone within a second after that principal was blocked.
const personalGrace = 700 * time.Millisecond

// dialStdio starts the process of a spec.
func (o *Options) dialStdio(spec Spec, hooks Hooks) (Transport, error) {
	env, err := o.childEnv(spec)
	if err != nil {
		return nil, notSent(err)
	}
	stderr, refused := newStderrLines(), newRefusals()
	p, err := o.startProcess(spec, env, func(r profile.Refusal) {
		refused.add(r)
		line := "sandbox: " + r.String()
		stderr.add(line)
		hooks.Stderr(line)
	})
	if err != nil {
		return nil, notSent(err)
	}
	t := newStdioTransport(hooks, p.stdin, o.MaxMessage)
	t.process, t.grace = p, o.StopTimeout
	if spec.Owner != "" {
		t.grace = min(t.grace, personalGrace)
	}
	t.stderr = stderr
	if spec.Sandbox.Active() {
		t.refused = refused
	}
	hide := hider(env, spec.personal)
	t.wg.Go(func() {
		defer t.stderr.close()
		readStderr(p.stderr, func(line string) {
			line = hide(line)
			t.stderr.add(line)
			hooks.Stderr(line)
		})
	})
	t.wg.Go(func() {
		t.readMessages(p.stdout)
		t.end()
	})
	return t, nil
}

func newStdioTransport(hooks Hooks, stdin inputPipe, limit int) *stdioTransport {
	t := &stdioTransport{dispatcher: newDispatcher(hooks), stdin: newStdioWriter(stdin), limit: limit}
	t.read.Store(notWritten - 1)
	return t
}

// Call implements Transport.
func (t *stdioTransport) Call(ctx context.Context, out Outgoing) (wire.Message, error) {
	id := out.Message.ID
	answer, err := t.expect(id)
	if err != nil {
		return wire.Message{}, err
	}
	defer t.forget(id)
	began := time.Now()
	position, err := t.write(ctx, append(out.Encoded, '\n'))
	if err != nil && ctx.Err() != nil {
		return wire.Message{}, err
	}
	// If the write failed for another reason, the process has ended or is about to.
	select {
	case r := <-answer:
		r.message.Result = t.refused.explain(ctx, r.message.Result, began)
		return r.message, r.err
	case <-ctx.Done():
		return wire.Message{}, context.Cause(ctx)
	case <-t.done:
	}
	select {
	case r := <-answer: // it came just before the end
		return r.message, r.err
	default:
	}
	if position >= t.read.Load() {
		return wire.Message{}, notSent(t.Err())
	}
	return wire.Message{}, t.Err()
}

// Send implements Transport.
func (t *stdioTransport) Send(ctx context.Context, m wire.Message) error {
	_, err := t.write(ctx, append(m.Append(nil), '\n'))
	return err
}

// write writes a line. If the process has ended, the error says how, and what it wrote.
func (t *stdioTransport) write(ctx context.Context, line []byte) (position int64, err error) {
	position, err = t.stdin.write(ctx, t.done, line)
	if errors.Is(err, errProcess) {
		<-t.done // end is about to close it
		err = notSent(t.Err())
	}
	return position, err
}

// Stderr is what the process wrote to its standard error: the first and the last
// lines.
func (t *stdioTransport) Stderr() string { return t.stderr.text() }

// readMessages reads until the process closes its output.
func (t *stdioTransport) readMessages(stdout io.Reader) {
	in := bufio.NewReaderSize(stdout, 64<<10)
	for {
		line, err := readLine(in, t.limit)
		switch {
		case errors.Is(err, wire.ErrTooLarge):
			if id := responseID(line); id != "" {
				t.resolve(id, response{err: fmt.Errorf("read answer over %d bytes: %w", t.limit, err)})
			} else {
				t.hooks.Garbage(excerpt(line))
			}
		case err != nil:
			return
		case len(bytes.TrimSpace(line)) > 0:
			t.receive(line)
		}
	}
}

// end ends the transport after the process has closed its output, even if the
// process still runs.
func (t *stdioTransport) end() {
	reason := t.process.endReason(t.stderr)
	if t.process.exitedWithin(0) {
		t.read.Store(t.stdin.processEnded(t.process.stdinReader))
	}
	t.fail(reason)
}

// Close stops the process with all its children, by force after the grace period.
func (t *stdioTransport) Close() {
	t.fail(errClosed)
	t.process.stop(t.grace)
	t.wg.Wait()
	t.stdin.rest.Wait()
}

// readLine reads one line of up to limit bytes, into memory of its own. A longer
// line is skipped: readLine returns its beginning and end with ErrTooLarge.
func readLine(in *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	over := false
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > limit {
			over = true
		}
		if over && len(line) > 3*lineEnds {
			line = append(line[:lineEnds], line[len(line)-lineEnds:]...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0 && !over:
			return line, nil
		case err != nil:
			return nil, err
		case over:
			return line, wire.ErrTooLarge
		}
		return line, nil
	}
}

const lineEnds = 512

var (
	idFirst = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d+)\s*,\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"(?:result|error)"`)
	})
	idLast = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\}\s*,\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)
	})
)

// responseID finds the id of a response that is too long, in its beginning and
// end: our ids are numbers, and most serializers write them first or last. A
// server that forges this harms only its own calls.
func responseID(ends []byte) wire.ID {
	for _, place := range []*regexp.Regexp{idFirst(), idLast()} {
		if found := place.FindSubmatch(ends); found != nil {
			return wire.ID(found[1])
		}
	}
	return ""
}
