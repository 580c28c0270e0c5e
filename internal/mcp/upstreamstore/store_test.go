package upstreamstore_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/base/tagged"
	"github.com/luanette/luanette/internal/base/tagged/taggedtest"
	"github.com/luanette/luanette/internal/mcp/upstream"
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

func put(t *testing.T, s *upstreamstore.Store, name string, server upstream.Settings) error {
	t.Helper()
	return s.Change(t.Context(), name, "me", func(*upstreamstore.Entry) (*upstreamstore.Entry, error) {
		return &upstreamstore.Entry{Settings: server}, nil
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
		docs := upstream.Settings{URL: "http://127.0.0.1:1/mcp", Headers: map[string]string{"X-Key": "hush-hush"}, Expose: []string{"*"}}
		if err := put(t, s, "docs", docs); err != nil {
			t.Fatal(err)
		}
		if err := put(t, s, "query", upstream.Settings{URL: "http://127.0.0.1:1/mcp?key=hush-hush"}); err != nil {
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
		if w := all[0]; w.Name != "docs" || w.Removed || !tagged.Same(w.Settings, docs, "") || w.By != "me" || w.Changed.IsZero() || w.Err != nil {
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

// write stores settings as text.
func write(t *testing.T, d *db.DB, name, settings string) {
	t.Helper()
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO wanted_upstreams (name, removed, sealed, settings, changed, changed_by) VALUES ($1, FALSE, FALSE, $2, 1, 'me')`, name, []byte(settings))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFormerLayout checks that what was stored before is read, and that what the table should
// not have is refused.
func TestFormerLayout(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(t, d, long)
		write(t, d, "former", `{"url":"http://127.0.0.1:1/","transport":"http","expose":["*"],"allowed_tools":["a"],"aliases":{"b":"a"},"read_only":true,"timeout_ns":1500000000,"guarded":true}`)
		write(t, d, "gone", `{"url":""}`)
		write(t, d, "program", `{"command":"sh"}`)
		write(t, d, "unknown", `{"url":"http://127.0.0.1:1/","colour":"red"}`)
		all, err := s.All(t.Context())
		if err != nil || len(all) != 4 {
			t.Fatal(all, err)
		}
		want := upstream.Settings{
			URL: "http://127.0.0.1:1/", Transport: "http", Expose: upstream.Expose{upstream.ExposeAll}, AllowedTools: []string{"a"},
			Aliases: map[string]string{"b": "a"}, ReadOnly: true, Timeout: duration.Duration(1500 * time.Millisecond),
		}
		if w := all[0]; w.Err != nil || !w.Guarded || !tagged.Same(w.Settings, want, "") {
			t.Errorf("former: %+v", w)
		}
		if w := all[1]; w.Err != nil || w.Settings.URL != "" {
			t.Errorf("gone: %+v", w)
		}
		for _, w := range all[2:] {
			if w.Err == nil || fault.HintOf(w.Err) == "" || w.Settings.Command != "" {
				t.Errorf("%s: %+v", w.Name, w)
			}
		}
	})
}

// TestEverySettingIsStored checks for every setting that a server which was added can have that
// it is stored, encrypted if it is a secret, and for all others that they are refused.
func TestEverySettingIsStored(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	s := open(t, d, long)
	for _, f := range taggedtest.Fields(reflect.TypeFor[upstream.Settings]()) {
		var settings upstream.Settings
		taggedtest.Change(reflect.ValueOf(&settings).Elem().FieldByIndex(f.Index), "https://h.example/?canary")
		if err := put(t, s, "a", settings); err != nil {
			t.Fatal(err)
		}
		all, err := s.All(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		_, added := f.Tag.Lookup("added")
		if w := all[0]; added != (w.Err == nil) || added && (!tagged.Same(w.Settings, settings, "") || tagged.Same(w.Settings, upstream.Settings{}, "")) {
			t.Errorf("%s (added: %v): stored %+v", f.Name, added, w)
		}
		if _, secret := f.Tag.Lookup("secret"); secret && strings.Contains(raw(t, d, "a"), "canary") {
			t.Errorf("%s is not encrypted", f.Name)
		}
	}
}

func TestSecretNeedsAKey(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	keyless := open(t, d, "")
	if err := put(t, keyless, "a", upstream.Settings{URL: "http://127.0.0.1:1/", Headers: map[string]string{"X": "y"}}); fault.CodeOf(err) != fault.Config {
		t.Errorf("stored without a key: %v", err)
	}
	if err := put(t, keyless, "a", upstream.Settings{URL: "http://127.0.0.1:1/"}); err != nil {
		t.Errorf("settings without a secret: %v", err)
	}
	if err := put(t, open(t, d, long), "b", upstream.Settings{URL: "http://127.0.0.1:1/", Headers: map[string]string{"X": "y"}}); err != nil {
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
	server := upstream.Settings{URL: "http://127.0.0.1:1/"}
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
