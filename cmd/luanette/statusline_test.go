package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/luanette/luanette/internal/client"
)

// On a pipe a command says what it waits for, more and more seldom.
func TestWaitingIsReportedOnAPipe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var errs bytes.Buffer
		began := time.Now()
		stop := reportWaiting(&process{Stderr: &errs}, func() []client.Waiting {
			switch passed := time.Since(began); {
			case passed < 6*time.Second:
				return []client.Waiting{{Name: "everything", State: "starting", Since: began}}
			case passed < 8*time.Second:
				return nil
			default:
				var list []client.Waiting
				for _, name := range []string{"a", "b", "c", "d"} {
					list = append(list, client.Waiting{Name: name, State: "starting", Since: began})
				}
				return list
			}
		})
		time.Sleep(8500 * time.Millisecond)
		stop()
		want := `waiting for everything (starting, 2 s) …
waiting for everything (starting, 5 s) …
waiting for a (starting, 8 s), b (starting, 8 s), c (starting, 8 s), 1 more …
`
		if diff := cmp.Diff(want, errs.String()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestReportsBecomeRarer(t *testing.T) {
	t.Parallel()
	last := time.Duration(0)
	for n := range 10 {
		at := reportAfter(n)
		if at <= last {
			t.Errorf("report %d after %s, the one before after %s", n, at, last)
		}
		last = at
	}
}
