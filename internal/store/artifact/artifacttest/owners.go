package artifacttest

import (
	"context"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
)

// Callers of the tests. All but the last are of the organisation acme.
var (
	ada    = principal.Principal{ID: "person:ada/acme", Org: "acme", Scopes: []principal.Scope{principal.MCP}}
	bob    = principal.Principal{ID: "person:bob/acme", Org: "acme", Scopes: []principal.Scope{principal.MCP}}
	boss   = principal.Principal{ID: "key:boss", Org: "acme", Scopes: []principal.Scope{principal.MCP, principal.Org}}
	chat   = principal.Principal{ID: "key:web", Person: "acme/ada", Scopes: []principal.Scope{principal.Admin}}
	rival  = principal.Principal{ID: "key:rival", Org: "other", Scopes: []principal.Scope{principal.MCP, principal.Org, principal.Admin}}
	nobody = principal.Principal{ID: "key:plain", Scopes: []principal.Scope{principal.MCP}}
	root   = principal.Principal{ID: "key:root", Scopes: []principal.Scope{principal.Admin}}
)

func as(t *testing.T, who principal.Principal) context.Context {
	return principal.With(t.Context(), who)
}

// ownersAndStrangers checks that every way to reach an artifact or a content shows those of
// others to nobody but whom principal.Sees names, with the same error as for unknown ones.
func ownersAndStrangers(t *testing.T, s *artifact.Store, _ *event.Bus) {
	secret := putAs(t, s, ada, "secret of ada", artifact.Details{Name: "plan", Tags: []string{"mood:secret"}, Description: "zebra"})
	child := putAs(t, s, ada, "child", artifact.Details{Name: "child", Parent: secret.Hash})
	content, err := s.StoreContent(as(t, ada), strings.NewReader("content of ada"), "text/plain")
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []principal.Principal{ada, boss, root} {
		ctx := as(t, who)
		if a, err := s.Get(ctx, secret.Hash); err != nil || a.Owner != ada.Owner() {
			t.Errorf("%s gets %+v, %v", who.ID, a, err)
		}
		if page, err := s.Search(ctx, artifact.Query{Vibe: "zebra"}); err != nil || page.Total != 1 {
			t.Errorf("%s finds %+v, %v", who.ID, page, err)
		}
		if c, err := s.Find(ctx, content.Hash.Short()); err != nil || c.MIME != "text/plain" || c.Size != 14 {
			t.Errorf("%s: content %+v, %v", who.ID, c, err)
		}
		if line, err := s.Ancestors(ctx, child.Hash, 5); err != nil || len(line) != 1 {
			t.Errorf("%s: ancestors %v, %v", who.ID, line, err)
		}
	}
	for _, who := range []principal.Principal{bob, chat, rival, nobody} {
		seesNothing(t, s, who, secret.Hash, content.Hash)
	}
	if items, _, err := s.Stats(as(t, ada)); err != nil || items != 3 {
		t.Errorf("ada has %d contents, %v", items, err)
	}
}

func putAs(t *testing.T, s *artifact.Store, who principal.Principal, text string, d artifact.Details) artifact.Artifact {
	t.Helper()
	a, _, err := s.Put(as(t, who), strings.NewReader(text), d)
	if err != nil {
		t.Fatalf("%s puts %q: %v", who.ID, text, err)
	}
	return a
}

// seesNothing tries everything with the hashes of an artifact and of a content.
func seesNothing(t *testing.T, s *artifact.Store, who principal.Principal, secret, content cas.Ref) {
	t.Helper()
	ctx, unknown := as(t, who), cas.Sum([]byte("unknown"))
	for name, try := range map[string]func(cas.Ref) error{
		"Get":       func(ref cas.Ref) error { _, err := s.Get(ctx, ref); return err },
		"Resolve":   func(ref cas.Ref) error { _, err := s.Resolve(ctx, ref.String()); return err },
		"Find":      func(ref cas.Ref) error { _, err := s.Find(ctx, ref.String()); return err },
		"Find id":   func(ref cas.Ref) error { _, err := s.Find(ctx, artifact.ID(ref)); return err },
		"Annotate":  func(ref cas.Ref) error { _, err := s.Annotate(ctx, ref, artifact.Annotation{Message: "x"}); return err },
		"Delete":    func(ref cas.Ref) error { _, err := s.Delete(ctx, ref); return err },
		"Restore":   func(ref cas.Ref) error { _, err := s.Restore(ctx, ref); return err },
		"Ancestors": func(ref cas.Ref) error { _, err := s.Ancestors(ctx, ref, 5); return err },
		"parent": func(ref cas.Ref) error {
			_, _, err := s.Put(ctx, strings.NewReader("mine of "+who.ID), artifact.Details{Parent: ref})
			return err
		},
	} {
		want := try(unknown)
		for _, ref := range []cas.Ref{secret, content} {
			got := try(ref)
			if fault.CodeOf(got) != fault.NotFound || strings.ReplaceAll(got.Error(), ref.String(), unknown.String()) != want.Error() &&
				strings.ReplaceAll(got.Error(), ref.Short(), unknown.Short()) != want.Error() {
				t.Errorf("%s, %s: %v; an unknown one: %v", who.ID, name, got, want)
			}
		}
	}
	for _, q := range []artifact.Query{{}, {Name: "plan"}, {Vibe: "zebra"}, {Tags: []string{"mood:secret"}}, {Parent: secret}, {Vibe: "zebra", Tags: []string{"mood:secret"}}} {
		if page, err := s.Search(ctx, q); err != nil || page.Total != 0 || len(page.Artifacts) != 0 {
			t.Errorf("%s finds %+v by %+v, %v", who.ID, page, q, err)
		}
	}
	if tags, err := s.Tags(ctx, "mood:", 9); err != nil || len(tags) != 0 {
		t.Errorf("%s: tags %v, %v", who.ID, tags, err)
	}
	if items, bytes, err := s.Stats(ctx); err != nil || items != 0 || bytes != 0 {
		t.Errorf("%s: %d contents of %d bytes, %v", who.ID, items, bytes, err)
	}
}

