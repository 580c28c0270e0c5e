package remotecall_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/cluster/remotecall"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// openService opens the service of a node, which handles calls with do.
func openService(t *testing.T, d *db.DB, self string, do remotecall.Handler) *remotecall.Service {
	t.Helper()
	o, err := remotecall.Open(t.Context(), d, remotecall.Options{Self: self, Alive: func(_ context.Context, node string) (bool, error) {
		return node == "a" || node == "b", nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { o.Serve(ctx, do); close(over) }()
	t.Cleanup(func() { stop(); <-over })
	return o
}

func nothing(context.Context, []byte) ([]byte, bool) { return nil, false }

// upper handles calls that begin with its own letter.
func upper(self string) remotecall.Handler {
	return func(_ context.Context, body []byte) ([]byte, bool) {
		text, mine := strings.CutPrefix(string(body), self+" ")
		return []byte(strings.ToUpper(text)), mine
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := openService(t, d, "a", nothing)
		openService(t, d, "b", upper("b"))
		large := strings.Repeat("x", 100_000) // more than a notification can hold
		for body, want := range map[string]string{"b hello": "HELLO", "b ": "", "b " + large: strings.ToUpper(large)} {
			for _, to := range []string{"b", ""} {
				answer, err := a.Send(t.Context(), to, []byte(body))
				if err != nil || string(answer) != want {
					t.Errorf("%.20q to %q: %.20q, %v", body, to, answer, err)
				}
			}
		}
		if left := count(t, d); left != 0 {
			t.Errorf("%d remote calls are left", left)
		}
	})
}

func TestDeadNode(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := openService(t, d, "a", nothing)
		if _, err := a.Send(t.Context(), "gone", []byte("x")); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("a dead node: %v", err)
		}
	})
}

// A call whose caller stopped waiting is cancelled.
func TestCancelledCall(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		begun, ended := make(chan struct{}), make(chan struct{})
		a := openService(t, d, "a", nothing)
		openService(t, d, "b", func(ctx context.Context, _ []byte) ([]byte, bool) {
			close(begun)
			<-ctx.Done()
			close(ended)
			return nil, true
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-begun; cancel() }()
		if _, err := a.Send(ctx, "b", []byte("x")); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		<-ended
		if left := count(t, d); left != 0 {
			t.Errorf("%d remote calls are left", left)
		}
	})
}

// A call that was stored before its node listened is handled too.
func TestEarlyCall(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := openService(t, d, "a", nothing)
		done := make(chan string)
		go func() {
			answer, err := a.Send(t.Context(), "b", []byte("b early"))
			if err != nil {
				t.Error(err)
			}
			done <- string(answer)
		}()
		clocktest.Await(t, func() bool { return count(t, d) > 0 }) // until it is stored
		openService(t, d, "b", upper("b"))
		if answer := <-done; answer != "EARLY" {
			t.Errorf("got %q", answer)
		}
	})
}

func count(t *testing.T, d *db.DB) (n int) {
	t.Helper()
	err := d.QueryRow(t.Context(), "SELECT COUNT(*) FROM errands").Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
