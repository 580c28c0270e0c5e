package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// Prefixes of names route to backends; the longest prefix counts, and our
// own tools keep their names.
func TestRoutes(t *testing.T) {
	t.Parallel()
	m := newMemory().with("", "job_list", "", nil).
		with("music", "cas_store", "", nil).with("music", "job_list", "", nil).with("music", "other", "", nil).with("music", "garden_play", "", nil).
		with("garden", "garden_play", "", nil).with("garden", "garden_stop", "", nil)
	c := open(catalog.Options{}, m)
	c.Expose("music", catalog.Exposure{Prefixes: []string{"cas_", "job_", "g"}})
	c.Expose("garden", catalog.Exposure{Prefixes: []string{"garden_"}})
	c.Expose("offline", catalog.Exposure{Prefixes: []string{"clap_"}})
	x := c.Exposed()
	want := []string{"cas_store", "garden_play", "garden_stop", "job_list", "music__job_list"}
	if got := listed(t, x); !slices.Equal(got, want) {
		t.Errorf("exposed = %v, want %v", got, want)
	}
	for name, space := range map[string]string{"cas_store": "music", "garden_play": "garden", "job_list": "", "music__job_list": "music"} {
		if _, err := x.Call(t.Context(), call("", name, "")); err != nil {
			t.Fatal(err)
		}
		if last := m.calls[len(m.calls)-1].Ref; last.Space != space {
			t.Errorf("%s went to %s", name, last)
		}
	}
	if info, err := c.Resolve(t.Context(), "cas_store"); err != nil || info.Space != "music" {
		t.Errorf("resolved to %s, %v", info.Ref, err)
	}
	for name, words := range map[string][]string{
		"cas_stoer":  {"names with the prefix cas_ belong to music", "did you mean cas_store?"},
		"clap_hands": {"names with the prefix clap_ belong to offline", "look at its status"},
		"yue_sing":   {"no backend available for tool \"yue_sing\"", "tools begin with cas_… (music), clap_… (offline)"},
		// a name with a namespace is looked for there, whatever prefixes others have
		"music.othre":  {"no tool \"music.othre\"", "did you mean music.other?", "available in music: cas_store"},
		"music__othre": {"no tool \"music.othre\"", "did you mean music.other?", "available in music: cas_store"},
	} {
		_, err := x.Call(t.Context(), call("", name, ""))
		_, other := c.Resolve(t.Context(), name)
		for _, err := range []error{err, other} {
			f := wantFault(t, err, fault.ToolNotFound)
			for _, word := range words {
				if !strings.Contains(f.Msg+"\n"+f.Hint, word) {
					t.Errorf("%s: %q, hint %q; want %q", name, f.Msg, f.Hint, word)
				}
			}
		}
	}
	c.Expose("music", catalog.Exposure{})
	if got := listed(t, x); !slices.Equal(got, []string{"garden_play", "garden_stop", "job_list"}) {
		t.Errorf("exposed = %v", got)
	}
}
