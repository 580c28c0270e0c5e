package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/mcp/wire"
)

// stdioTransport talks to a child process, one message per line.
type stdioTransport struct {
	*pipe
	child *process
	limit int
	grace time.Duration
}

// dialStdio starts the process of a spec.
func (o *Options) dialStdio(spec Spec, hooks Hooks) (Transport, error) {
	env, err := o.childEnv(spec)
	if err != nil {
		return nil, notSent(err)
	}
	child, err := startProcess(spec, env)
	if err != nil {
		return nil, notSent(err)
	}
	l := &stdioTransport{pipe: newPipe(hooks, child.stdin), child: child, limit: o.MaxMessage, grace: o.StopTimeout}
	last := newStderrTail()
	l.wg.Go(func() {
		defer last.close()
		readStderr(child.stderr, func(line string) { last.add(line); hooks.Stderr(line) })
	})
	l.wg.Go(func() { l.read(last) })
	return l, nil
}

// read takes messages until the process closes its output, which is its end for
// us whether it still runs or not.
func (l *stdioTransport) read(last *stderrTail) {
	in := bufio.NewReaderSize(l.child.stdout, 64<<10)
	for {
		line, err := readLine(in, l.limit)
		switch {
		case errors.Is(err, wire.ErrTooLarge):
			if id := responseID(line); id != "" {
				l.resolve(id, reply{err: fmt.Errorf("read answer over %d bytes: %w", l.limit, err)})
			} else {
				l.hooks.Garbage(excerpt(line))
			}
		case err != nil:
			end := l.child.endReason(last)
			if l.child.exitedWithin(0) {
				l.settleUp(l.child.stdinReader)
			}
			l.fail(end)
			return
		case len(bytes.TrimSpace(line)) > 0:
			l.receive(line)
		}
	}
}

// Close ends the process with all its children, by force after the grace.
func (l *stdioTransport) Close() {
	l.fail(errClosed)
	l.child.stop(l.grace)
	l.wg.Wait()
}

// PID is the process we talk to.
func (l *stdioTransport) PID() int { return l.child.cmd.Process.Pid }

// readLine reads one line of up to limit bytes; it belongs to the caller. Of a
// longer one it returns the two ends with ErrTooLarge, having skipped it all.
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

// responseID finds whose response an overlong line is, from its two ends: our
// ids are numbers, and serializers write them first or last. A server that
// tricks this harms only its own calls.
func responseID(ends []byte) wire.ID {
	for _, place := range []*regexp.Regexp{idFirst(), idLast()} {
		if found := place.FindSubmatch(ends); found != nil {
			return wire.ID(found[1])
		}
	}
	return ""
}
