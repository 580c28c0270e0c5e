package upstream

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"sync"
	"time"
)

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
	line        uint64 // counts begun and finished lines
	interrupted bool   // the file's write deadline is in the past
	ended       bool   // the process has ended
}

// inputPipe is our end of a process's standard input, an *os.File.
type inputPipe interface {
	io.WriteCloser
	SetWriteDeadline(t time.Time) error
}

// notWritten is the position of a line that was never begun.
const notWritten = math.MaxInt64

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
	number, err := w.begin(ctx)
	if err != nil {
		<-w.turn
		return notWritten, notSent(err)
	}
	position = w.written
	stop := context.AfterFunc(ctx, func() { w.interrupt(number) })
	n, err := w.file.Write(line)
	stop()
	w.written += int64(n)
	if ended := w.finish(); errors.Is(err, os.ErrDeadlineExceeded) && !ended {
		err = context.Cause(ctx)
		if n > 0 {
			w.rest.Go(func() { w.writeRest(line[n:]) })
			return position, err
		}
	}
	<-w.turn
	if err != nil && n == 0 {
		return notWritten, notSent(err)
	}
	return position, err
}

// writeRest writes the rest of a line and gives up the turn.
func (w *stdioWriter) writeRest(line []byte) {
	defer func() { <-w.turn }()
	n, _ := w.file.Write(line) // if it fails, the process has ended
	w.written += int64(n)
}

// begin returns the number of the line to write.
func (w *stdioWriter) begin(ctx context.Context) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ended:
		return 0, errProcess
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	}
	w.line++
	return w.line, nil
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
