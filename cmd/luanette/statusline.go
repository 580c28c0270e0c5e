package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/client"
)

// statusLine is the last line of standard error, below the output of a command: a
// progress bar, or what the command waits for.
type statusLine struct {
	mu      sync.Mutex
	bar     string // the progress of a call
	waiting string // what it waits for; shown instead of the bar
	drawn   string
}

// draw replaces the line on the terminal, or removes it. The caller holds mu.
func (s *statusLine) draw(w io.Writer, text string) {
	if s.drawn != text {
		_, _ = io.WriteString(w, "\r\x1b[K"+text)
	}
	s.drawn = text
}

func (s *statusLine) text() string {
	if s.waiting != "" {
		return s.waiting
	}
	return s.bar
}

// set changes the line.
func (s *statusLine) set(w io.Writer, change func(s *statusLine)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
	s.draw(w, s.text())
}

// print prints above the line.
func (s *statusLine) print(w io.Writer, print func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draw(w, "")
	print()
	s.draw(w, s.text())
}

// When a waiting command says so on a pipe: first after a while, then more and more
// seldom. On a terminal the line changes every second.
var pipeReports = []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second}

const (
	firstShown     = 300 * time.Millisecond // on a terminal
	lastPipeReport = time.Minute            // between the further ones
)

// reportWaiting says on standard error what a command waits for and since when, until
// stop is called.
func reportWaiting(proc *process, pending func() []client.Waiting) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	width := terminalWidth(proc.Stderr)
	go func() {
		defer close(ended)
		tick := time.NewTicker(firstShown)
		defer tick.Stop()
		var since time.Time // when the wait began
		reported := 0
		for {
			select {
			case <-tick.C:
			case <-done:
				proc.status.set(proc.Stderr, func(s *statusLine) { s.waiting = "" })
				return
			}
			list := pending()
			switch {
			case len(list) == 0:
				since, reported = time.Time{}, 0
			case since.IsZero():
				since = oldest(list)
			}
			switch {
			case width > 0:
				proc.status.set(proc.Stderr, func(s *statusLine) { s.waiting = short(waitingText(list), width-2) })
			case len(list) > 0 && time.Since(since) >= reportAfter(reported):
				for time.Since(since) >= reportAfter(reported) {
					reported++
				}
				fmt.Fprintln(proc.Stderr, waitingText(list))
			}
		}
	}()
	return func() { close(done); <-ended }
}

// reportAfter returns when the nth report is due.
func reportAfter(n int) time.Duration {
	if n < len(pipeReports) {
		return pipeReports[n]
	}
	return time.Duration(n-len(pipeReports)+1) * lastPipeReport
}

func oldest(list []client.Waiting) time.Time {
	return slices.MinFunc(list, func(a, b client.Waiting) int { return a.Since.Compare(b.Since) }).Since
}

// mostWaiting is the number of names in a report.
const mostWaiting = 3

// waitingText says what a command waits for, and since when; "" if for nothing.
func waitingText(list []client.Waiting) string {
	if len(list) == 0 {
		return ""
	}
	var names []string
	for _, w := range list[:min(len(list), mostWaiting)] {
		names = append(names, fmt.Sprintf("%s (%s, %d s)", w.Name, w.State, int(time.Since(w.Since).Seconds())))
	}
	if more := len(list) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return "waiting for " + strings.Join(names, ", ") + " …"
}

// waitingForConnection is what a command waits for that connects to one server.
func waitingForConnection(name string) func() []client.Waiting {
	began := time.Now()
	return func() []client.Waiting {
		return []client.Waiting{{Name: name, State: "connecting", Since: began}}
	}
}
