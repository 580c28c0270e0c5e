package suggest

import (
	"slices"
	"testing"
)

func TestNames(t *testing.T) {
	t.Parallel()
	known := []string{"orpheus_generate", "orpheus_continue", "listen", "log", "database", "data", "lua_eval", "a"}
	for _, c := range []struct {
		want  string
		limit int
		names []string
	}{
		{"listne", 3, []string{"listen"}},
		{"lissten", 3, []string{"listen"}},
		{"orpheus_genrate", 1, []string{"orpheus_generate"}},
		{"databse", 3, []string{"database", "data"}},
		{"generate", 3, []string{"orpheus_generate"}},
		{"LOG", 3, []string{"log"}},
		{"zzz", 3, []string{}},
		{"", 3, []string{}},
		{"dat", 1, []string{"data"}},
		{"lua_evall", 3, []string{"lua_eval"}},
	} {
		if got := Names(c.want, known, c.limit); !slices.Equal(got, c.names) {
			t.Errorf("Names(%q) = %q, want %q", c.want, got, c.names)
		}
	}
}

func TestDistanceGivesUpPastTheLimit(t *testing.T) {
	t.Parallel()
	if got := Distance("abcdefgh", "zyxwvuts", 2); got != 3 {
		t.Errorf("distance = %d, want limit+1", got)
	}
	if got := Distance("aaaa", "bbbbb", 2); got != 3 {
		t.Errorf("distance = %d past the limit, want limit+1 in both directions", got)
	}
	if got := Distance("ab", "ba", 2); got != 1 {
		t.Errorf("a swap of neighbours costs %d, want 1", got)
	}
}

func FuzzDistance(f *testing.F) {
	f.Add("listen", "listne")
	f.Fuzz(func(t *testing.T, a, b string) {
		if ab, ba := Distance(a, b, 4), Distance(b, a, 4); ab != ba {
			t.Errorf("Distance(%q,%q) = %d but the other way %d", a, b, ab, ba)
		}
	})
}
