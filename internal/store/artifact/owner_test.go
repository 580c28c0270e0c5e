package artifact_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func openWith(t testing.TB, url, folder string, o artifact.Options) *artifact.Store {
	t.Helper()
	blobs, err := cas.OpenDir(filepath.Join(folder, "blobs"), cas.DirOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := artifact.Open(t.Context(), dbtest.OpenWith(t, url, db.Options{}), blobs, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestShownAsPrincipalSees checks that the conditions in SQL show to everybody what
// principal.Sees does, and what is nobody's.
func TestShownAsPrincipalSees(t *testing.T) {
	t.Parallel()
	s := openWith(t, dbtest.Fresh(t), t.TempDir(), artifact.Options{})
	var everybody []principal.Principal
	for _, org := range []string{"", "acme", "other"} {
		for _, person := range []string{"", "acme/ada", "other/bob"} {
			for _, id := range []string{"key:one", "person:ada/acme"} {
				for _, scope := range []principal.Scope{principal.MCP, principal.Org, principal.Observe, principal.Admin} {
					everybody = append(everybody, principal.Principal{ID: id, Org: org, Person: person, Scopes: []principal.Scope{scope}})
				}
			}
		}
	}
	stored := map[principal.Owner]cas.Ref{}
	for _, who := range everybody {
		if _, twice := stored[who.Owner()]; twice {
			continue
		}
		a, _, err := s.Put(principal.With(t.Context(), who), strings.NewReader(fmt.Sprint(who.Owner())), artifact.Details{})
		if err != nil {
			t.Fatal(err)
		}
		stored[who.Owner()] = a.Hash
	}
	for _, who := range everybody {
		ctx, seen := principal.With(t.Context(), who), 0
		for owner, ref := range stored {
			want := who.Sees(owner)
			if want {
				seen++
			}
			_, err := s.Get(ctx, ref)
			_, found := s.Find(ctx, ref.String())
			if (err == nil) != want || (found == nil) != want {
				t.Errorf("%+v gets that of %+v: %v, content: %v", who, owner, err, found)
			}
		}
		if page, err := s.Search(ctx, artifact.Query{}); err != nil || page.Total != seen {
			t.Errorf("%+v finds %d of %d, %v", who, page.Total, seen, err)
		}
	}
}

// shares are what is shared with everybody of an organisation.
type shares map[string]principal.Level

func (s shares) Level(_ context.Context, _ principal.Principal, _ principal.Kind, id string) (principal.Level, error) {
	return s[id], nil
}

func (s shares) IDs(context.Context, principal.Principal, principal.Kind) (ids []string, err error) {
	for id := range s {
		ids = append(ids, id)
	}
	return ids, nil
}

// TestSharedArtifacts checks that colleagues see what is shared with them, with its content,
// and change only what is shared for that, and that nobody of another organisation does.
func TestSharedArtifacts(t *testing.T) {
	t.Parallel()
	ada := principal.Principal{ID: "person:ada/acme", Org: "acme"}
	bob := principal.With(t.Context(), principal.Principal{ID: "person:bob/acme", Org: "acme"})
	eve := principal.With(t.Context(), principal.Principal{ID: "person:eve/other", Org: "other"})
	seen, edited, kept := cas.Sum([]byte("seen")), cas.Sum([]byte("edited")), cas.Sum([]byte("kept"))
	s := openWith(t, dbtest.Fresh(t), t.TempDir(), artifact.Options{Shares: shares{artifact.ID(seen) + " " + ada.ID: principal.See, edited.String() + " " + ada.ID: principal.Edit}})
	for _, text := range []string{"seen", "edited", "kept"} {
		if _, _, err := s.Put(principal.With(t.Context(), ada), strings.NewReader(text), artifact.Details{Name: text}); err != nil {
			t.Fatal(err)
		}
	}
	if page, err := s.Search(bob, artifact.Query{}); err != nil || page.Total != 2 || page.Artifacts[0].Name != "edited" {
		t.Errorf("bob finds %+v, %v", page, err)
	}
	for ref, want := range map[cas.Ref]principal.Level{seen: principal.See, edited: principal.Edit} {
		a, err := s.Get(bob, ref)
		if err != nil {
			t.Fatal(err)
		}
		if level, err := s.Shared(bob, &a); err != nil || level != want {
			t.Errorf("%s is shared for %q, %v", a.Name, level, err)
		}
		if _, err := s.Find(bob, ref.String()); err != nil {
			t.Errorf("the content of %s: %v", a.Name, err)
		}
		wanted := map[principal.Level]fault.Code{principal.See: fault.Denied, principal.Edit: ""}[want]
		if _, err := s.Annotate(bob, ref, artifact.Annotation{Message: "x"}); codeOf(err) != wanted {
			t.Errorf("annotate %s: %v", a.Name, err)
		}
		if _, err := s.Delete(bob, ref); codeOf(err) != wanted {
			t.Errorf("delete %s: %v", a.Name, err)
		}
	}
	for _, ref := range []cas.Ref{seen, edited, kept} {
		if _, err := s.Find(eve, ref.String()); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("eve: %v", err)
		}
	}
	if _, err := s.Get(bob, kept); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("what is not shared: %v", err)
	}
}

// TestShareIsOfOneOwner checks that somebody with whom a content is shared sees the name and tags
// of the owner who shares it, not of another who has the same content, and that both that owner
// and who deletes it are told.
func TestShareIsOfOneOwner(t *testing.T) {
	t.Parallel()
	carl, ada, bob := principal.Principal{ID: "person:carl/acme", Org: "acme"}, principal.Principal{ID: "person:ada/acme", Org: "acme"}, principal.Principal{ID: "person:bob/acme", Org: "acme"}
	ref := cas.Sum([]byte("same"))
	bus := event.New(event.BusOptions{})
	told := bus.Subscribe(event.Options{Types: []string{"artifact.deleted"}})
	defer told.Close()
	s := openWith(t, dbtest.Fresh(t), t.TempDir(), artifact.Options{Events: bus, Shares: shares{ref.String() + " " + ada.ID: principal.Edit}})
	for _, who := range []principal.Principal{carl, ada} {
		if _, _, err := s.Put(principal.With(t.Context(), who), strings.NewReader("same"), artifact.Details{Name: "of " + who.ID, Tags: []string{"tag of " + who.ID}}); err != nil {
			t.Fatal(err)
		}
	}
	as := principal.With(t.Context(), bob)
	if a, err := s.Get(as, ref); err != nil || a.Owner.ID != ada.ID || a.Name != "of "+ada.ID {
		t.Errorf("bob gets %+v, %v", a, err)
	}
	if page, err := s.Search(as, artifact.Query{}); err != nil || page.Total != 1 || page.Artifacts[0].Owner.ID != ada.ID {
		t.Errorf("bob finds %+v, %v", page, err)
	}
	for id, want := range map[string]principal.Principal{ref.String() + " " + ada.ID: ada, ref.String() + " " + carl.ID: carl} {
		if thing, err := s.SharedArtifact(t.Context(), id); err != nil || thing.Owner.ID != want.ID || thing.ID != id || thing.Title != "of "+want.ID {
			t.Errorf("%s is %+v, %v", id, thing, err)
		}
	}
	if _, err := s.SharedArtifact(t.Context(), ref.String()+" person:eve"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("of somebody who has none: %v", err)
	}
	if _, err := s.Delete(as, ref); err != nil {
		t.Fatal(err)
	}
	e, ok := told.Poll()
	if !ok {
		t.Fatal("nobody is told")
	}
	for who, want := range map[*principal.Principal]bool{&ada: true, &bob: true, &carl: false} {
		if e.VisibleTo(*who) != want {
			t.Errorf("%s is told: %v", who.ID, !want)
		}
	}
	if a, err := s.Get(principal.With(t.Context(), carl), ref); err != nil || a.Name != "of "+carl.ID {
		t.Errorf("carl has %+v, %v", a, err)
	}
}

func codeOf(err error) fault.Code {
	if err == nil {
		return ""
	}
	return fault.CodeOf(err)
}

// TestStorageQuota checks that two nodes together store exactly what the quota of an
// organisation allows, that the same content counts once, and that deleting frees space.
func TestStorageQuota(t *testing.T) {
	t.Parallel()
	url, folder := dbtest.Fresh(t), t.TempDir()
	o := artifact.Options{Quota: func(org string) int64 { return map[string]int64{"acme": 10_000}[org] }}
	nodes := []*artifact.Store{openWith(t, url, folder, o), openWith(t, url, folder, o)}
	ada := principal.With(t.Context(), principal.Principal{ID: "person:ada/acme", Org: "acme"})
	bob := principal.With(t.Context(), principal.Principal{ID: "person:bob/acme", Org: "acme"})
	eve := principal.With(t.Context(), principal.Principal{ID: "person:eve/other", Org: "other"})
	text := func(i int) string { return fmt.Sprintf("%03d%s", i, strings.Repeat("x", 997)) }
	var stored atomic.Int64
	var work sync.WaitGroup
	for worker := range 4 {
		work.Go(func() {
			for i := worker; i < 16; i += 4 {
				switch _, _, err := nodes[i%2].Put([]context.Context{ada, bob}[i%2], strings.NewReader(text(i)), artifact.Details{}); {
				case err == nil:
					stored.Add(1)
				case fault.CodeOf(err) != fault.Limit || !strings.Contains(fault.HintOf(err), "storage_mb"):
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	if used, err := nodes[0].Storage(t.Context(), "acme"); err != nil || stored.Load() != 10 || used != 10_000 {
		t.Errorf("%d contents, %d bytes, %v", stored.Load(), used, err)
	}
	page, err := nodes[0].Search(ada, artifact.Query{})
	if err != nil || len(page.Artifacts) == 0 {
		t.Fatalf("%+v, %v", page, err)
	}
	first := page.Artifacts[0].Hash
	content, err := nodes[0].Read(t.Context(), first, 2000)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nodes[0].StoreContent(bob, strings.NewReader(string(content)), ""); err != nil {
		t.Errorf("what a colleague has: %v", err)
	}
	if _, err := nodes[0].StoreContent(eve, strings.NewReader(text(99)), ""); err != nil {
		t.Errorf("of an organisation without a quota: %v", err)
	}
	refused := cas.Sum([]byte("more"))
	if _, err := nodes[0].StoreContent(ada, strings.NewReader("more"), ""); fault.CodeOf(err) != fault.Limit {
		t.Errorf("one more: %v", err)
	}
	if _, err := nodes[0].Open(t.Context(), refused); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("what was refused is stored: %v", err)
	}
	second := page.Artifacts[1].Hash
	if _, err := nodes[0].Delete(ada, second); err != nil {
		t.Fatal(err)
	}
	if _, err := nodes[1].StoreContent(bob, strings.NewReader("more"), ""); err != nil {
		t.Errorf("after one was deleted: %v", err)
	}
	if _, err := nodes[0].Restore(ada, second); fault.CodeOf(err) != fault.Limit {
		t.Errorf("restored over the quota: %v", err)
	}
	for _, who := range []context.Context{ada, eve} {
		if _, err := nodes[0].Release(who, refused.String()); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("the content of another one is deleted: %v", err)
		}
	}
	if _, err := nodes[0].Release(bob, refused.String()); err != nil {
		t.Errorf("delete a content: %v", err)
	}
	if _, err := nodes[0].Find(bob, refused.String()); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("after it was deleted: %v", err)
	}
	if _, err := nodes[0].Restore(ada, second); err != nil {
		t.Errorf("restored: %v", err)
	}
}

// failing is a content that breaks off.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestNothingIsOwnedAfterAnError(t *testing.T) {
	t.Parallel()
	s := openWith(t, dbtest.Fresh(t), t.TempDir(), artifact.Options{})
	ada := principal.With(t.Context(), principal.Principal{ID: "person:ada/acme", Org: "acme"})
	if _, err := s.StoreContent(ada, failing{}, ""); err == nil {
		t.Error("stored")
	}
	_, _, err := s.Put(ada, strings.NewReader("text"), artifact.Details{Parent: cas.Sum([]byte("unknown"))})
	if fault.CodeOf(err) != fault.NotFound {
		t.Errorf("with an unknown parent: %v", err)
	}
	bob := principal.With(t.Context(), principal.Principal{ID: "person:bob/acme", Org: "acme"})
	if _, err := s.Find(bob, cas.Sum([]byte("text")).String()); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("somebody else reads what was not recorded: %v", err)
	}
	if used, err := s.Storage(t.Context(), "acme"); err != nil || used != 0 {
		t.Errorf("%d bytes, %v", used, err)
	}
}

// nobodysAndMine checks that what the program has stored, and its owner too, is listed once.
func nobodysAndMine(t *testing.T, s *artifact.Store, _ *event.Bus) {
	details := artifact.Details{Tags: []string{"kind:song"}, Name: "waltz"}
	put(t, s, "a waltz", details)
	put(t, s, "a waltz of nobody", details)
	local := principal.With(t.Context(), principal.Local())
	mine, _, err := s.Put(local, strings.NewReader("a waltz"), details)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []artifact.Query{{}, {Tags: details.Tags}, {Vibe: "waltz"}, {Vibe: "waltz", Tags: details.Tags}} {
		page, err := s.Search(local, q)
		if err != nil || page.Total != 2 || len(page.Artifacts) != 2 {
			t.Errorf("%+v: %d of %d artifacts, %v", q, len(page.Artifacts), page.Total, err)
		}
		for _, a := range page.Artifacts {
			if a.Hash == mine.Hash && a.Owner != mine.Owner {
				t.Errorf("%+v: the artifact of %+v is listed", q, a.Owner)
			}
		}
	}
}
