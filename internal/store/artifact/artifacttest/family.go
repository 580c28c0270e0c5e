package artifacttest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
)

func family(t *testing.T, s *artifact.Store, _ *event.Bus) {
	var parent cas.Ref
	for i := range 4 {
		parent = put(t, s, fmt.Sprint(i), artifact.Details{Name: "song", Parent: parent}).Hash
	}
	put(t, s, "cousin", artifact.Details{Name: "cousin", Parent: cas.Sum([]byte("1"))})
	line, err := s.Ancestors(t.Context(), parent, 10)
	if err != nil || len(line) != 3 || line[0].Hash != cas.Sum([]byte("2")) || line[2].Hash != cas.Sum([]byte("0")) {
		t.Errorf("Ancestors = %v, %v", line, err)
	}
	if line, _ := s.Ancestors(t.Context(), parent, 2); len(line) != 2 {
		t.Errorf("two ancestors are %v", line)
	}
	children, err := s.Children(t.Context(), cas.Sum([]byte("1")), 10)
	if err != nil || len(children) != 2 || children[0].Name != "cousin" {
		t.Errorf("Children = %v, %v", children, err)
	}
	versions, err := s.Versions(t.Context(), "song", 10)
	if err != nil || len(versions) != 4 || versions[0].Hash != parent {
		t.Errorf("Versions = %v, %v", versions, err)
	}
}

func noCycle(t *testing.T, s *artifact.Store, _ *event.Bus) {
	a := put(t, s, "a", artifact.Details{})
	b := put(t, s, "b", artifact.Details{Parent: a.Hash})
	for _, parent := range []cas.Ref{a.Hash, b.Hash} {
		_, _, err := s.Put(t.Context(), strings.NewReader("a"), artifact.Details{Parent: parent})
		if fault.CodeOf(err) != fault.Conflict {
			t.Errorf("an artifact with the parent %s: %v", parent.Short(), err)
		}
	}
}

func annotations(t *testing.T, s *artifact.Store, _ *event.Bus) {
	a := put(t, s, "a", artifact.Details{Name: "pad"})
	put(t, s, "b", artifact.Details{Name: "other"})
	for _, n := range []artifact.Annotation{{Message: "lovely in the bridge", Vibe: "wistful", Source: "ada"}, {Message: "too long"}} {
		if _, err := s.Annotate(t.Context(), a.Hash, n); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Get(t.Context(), a.Hash)
	if err != nil || len(got.Annotations) != 2 || got.Annotations[0].Vibe != "wistful" || got.Annotations[0].Source != "ada" || got.Annotations[1].Time.IsZero() {
		t.Errorf("Get = %+v, %v", got, err)
	}
	expect(t, s, artifact.Query{Vibe: "wistful bridge"}, "pad")
	expect(t, s, artifact.Query{Vibe: "wistful", Creator: "nobody"}, "")
	if _, err := s.Annotate(t.Context(), cas.Sum([]byte("zzz")), artifact.Annotation{Message: "x"}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("Annotate of an unknown artifact: %v", err)
	}
}

func listsTags(t *testing.T, s *artifact.Store, _ *event.Bus) {
	put(t, s, "a", artifact.Details{Tags: []string{"type:lua", "style:jazz"}})
	put(t, s, "b", artifact.Details{Tags: []string{"type:lua", "style:folk"}})
	if tags, err := s.Tags(t.Context(), "", 10); err != nil || !slices.Equal(tags, []string{"type:lua", "style:folk", "style:jazz"}) {
		t.Errorf("Tags = %v, %v", tags, err)
	}
	if tags, _ := s.Tags(t.Context(), "style:j", 10); !slices.Equal(tags, []string{"style:jazz"}) {
		t.Errorf("Tags of style:j = %v", tags)
	}
}
