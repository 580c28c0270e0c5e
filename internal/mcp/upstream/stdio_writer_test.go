package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
)

// newTestWriter returns a writer and the process's end of the pipe.
func newTestWriter(t *testing.T) (*stdioWriter, *os.File) {
	t.Helper()
	stdin, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w := newStdioWriter(input)
	t.Cleanup(func() { input.Close(); w.rest.Wait(); stdin.Close() })
	return w, stdin
}

// line is longer than a pipe holds.
func line(c byte) []byte { return append(bytes.Repeat([]byte{c}, 1<<20), '\n') }

// isWriting reports whether a line is being written.
func (w *stdioWriter) isWriting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.line%2 == 1
}

func TestProcessThatDoesNotReadDoesNotHoldCallers(t *testing.T) {
	t.Parallel()
	w, stdin := newTestWriter(t)
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	failures := make(chan error, 2)
	go func() {
		_, err := w.write(ctx, nil, line('a'))
		failures <- err
	}()
	if _, err := stdin.Read(make([]byte, 1)); err != nil { // now a part of the line is written
		t.Fatal(err)
	}
	go func() { // waits for its turn
		position, err := w.write(ctx, nil, line('b'))
		if position != notWritten || !errors.Is(err, ErrNotSent) {
			t.Errorf("a line that was never begun: position %d, %v", position, err)
		}
		failures <- err
	}()
	cancel(why)
	for range 2 {
		if err := <-failures; !errors.Is(err, why) {
			t.Errorf("write ended with %v", err)
		}
	}
	if _, err := w.write(ctx, nil, line('c')); !errors.Is(err, ErrNotSent) {
		t.Errorf("a caller whose context has ended: %v", err)
	}
	// The process reads again: the first line is complete, and the next one follows.
	done := make(chan error, 1)
	go func() {
		_, err := w.write(t.Context(), nil, line('d'))
		done <- err
	}()
	in := bufio.NewReader(stdin)
	for _, want := range [][]byte{line('a')[1:], line('d')} {
		if got, err := in.ReadBytes('\n'); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("read %.3q (%d bytes), %v, want %.3q", got, len(got), err, want)
		}
	}
	if err := <-done; err != nil {
		t.Errorf("write after an interruption: %v", err)
	}
}

func TestWriterKnowsWhatTheProcessHasRead(t *testing.T) {
	t.Parallel()
	w, stdin := newTestWriter(t)
	first, err := w.write(t.Context(), nil, []byte("first\n"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.write(t.Context(), nil, []byte("second\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stdin.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	third := make(chan int64)
	go func() { // fills the pipe, and is interrupted
		position, err := w.write(t.Context(), nil, line('c'))
		if err == nil {
			t.Error("write to a process that has ended succeeded")
		}
		third <- position
	}()
	clocktest.Await(t, w.isWriting)
	read := w.processEnded(stdin)
	if read != 3 || first >= read || second < read || <-third < read {
		t.Errorf("read %d bytes; lines at %d and %d", read, first, second)
	}
	if position, err := w.write(t.Context(), nil, []byte("late\n")); position != notWritten || !errors.Is(err, errProcess) || !errors.Is(err, ErrNotSent) {
		t.Errorf("after the end: position %d, %v", position, err)
	}
}
