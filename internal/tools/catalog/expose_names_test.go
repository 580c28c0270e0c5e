package catalog

import (
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/luanette/luanette/internal/core/tool"
)

var acceptable = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func infos(refs ...tool.Ref) []tool.Info {
	all := make([]tool.Info, len(refs))
	for i, r := range refs {
		all[i] = tool.Info{Ref: r}
	}
	return all
}

func TestNames(t *testing.T) {
	t.Parallel()
	n := newNames(40)
	refs := []tool.Ref{
		{Name: "lua_eval"},
		{Space: "fs", Name: "read_file"},
		{Space: "fs", Name: "read.file"},
		{Space: "fs", Name: "list.dir"},
		{Space: "a__b", Name: "c"},
		{Space: "a", Name: "b__c"},
		{Space: "a-rather-long-namespace", Name: "and_a_tool_with_a_very_long_name_that_ends_in_create_issue"},
		{Space: "x", Name: "größe"},
	}
	n.assign(infos(refs...))
	want := []string{
		"lua_eval", "fs__read_file", "fs__read_file_", "fs__list_dir", "a__b__c", "a__b__c_", "a-rather-long__", "x__gr__e",
	}
	for i, ref := range refs {
		got := n.byRef[ref]
		if len(got) < len(want[i]) || got[:len(want[i])] != want[i] {
			t.Errorf("%v is named %q, want %q…", ref, got, want[i])
		}
	}
	if got := n.byRef[refs[6]]; len(got) != 40 || !regexp.MustCompile(`_ends_in_create_issue_[a-z2-7]{8}$|create_issue_[a-z2-7]{8}$`).MatchString(got) {
		t.Errorf("the long one is named %q: want its end and a hash in 40 characters", got)
	}
}

func TestOwnNamesAreReserved(t *testing.T) {
	t.Parallel()
	n := newNames(0)
	foreign, own := tool.Ref{Space: "fs", Name: "read"}, tool.Ref{Name: "fs__read"}
	n.assign(infos(foreign))
	if n.byRef[foreign] != "fs__read" {
		t.Fatalf("named %q", n.byRef[foreign])
	}
	n.assign(infos(own, foreign))
	if n.byRef[own] != "fs__read" || n.byRef[foreign] == "fs__read" || n.byName["fs__read"] != own {
		t.Errorf("own %q, foreign %q", n.byRef[own], n.byRef[foreign])
	}
}

func TestNamesOfRemovedToolsAreForgotten(t *testing.T) {
	t.Parallel()
	n := newNames(0)
	stays := tool.Ref{Space: "s", Name: "stays"}
	for i := range 20_000 {
		n.assign(infos(stays, tool.Ref{Space: "s", Name: "t" + string(rune('a'+i%26)) + string(rune(0x4e00+i))}))
	}
	if len(n.byRef) > 5000 || len(n.byRef) != len(n.byName) {
		t.Errorf("%d refs and %d names are remembered", len(n.byRef), len(n.byName))
	}
	if n.byRef[stays] != "s__stays" {
		t.Errorf("the living one is named %q", n.byRef[stays])
	}
}

// drawRefs draws refs that often collide: few letters, separators and oddities.
func drawRefs(t *rapid.T) []tool.Ref {
	word := rapid.OneOf(
		rapid.StringMatching(`[ab_.é-]{1,6}`), rapid.StringMatching(`[ab_.]{60,130}`), rapid.StringN(1, 20, 80),
	)
	ref := rapid.Custom(func(t *rapid.T) tool.Ref {
		return tool.Ref{Space: word.Draw(t, "space"), Name: word.Draw(t, "name")}
	})
	return rapid.SliceOfNDistinct(ref, 1, 40, rapid.ID).Draw(t, "refs")
}

func TestNamesAreAcceptableUniqueAndStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		refs := drawRefs(t)
		own := tool.Ref{Name: allowed(refs[0].Space + "__" + refs[0].Name)}
		limit := rapid.SampledFrom([]int{0, 24, 46, 64, 1000}).Draw(t, "limit")
		n := newNames(limit)
		half := rapid.IntRange(0, len(refs)).Draw(t, "half")
		n.assign(infos(append([]tool.Ref{own}, refs[:half]...)...))
		before := make([]string, half)
		for i := range half {
			before[i] = n.byRef[refs[i]]
		}
		spellings := n.assign(infos(append([]tool.Ref{own}, refs...)...))
		seen := map[string]bool{own.Name: true}
		for i, ref := range refs {
			name := n.byRef[ref]
			switch {
			case !acceptable.MatchString(name) || len(name) > n.limit:
				t.Fatalf("%q is named %q", ref, name)
			case seen[name]:
				t.Fatalf("name %q is given twice", name)
			case spellings[name] != ref:
				t.Fatalf("name %q leads to %q, not to %q", name, spellings[name], ref)
			case i < half && name != before[i]:
				t.Fatalf("%q was %q and is %q", ref, before[i], name)
			}
			seen[name] = true
		}
	})
}

// The same tools get the same names in whatever order they are listed.
func TestNamesDoNotDependOnOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		refs := drawRefs(t)
		shuffled := rapid.Permutation(refs).Draw(t, "shuffled")
		named := func(refs []tool.Ref) map[tool.Ref]string {
			refs = slices.Clone(refs)
			slices.SortFunc(refs, func(a, b tool.Ref) int { // as a view's list is
				if a.Space != b.Space {
					if a.Space < b.Space {
						return -1
					}
					return 1
				}
				if a.Name < b.Name {
					return -1
				}
				return 1
			})
			n := newNames(0)
			n.assign(infos(refs...))
			return n.byRef
		}
		first, second := named(refs), named(shuffled)
		for ref, name := range first {
			if second[ref] != name {
				t.Fatalf("%q is %q or %q", ref, name, second[ref])
			}
		}
	})
}