// sameContentOfTwo checks that the same content of two owners is two artifacts with metadata
// of their own, and that neither learns of the other.
func sameContentOfTwo(t *testing.T, s *artifact.Store, _ *event.Bus) {
	putAs(t, s, ada, "same", artifact.Details{MIME: "text/plain", Name: "hers", Tags: []string{"a"}})
	his, created, err := s.Put(as(t, rival), strings.NewReader("same"), artifact.Details{MIME: "text/x-lua", Name: "his"})
	if err != nil || !created || his.Name != "his" || len(his.Tags) != 0 || his.Owner != rival.Owner() {
		t.Fatalf("the second one has %+v, %v, %v", his, created, err)
	}
	for who, want := range map[string]string{ada.ID: "hers", rival.ID: "his"} {
		ctx := as(t, map[string]principal.Principal{ada.ID: ada, rival.ID: rival}[who])
		if a, err := s.Get(ctx, his.Hash); err != nil || a.Name != want {
			t.Errorf("%s gets %+v, %v", who, a, err)
		}
		if page, err := s.Search(ctx, artifact.Query{}); err != nil || page.Total != 1 || page.Artifacts[0].Name != want {
			t.Errorf("%s finds %+v, %v", who, page, err)
		}
	}
	if page, err := s.Search(as(t, root), artifact.Query{}); err != nil || page.Total != 2 {
		t.Errorf("root finds %+v, %v", page, err)
	}
	for _, text := range []string{"cas", "cas"} {
		if _, err := s.StoreContent(as(t, ada), strings.NewReader(text), "text/plain"); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := s.StoreContent(as(t, rival), strings.NewReader("cas"), "audio/midi"); err != nil || c.MIME != "audio/midi" {
		t.Errorf("the second owner's content is %+v, %v", c, err)
	}
	if _, err := s.Delete(as(t, ada), his.Hash); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(as(t, rival), his.Hash); err != nil {
		t.Errorf("after the other was deleted: %v", err)
	}
	if _, err := s.Find(as(t, ada), his.Hash.String()); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("ada, after she deleted hers: %v", err)
	}
	if back, err := s.Restore(as(t, ada), his.Hash); err != nil || back.Name != "hers" || back.Owner != ada.Owner() {
		t.Errorf("restored %+v, %v", back, err)
	}
	if _, err := s.Find(as(t, ada), his.Hash.String()); err != nil {
		t.Errorf("ada, after she restored hers: %v", err)
	}
}

// nobodysIsEverybodys checks that what the program stores is shown to all, who may not
// delete it, and that it stays so when somebody else stores the same.
func nobodysIsEverybodys(t *testing.T, s *artifact.Store, _ *event.Bus) {
	a := put(t, s, "of the program", artifact.Details{Name: "program"})
	putAs(t, s, ada, "of the program", artifact.Details{Name: "hers"})
	if _, err := s.StoreContent(as(t, ada), strings.NewReader("first hers"), ""); err != nil {
		t.Fatal(err)
	}
	later, err := s.StoreContent(t.Context(), strings.NewReader("first hers"), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []principal.Principal{bob, chat, rival, nobody} {
		ctx := as(t, who)
		if got, err := s.Get(ctx, a.Hash); err != nil || got.Name != "program" {
			t.Errorf("%s gets %+v, %v", who.ID, got, err)
		}
		for _, ref := range []cas.Ref{a.Hash, later.Hash} {
			if _, err := s.Find(ctx, ref.String()); err != nil {
				t.Errorf("%s: %v", who.ID, err)
			}
		}
		if _, err := s.Annotate(ctx, a.Hash, artifact.Annotation{Message: "fine"}); err != nil {
			t.Errorf("%s annotates: %v", who.ID, err)
		}
	}
	if _, err := s.Delete(as(t, bob), a.Hash); fault.CodeOf(err) != fault.Denied {
		t.Errorf("bob deletes: %v", err)
	}
	if gone, err := s.Delete(as(t, root), a.Hash); err != nil || gone.Name != "program" {
		t.Errorf("root deletes %+v, %v", gone, err)
	}
}
