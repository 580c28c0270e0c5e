package upstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/mcp/packages"
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
	runner  bool        // it is a package runner, which may be installing
	spoke   atomic.Bool // the process has written to its output
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
	if program := spec.installed; program != nil {
		spec.Command, spec.Args, env = program.Command, program.Args, program.Env
	}
	stderr, refused := &stderrLines{ended: make(chan struct{})}, &refusals{more: make(chan struct{})}
	p, err := o.startProcess(spec, env, func(r profile.Refusal) {
		if spec.installed.isBelow(r.Object) {
			return // node looks there for a package.json, which is no loss
		}
		refused.add(r)
		line := "sandbox: " + r.String()
		stderr.add(line)
		hooks.Stderr(line)
	})
	if err != nil {
		return nil, notSent(err)
	}
	t := newStdioTransport(hooks, p.stdin, o.MaxMessage)
	t.process, t.grace, t.runner = p, o.StopTimeout, packages.IsRunner(spec.Command)
	if spec.Owner != "" {
		t.grace = min(t.grace, personalGrace)
	}
	t.stderr = stderr
	if spec.Profile.Active() {
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

// Traits implements Transport.
func (t *stdioTransport) Traits() Traits {
	return Traits{Stderr: t.stderr.text, Work: func() work { return treeWork(t.process.cmd.Process.Pid) }}
}

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
			t.spoke.Store(true)
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
	t.process.stop(t.grace, t.runner && !t.spoke.Load())
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
	idFirst = lazyregexp.New(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d+)\s*,\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"(?:result|error)"`)
	idLast  = lazyregexp.New(`\}\s*,\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)
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

// stdioWriter writes lines to a process's standard input. Callers write in their
// own goroutine, one at a time. A process that does not read cannot hold up a
// caller whose context ends: if a part of its line is written already, a
// goroutine writes the rest, so that the stream stays valid.
type stdioWriter struct {
	file inputPipe
	turn chan struct{}  // holds one element while a line is written
	rest sync.WaitGroup // goroutines that write the rest of a line

	written int64 // bytes so far; used only with the turn

	mu          sync.Mutex
	writer      context.Context // of whoever writes a line; nil: nobody does
	watching    bool            // watch is about to run
	watched     uint64          // the last line that was watched
	line        uint64          // counts begun and finished lines
	interrupted bool            // the file's write deadline is in the past
	ended       bool            // the process has ended
}

// inputPipe is our end of a process's standard input, an *os.File.
type inputPipe interface {
	io.WriteCloser
	SetWriteDeadline(t time.Time) error
}

// notWritten is the position of a line that was never begun.
const notWritten = math.MaxInt64

// stuckAfter is how long a line is written before its context is watched. To watch each would
// cost as much as to write it.
const stuckAfter = 100 * time.Millisecond

func newStdioWriter(file inputPipe) *stdioWriter {
	return &stdioWriter{file: file, turn: make(chan struct{}, 1)}
}

// write writes a line and returns its position in the stream. done ends the wait
// for the turn. Errors wrap ErrNotSent if nothing of the line was written.
func (w *stdioWriter) write(ctx context.Context, done <-chan struct{}, line []byte) (position int64, err error) {
	select {
	case w.turn <- struct{}{}:
	case <-done:
		return notWritten, notSent(errProcess)
	case <-ctx.Done():
		return notWritten, notSent(context.Cause(ctx))
	}
	if err := w.begin(ctx); err != nil {
		<-w.turn
		return notWritten, notSent(err)
	}
	position = w.written
	n, err := w.file.Write(line)
	w.written += int64(n)
	if ended := w.finish(); errors.Is(err, os.ErrDeadlineExceeded) && !ended {
		err = context.Cause(ctx)
		if n > 0 {
			w.rest.Go(func() {
				defer func() { <-w.turn }()
				more, _ := w.file.Write(line[n:]) // if it fails, the process has ended
				w.written += int64(more)
			})
			return position, err
		}
	}
	<-w.turn
	if err != nil && n == 0 {
		return notWritten, notSent(err)
	}
	return position, err
}

// begin begins a line.
func (w *stdioWriter) begin(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ended:
		return errProcess
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	w.line++
	w.writer = ctx
	if !w.watching {
		w.watching = true
		time.AfterFunc(stuckAfter, w.watch)
	}
	return nil
}

// watch has the line that is being written interrupted when its context ends, if there is one,
// and looks again later.
func (w *stdioWriter) watch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watching = w.writer != nil; !w.watching {
		return
	}
	if number := w.line; number != w.watched {
		w.watched = number
		context.AfterFunc(w.writer, func() { w.interrupt(number) })
	}
	time.AfterFunc(stuckAfter, w.watch)
}

// interrupt ends the write of that line, unless it has finished.
func (w *stdioWriter) interrupt(number uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line == number {
		w.stopWrite()
	}
}

// finish undoes an interruption, unless the process has ended.
func (w *stdioWriter) finish() (ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line++
	w.writer = nil
	if w.interrupted && !w.ended {
		w.interrupted = w.file.SetWriteDeadline(time.Time{}) != nil
	}
	return w.ended
}

// stopWrite makes a write in progress return; w.mu is held. A file without
// deadlines is closed.
func (w *stdioWriter) stopWrite() {
	w.interrupted = true
	if w.file.SetWriteDeadline(time.Unix(1, 0)) != nil {
		w.file.Close()
	}
}

