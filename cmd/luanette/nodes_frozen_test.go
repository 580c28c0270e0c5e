package main

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/luanette/luanette/internal/clock/clocktest"
)

// A node is frozen in the middle of its work: its connections stay, and so do its
// locks. The others take it for dead all the same, and go on with its jobs. When it
// wakes up it is one of them again, and does nothing more of what they took: what
// must not be repeated is not, and every job comes to its end.
func TestFrozenNode(t *testing.T) {
	if os.Getenv(nodesSeconds) == "" {
		t.Skip("make nodes runs it: a frozen node is waited for")
	}
	f := newFleet(t)
	stop := make(chan struct{})
	var clients sync.WaitGroup
	looked := f.watch(t)
	for n := range 4 {
		clients.Go(func() { f.runJobs(t, fmt.Sprint("w", n), repeatable, stop) })
	}
	for n := range 4 {
		clients.Go(func() { f.runJobs(t, fmt.Sprint("once", n), unrepeatable, stop) })
	}
	for _, c := range f.crew {
		f.ended(t, 20)
		f.freeze(t, c)
	}
	f.ended(t, 20)
	close(stop)
	clients.Wait()
	f.check(t)
	f.checkOnce(t)
	looked.check(t, f)
	if len(f.gone) != len(f.crew) || len(looked.resumed) == 0 {
		t.Errorf("%d of %d frozen nodes were taken for dead, %d jobs taken over", len(f.gone), len(f.crew), len(looked.resumed))
	}
	f.report(t)
}

// freeze stops a node's process until the others went on without it, and some time
// longer, and lets it go on.
func (f *fleet) freeze(t *testing.T, c *crewman) {
	t.Helper()
	id := f.idOf(t, c)
	signal := func(s syscall.Signal) {
		t.Helper()
		if err := c.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	c.frozen.Store(true)
	signal(syscall.SIGSTOP)
	f.noticed(t, id)
	f.ended(t, 10)
	signal(syscall.SIGCONT)
	c.frozen.Store(false)
	clocktest.Await(t, func() bool { return f.idOf(t, c) == id }, func() string { return c.name + " woke up and is no node again" })
}

// ended waits until so many more jobs have come to their end.
func (f *fleet) ended(t *testing.T, more int) {
	t.Helper()
	count := func() (n int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, e := range f.jobs {
			if !e.ended.IsZero() {
				n++
			}
		}
		return n
	}
	want := count() + more
	clocktest.Poll(t.Context(), func() bool { return count() >= want })
}
