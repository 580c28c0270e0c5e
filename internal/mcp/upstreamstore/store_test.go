package upstreamstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func boxOf(key string) secret.Box {
	return secret.Box{Key: func() (secret.Text, error) {
		if key == "" {
			return secret.Text{}, fault.New(fault.Config, "no key")
		}
		return secret.New(key), nil
	}, RecoveryHint: "add it again"}
}

func open(t *testing.T, d *db.DB, key string) *upstreamstore.Store {
	t.Helper()
	s, err := upstreamstore.Open(t.Context(), d, boxOf(key))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, s *upstreamstore.Store, name string, server upstreamstore.Server) error {
	t.Helper()
	return s.Change(t.Context(), name, "me", func(*upstreamstore.Entry) (*upstreamstore.Entry, error) {
		return &upstreamstore.Entry{Server: server}, nil
	})
}

const long = "0123456789abcdef0123456789abcdef"

// raw returns the settings as the table stores them.
func raw(t *testing.T, d *db.DB, name string) (text string) {
	t.Helper()
	err := d.Read(t.Context(), func(tx *db.Tx) error {
		var settings []byte
		err := tx.QueryRow(t.Context(), `SELECT settings FROM wanted_upstreams WHERE name = $1`, name).Scan(&settings)
		text = string(settings)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestEntriesAreStored(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(t, d, long)
		before, err := s.Stamp(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		docs := upstreamstore.Server{URL: "http://127.0.0.1:1/mcp", Headers: map[string]string{"X-Key": "hush-hush"}, Expose: []string{"*"}}
		if err := put(t, s, "docs", docs); err != nil {
			t.Fatal(err)
		}
		if err := put(t, s, "query", upstreamstore.Server{URL: "http://127.0.0.1:1/mcp?key=hush-hush"}); err != nil {
			t.Fatal(err)
		}
		if err := s.Change(t.Context(), "fs", "you", func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
			if now != nil {
				t.Errorf("there is an entry already: %+v", now)
			}
			return &upstreamstore.Entry{Removed: true}, nil
		}); err != nil {
			t.Fatal(err)
		}
		all, err := open(t, d, long).All(t.Context())
		if err != nil || len(all) != 3 {
			t.Fatalf("%v %v", all, err)
		}
		if w := all[0]; w.Name != "docs" || w.Removed || !w.Server.Equal(docs) || w.By != "me" || w.Changed.IsZero() || w.Err != nil {
			t.Errorf("stored %+v", w)
		}
		if w := all[1]; w.Name != "fs" || !w.Removed || w.By != "you" {
			t.Errorf("stored %+v", w)
		}
		for _, name := range []string{"docs", "query"} {
			if strings.Contains(raw(t, d, name), "hush") {
				t.Errorf("the database contains the secret of %s", name)
			}
		}
		if after, err := s.Stamp(t.Context()); err != nil || after == before || after != upstreamstore.StampOf(all) {
			t.Errorf("the stamp was %v and is %v, %v; that of the entries is %v", before, after, err, upstreamstore.StampOf(all))
		}
		if err := s.Change(t.Context(), "docs", "me", func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
		if all, err := s.All(t.Context()); err != nil || len(all) != 2 {
			t.Errorf("%v %v", all, err)
		}
	})
}

func TestSecretNeedsAKey(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	keyless := open(t, d, "")
	if err := put(t, keyless, "a", upstreamstore.Server{URL: "http://127.0.0.1:1/", Headers: map[string]string{"X": "y"}}); fault.CodeOf(err) != fault.Config {
		t.Errorf("stored without a key: %v", err)
	}
	if err := put(t, keyless, "a", upstreamstore.Server{URL: "http://127.0.0.1:1/"}); err != nil {
		t.Errorf("settings without a secret: %v", err)
	}
	if err := put(t, open(t, d, long), "b", upstreamstore.Server{URL: "http://127.0.0.1:1/", Headers: map[string]string{"X": "y"}}); err != nil {
		t.Fatal(err)
	}
	all, err := open(t, d, long+"other").All(t.Context())
	if err != nil || len(all) != 2 || all[0].Err != nil || all[1].Err == nil || !strings.Contains(fault.HintOf(all[1].Err), "add it again") {
		t.Errorf("%+v %v", all, err)
	}
}

// TestOnlyChangesNotify checks that unchanged and refused entries send no notification.
func TestOnlyChangesNotify(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	s := open(t, d, long)
	ctx, stop := context.WithCancel(t.Context())
	received, listening, done := make(chan db.Notification, 10), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = d.Listen(ctx, upstreamstore.Topic, func(n db.Notification) {
			if n.Missed {
				close(listening)
			} else {
				received <- n
			}
		})
	}()
	<-listening
	no := errors.New("no")
	server := upstreamstore.Server{URL: "http://127.0.0.1:1/"}
	for range 3 {
		if err := put(t, s, "a", server); err != nil {
			t.Fatal(err)
		}
		if err := s.Change(t.Context(), "a", "", func(*upstreamstore.Entry) (*upstreamstore.Entry, error) { return nil, no }); !errors.Is(err, no) {
			t.Fatal(err)
		}
	}
	if err := put(t, s, "last", server); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a", "last"} {
		if n := <-received; n.Payload != want {
			t.Errorf("received %q, want %q", n.Payload, want)
		}
	}
	stop()
	<-done
}

func TestSameOrigin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"https://a.org/mcp", "https://a.org/other?x=1", true},
		{"https://a.org/mcp", "http://a.org/mcp", false},
		{"https://a.org/mcp", "https://a.org:8443/mcp", false},
		{"https://a.org/mcp", "https://b.org/mcp", false},
		{"https://a.org/mcp", "%", false},
	} {
		if got := upstreamstore.SameOrigin(tt.a, tt.b); got != tt.want {
			t.Errorf("%s, %s: %v", tt.a, tt.b, got)
		}
	}
}
