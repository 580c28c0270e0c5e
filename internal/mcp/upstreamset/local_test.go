package upstreamset_test

import (
	"testing"

	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
)

// startup.lua can leave out an upstream of the configuration, until that is loaded again.
func TestLocalUpstreams(t *testing.T) {
	t.Parallel()
	f := openAlone(t)
	f.configure(map[string]string{"a": unreachable})
	f.must(f.AddLocal(upstream.Spec{Name: "b", Settings: upstream.Settings{URL: unreachable}}))
	for _, name := range []string{"a", "b"} {
		if removed, err := f.RemoveLocal(name); !removed || err != nil || f.Has(name) {
			t.Errorf("%s: removed %v, %v", name, removed, err)
		}
	}
	if removed, err := f.RemoveLocal("b"); removed || err != nil {
		t.Errorf("removed again %v, %v", removed, err)
	}
	f.must(f.AddLocal(upstream.Spec{Name: "a", Settings: upstream.Settings{URL: unreachable}})) // as it is configured
	f.want("a", "config", unreachable)
	if _, err := f.RemoveLocal("a"); err != nil || f.Has("a") {
		t.Errorf("not removed: %v", err)
	}
	f.configure(map[string]string{"a": unreachable})
	f.want("a", "config", unreachable)
}

// A private upstream is connected, and shown by none of the lists.
func TestPrivateUpstreams(t *testing.T) {
	t.Parallel()
	f := openAlone(t)
	name := upstreamset.PrivateName("7")
	f.must(f.AddPrivate(upstream.Spec{Name: name, Settings: upstream.Settings{URL: unreachable}}))
	if f.Has(name) || len(f.List()) != 0 || len(f.Namespaces()) != 0 || !upstreamset.IsPrivate(name) {
		t.Errorf("listed: %v", f.List())
	}
	if !f.Manager.Has(name) {
		t.Error("not connected")
	}
	if removed, err := f.Remove(t.Context(), name); !removed || err != nil || f.Manager.Has(name) || len(f.audited) != 0 {
		t.Errorf("removed %v, %v; audited %v", removed, err, f.audited)
	}
	if removed, err := f.Remove(t.Context(), name); removed || err != nil {
		t.Errorf("removed again %v, %v", removed, err)
	}
}
