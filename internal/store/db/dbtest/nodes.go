package dbtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// twoNodes has two programs read and write the same row in one Write each: no update may
// be lost.
func twoNodes(t *testing.T, url string) {
	const each = 25
	nodes := []*db.DB{openMigrated(t, url), open(t, url), open(t, url)}
	if err := addThing(t.Context(), nodes[0], "counter", 0); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, d := range nodes {
		for range 2 {
			all.Go(func() {
				for range each {
					if err := increment(t.Context(), d); err != nil {
						t.Errorf("Write: %v", err)
					}
				}
			})
		}
	}
	all.Wait()
	if got, want := counter(t, nodes[0]), 2*each*len(nodes); got != want {
		t.Errorf("counter = %d, want %d", got, want)
	}
}

// skew has two programs each check whether there is a thing and insert one of another
// name if there is none: only one may find none.
func skew(t *testing.T, url string) {
	nodes := []*db.DB{openMigrated(t, url), open(t, url)}
	for round := range 10 {
		var all sync.WaitGroup
		for i, d := range nodes {
			all.Go(func() {
				err := d.Write(t.Context(), func(tx *db.Tx) error {
					var n int
					if err := tx.QueryRow(t.Context(), "SELECT count(*) FROM things WHERE size = $1", round).Scan(&n); err != nil || n > 0 {
						return err
					}
					return insertThing(t.Context(), tx, fmt.Sprint(round, " ", i), round)
				})
				if err != nil {
					t.Errorf("Write: %v", err)
				}
			})
		}
		all.Wait()
	}
	if got := things(t, nodes[0]); len(got) != 10 {
		t.Errorf("%d things %q, want 10", len(got), got)
	}
}

func claims(t *testing.T, url string) {
	one, other := open(t, url), open(t, url)
	release, err := one.Claim(t.Context(), "jobs")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Claim(t.Context(), "jobs"); fault.CodeOf(err) != fault.Conflict || fault.HintOf(err) == "" {
		t.Errorf("second Claim = %v, want conflict with a hint", err)
	}
	if also, err := other.Claim(t.Context(), "hoot"); err != nil {
		t.Errorf("Claim of something else: %v", err)
	} else if err := also(); err != nil {
		t.Error(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	again, err := other.Claim(t.Context(), "jobs")
	if err != nil {
		t.Fatalf("Claim after release: %v", err)
	}
	if err := again(); err != nil {
		t.Error(err)
	}
}

// news sends notifications inside and outside of Writes, including long and binary ones.
func news(t *testing.T, url string) {
	d := openMigrated(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	received := make(chan db.Notification, 100)
	var all sync.WaitGroup
	all.Go(func() { _ = d.Listen(ctx, "things", func(n db.Notification) { received <- n }) })
	defer all.Wait()
	defer cancel()
	if first := <-received; !first.Missed {
		t.Errorf("first notification %+v, want Missed", first)
	}
	long := strings.Repeat("long, with an umlaut: ä ", 3000)
	want := []string{"", "plain", "zero\x00 and \xff", long, "with a write", "last"}
	for _, payload := range want[:4] {
		if err := d.Notify(ctx, "things", payload); err != nil {
			t.Error(err)
		}
	}
	if err := d.Notify(ctx, "others", "not for us"); err != nil {
		t.Error(err)
	}
	notify := func(payload string, end error) {
		err := d.Write(ctx, func(tx *db.Tx) error {
			if err := tx.Notify("things", payload); err != nil {
				return err
			}
			return end
		})
		if (err == nil) != (end == nil) {
			t.Error(err)
		}
	}
	notify("never", fault.New(fault.Conflict, "no"))
	notify("with a write", nil)
	notify("last", nil)
	var got []string
	for range want {
		got = append(got, (<-received).Payload)
	}
	if !slices.Equal(got, want) {
		t.Errorf("received %.200q, want %.200q", got, want)
	}
	if err := d.Notify(ctx, "No Topic", ""); fault.CodeOf(err) != fault.Internal {
		t.Errorf("Notify on a bad topic = %v", err)
	}
}

// slowListener tests that a slow listener receives Missed.
func slowListener(t *testing.T, url string) {
	d := open(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	received, again, hold := make(chan db.Notification), make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		first := true
		_ = d.Listen(ctx, "things", func(n db.Notification) {
			if first {
				first = false
				received <- n
				<-hold
				return
			}
			if n.Missed {
				close(again)
				<-ctx.Done()
			}
		})
	})
	<-received
	for range 3 {
		for range 4000 {
			if err := d.Notify(ctx, "things", "more"); err != nil {
				t.Error(err)
			}
		}
	}
	marker := make(chan struct{})
	all.Go(func() { // receives after the last notification, so that all have arrived
		_ = d.Listen(ctx, "end", func(n db.Notification) {
			if n.Missed {
				_ = d.Notify(ctx, "end", "now")
			} else {
				close(marker)
				<-ctx.Done()
			}
		})
	})
	<-marker
	close(hold)
	<-again
	cancel()
	all.Wait()
}
