// Package terminaltest is the screen of a terminal for tests of programs that draw on
// one.
package terminaltest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/hinshun/vt10x"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
)

// Screen draws what a program writes.
type Screen struct {
	vt10x.Terminal

	mu      sync.Mutex
	rest    []byte        // the beginning of a character
	changed chan struct{} // closed when something is drawn
}

// New returns an empty screen.
func New(width, height int) *Screen {
	return &Screen{Terminal: vt10x.New(vt10x.WithSize(width, height)), changed: make(chan struct{})}
}

// Text is what is on the screen, without spaces at the ends of lines.
func (s *Screen) Text() string {
	var rows []string
	for row := range strings.SplitSeq(strings.TrimRight(s.String(), "\n"), "\n") {
		rows = append(rows, strings.TrimRight(row, " "))
	}
	return strings.Join(rows, "\n") + "\n"
}

// Await waits until the text on the screen satisfies a condition.
func (s *Screen) Await(t testing.TB, what string, holds func(text string) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clocktest.Timeout)
	defer cancel()
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if holds(s.Text()) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%s is not on the screen:\n%s", what, s.Text())
		}
	}
}

// Write draws bytes. They may end within a character, which vt10x reports as a short
// write.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = append(s.rest, p...)
	whole := wholeRunes(s.rest)
	if _, err := s.Terminal.Write(s.rest[:whole]); err != nil {
		return 0, err
	}
	s.rest = slices.Clone(s.rest[whole:])
	close(s.changed)
	s.changed = make(chan struct{})
	return len(p), nil
}

// wholeRunes is the number of bytes before a character that is not complete.
func wholeRunes(b []byte) int {
	for i := len(b) - 1; i >= max(len(b)-utf8.UTFMax, 0); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}
