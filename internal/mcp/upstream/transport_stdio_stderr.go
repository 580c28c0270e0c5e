package upstream

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/redact"
)

// Limits of what is kept of standard error.
const (
	maxStderrLine = 8 << 10 // longer lines are read in parts
	firstLines    = 5       // an interpreter's error message is at the beginning …
	lastLines     = 5       // … or at the end of what it writes
	maxShownLine  = 240     // in errors
)

// stderrLines keeps the first and the last lines of a process's standard error.
type stderrLines struct {
	ended chan struct{} // closed with the stream

	mu    sync.Mutex
	first []string
	last  []string
	count int
}

func newStderrLines() *stderrLines { return &stderrLines{ended: make(chan struct{})} }

func (l *stderrLines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	line = redact.Cut(line, maxShownLine)
	if len(l.first) < firstLines {
		l.first = append(l.first, line)
		return
	}
	if l.last = append(l.last, line); len(l.last) > lastLines {
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
		parts = append(parts[:len(parts):len(parts)], fmt.Sprintf("… %d lines …", left))
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