// processEnded ends all writes and returns how many bytes the process has read:
// a line it never began to read can safely be sent again. stdin is the process's
// end of the pipe.
func (w *stdioWriter) processEnded(stdin *os.File) (read int64) {
	w.mu.Lock()
	w.ended = true
	w.stopWrite()
	w.mu.Unlock()
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	return w.written - unread(stdin)
}

// Limits of what is kept of standard error.
const (
	maxStderrLine = 8 << 10 // longer lines are read in parts
	firstLines    = 5       // an interpreter's error message is at the beginning …
	lastLines     = 5       // … or at the end of what it writes
	maxShownLine  = 240     // in errors
)

// stackFrame matches a line of a stack trace of node, such as "at main (file:///x.js:1:2)".
var stackFrame = lazyregexp.New(`^at .*:\d+:\d+\)?$`)

// stderrLines keeps the first and the last lines of a process's standard error.
type stderrLines struct {
	ended chan struct{} // closed with the stream

	mu    sync.Mutex
	first []string
	last  []string
	why   string // the first line between them that names an error
	count int
}

// namesError matches a line that probably says why a program fails.
var namesError = lazyregexp.New(`(?i)error\b|fatal|panic|exception|\bE[A-Z]{5,}\b`)

func (l *stderrLines) add(line string) {
	if stackFrame().MatchString(line) {
		return // the line before it says why
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	line = redact.Cut(line, maxShownLine)
	if len(l.first) < firstLines {
		l.first = append(l.first, line)
		return
	}
	if l.last = append(l.last, line); len(l.last) > lastLines {
		if l.why == "" && namesError().MatchString(l.last[0]) {
			l.why = l.last[0]
		}
		l.last = l.last[1:]
	}
}

func (l *stderrLines) close() { close(l.ended) }

// awaitEnd waits until the stream ends, for a limited time: a grandchild may keep
// it open.
func (l *stderrLines) awaitEnd(within time.Duration) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-l.ended:
	case <-timer.C:
	}
}

// text is the first and the last lines, as one line.
func (l *stderrLines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	parts := l.first
	if left := l.count - len(l.first) - len(l.last); left > 0 {
		between := fmt.Sprintf("… %d lines …", left)
		if l.why != "" {
			between = "… " + l.why + " …"
		}
		parts = append(parts[:len(parts):len(parts)], between)
	}
	return strings.Join(append(parts[:len(parts):len(parts)], l.last...), " / ")
}

// explain adds the lines to the reason of a failure.
func (l *stderrLines) explain(err error) error {
	if text := l.text(); text != "" {
		return fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// readStderr calls each with every line, cut to maxStderrLine, until the stream
// ends.
func readStderr(in io.Reader, each func(line string)) {
	lines := bufio.NewReaderSize(in, maxStderrLine)
	for {
		line, err := lines.ReadSlice('\n')
		if text := clean(string(line)); text != "" {
			each(text)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// hider hides secrets in what a process writes: the values of its variables with
// secret names, those of its person, and what looks like a secret.
func hider(env []string, personal *personalValues) func(line string) string {
	var pairs []string
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if redact.Secret(name) && len(value) >= minSecret {
			pairs = append(pairs, value, redact.Hidden)
		}
	}
	for _, value := range personal.secrets() {
		pairs = append(pairs, value, redact.Hidden)
	}
	values := strings.NewReplacer(pairs...)
	return func(line string) string { return redact.Text(values.Replace(line)) }
}

// minSecret is the length from which on a value is hidden: shorter ones are parts of
// ordinary words.
const minSecret = 6

// maxRefusals is how many refusals of a process are remembered.
const maxRefusals = 100

// refusals are what the sandbox has refused a process. The sandbox reports each once, on
// a way of its own.
type refusals struct {
	mu   sync.Mutex
	list []profile.Refusal
	more chan struct{} // closed when there is another
}

func (r *refusals) add(one profile.Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) < maxRefusals {
		r.list = append(r.list, one)
	}
	close(r.more)
	r.more = make(chan struct{})
}

// about lists the refusals since a time, and earlier ones that a text mentions.
func (r *refusals) about(text string, since time.Time) (lines []string, more <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.list {
		if one.Time.After(since) || strings.Contains(text, one.Object) {
			lines = append(lines, refusalLine(one))
		}
	}
	return lines, r.more
}

// refusalDelay is how far behind the answer of a process a report of its sandbox may be.
const refusalDelay = 5 * time.Millisecond

// explain adds to the result of a tool that failed what the sandbox has refused: since
// the call began, or earlier if the result mentions it. A process without a sandbox has
// no refusals, not even an empty list.
func (r *refusals) explain(ctx context.Context, result json.RawMessage, since time.Time) json.RawMessage {
	if r == nil || !rawjson.GetBool(result, "isError") {
		return result
	}
	lines, more := r.about(string(result), since)
	if len(lines) == 0 {
		timer := time.NewTimer(refusalDelay)
		defer timer.Stop()
		select {
		case <-more:
			lines, _ = r.about(string(result), since)
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	content, _ := rawjson.Get(result, "content")
	items, isList := rawjson.Items(content)
	if len(lines) == 0 || !isList {
		return result
	}
	block := rawjson.SetText(rawjson.SetText(nil, "type", "text"), "text", strings.Join(lines, "\n"))
	extended, err := json.Marshal(append(items, block))
	if err != nil {
		return result
	}
	return rawjson.Set(result, "content", extended)
}

// refusalLine says what was refused, and what would allow it.
func refusalLine(r profile.Refusal) string {
	line := "sandbox: " + r.String()
	if r.Allow != "" {
		line += "; this setting of the server would allow it: " + r.Allow
	}
	return line
}
