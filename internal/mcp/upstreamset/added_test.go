package upstreamset_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/tagged"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// What a user adds on one node is stored, and other nodes connect to it too.
func TestAddedUpstreamsAreShared(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, b := open(t, d, key, true), open(t, d, key, true)
		ctx := principal.With(t.Context(), principal.Principal{ID: "1", Name: "ada"})
		a.must(a.Add(ctx, "x", upstream.Settings{URL: unreachable, Headers: map[string]string{"Authorization": "Bearer s3cret"}}))
		if status := a.want("x", "added", unreachable); status.Last.By != "ada" || status.Last.Changed.IsZero() || status.Fixed {
			t.Errorf("status %+v", status)
		}
		b.want("x", "", "")
		b.must(b.Reload(t.Context()))
		b.want("x", "added", unreachable)
		if late := open(t, d, key, true); late.Reload(t.Context()) != nil || !late.Has("x") {
			t.Error("a node that starts later does not connect")
		}
		other := open(t, d, strings.Repeat("f", 32), true)
		if status := other.want("x", "added", ""); status.State != "unreadable" || status.Error == "" || !strings.Contains(status.Hint, "add it again") {
			t.Errorf("with another key: %+v", status)
		}
		if !strings.Contains(other.logged(), "cannot be read") || strings.Contains(other.logged(), "s3cret") {
			t.Errorf("logged %s", other.logged())
		}
		if removed, err := b.Remove(t.Context(), "x"); !removed || err != nil {
			t.Errorf("removed %v, %v", removed, err)
		}
		a.must(a.Reload(t.Context()))
		a.want("x", "", "")
		if want := []string{"upstream.add x " + unreachable}; !slices.Equal(a.audited, want) {
			t.Errorf("audited %q, want %q", a.audited, want)
		}
	})
}

// A change that another node reverts before this node polls is noticed all the same.
func TestRevertedChangeIsNoticed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, b := open(t, d, key, true), open(t, d, key, true)
		a.must(a.Poll(t.Context()))
		a.must(a.add("x", unreachable))
		if removed, err := b.Remove(t.Context(), "x"); !removed || err != nil {
			t.Errorf("removed %v, %v", removed, err)
		}
		a.must(a.Poll(t.Context()))
		a.want("x", "", "")
	})
}

// Without Persistent nothing is stored.
func TestNothingIsStoredUnlessPersistent(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	f := open(t, d, key, false)
	f.must(f.add("x", unreachable))
	if stored, err := f.Store.All(t.Context()); err != nil || len(stored) != 0 || !f.Has("x") {
		t.Errorf("stored %v, %v", stored, err)
	}
	if removed, err := f.Remove(t.Context(), "x"); !removed || err != nil || f.Has("x") {
		t.Errorf("removed %v, %v", removed, err)
	}
	if removed, err := f.Remove(t.Context(), "x"); removed || err != nil {
		t.Errorf("removed again %v, %v", removed, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	f := openAlone(t)
	ctx := t.Context()
	f.configure(map[string]string{"fixed": unreachable})
	f.must(f.AddLocal(t.Context(), upstream.Spec{Name: "program", Settings: upstream.Settings{Command: "sleep"}}))
	f.must(f.add("mine", unreachable))
	server := upstream.Settings{URL: unreachable + "/2"}
	unchanged := func(s upstream.Settings) (upstream.Settings, error) { return s, nil }
	refused(t, f.add("own-x", unreachable), fault.InvalidParams, "reserved")
	refused(t, f.add("x", "not a url"), fault.InvalidParams, "upstream x")
	refused(t, f.add("fixed", unreachable+"/2"), fault.Conflict, "luanette.toml:7")
	refused(t, f.AddLocal(t.Context(), upstream.Spec{Name: "fixed", Settings: upstream.Settings{URL: unreachable + "/2"}}), fault.Conflict, "luanette.toml:7")
	refused(t, f.AddLocal(t.Context(), upstream.Spec{Name: "own-x", Settings: upstream.Settings{URL: unreachable}}), fault.InvalidParams, "reserved")
	refused(t, f.UsePrivate(upstream.Spec{Name: "own-x"}, time.Now()), fault.InvalidParams, "neither url nor command")
	refused(t, f.AddServer(ctx, "fixed", server), fault.Conflict, "change it there")
	refused(t, f.AddServer(ctx, "mine", server), fault.Conflict, "already")
	refused(t, f.AddServer(ctx, "x", upstream.Settings{}), fault.InvalidParams, "neither url nor command")
	refused(t, f.EditServer(ctx, "fixed", unchanged), fault.Conflict, "luanette.toml:7")
	refused(t, f.EditServer(ctx, "program", unchanged), fault.Conflict, "startup.lua")
	refused(t, f.EditServer(ctx, "none", unchanged), fault.NotFound, "none")
	refused(t, f.EditServer(ctx, "mine", func(upstream.Settings) (upstream.Settings, error) {
		return upstream.Settings{URL: "no scheme"}, nil
	}), fault.InvalidParams, "mine")
	f.want("mine", "added", unreachable)
	if _, err := f.Refresh(ctx, "none"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("refresh of no upstream: %v", err)
	}
}

// A new address on the same origin keeps the other settings; another origin does not get
// them.
func TestEditedSettings(t *testing.T) {
	t.Parallel()
	f := openAlone(t)
	ctx := t.Context()
	f.must(f.AddServer(ctx, "x", upstream.Settings{URL: unreachable, ReadOnly: true}))
	f.must(f.EditServer(ctx, "x", func(s upstream.Settings) (upstream.Settings, error) {
		s.DisabledTools = []string{"rm"}
		return s, nil
	}))
	f.must(f.add("x", unreachable+"/2"))
	got, err := f.Editable("x")
	want := upstream.Settings{URL: unreachable + "/2", ReadOnly: true, DisabledTools: []string{"rm"}}
	if err != nil || !tagged.Same(got.Settings, want, "") {
		t.Errorf("settings %+v, %v; want %+v", got, err, want)
	}
	f.must(f.add("x", "http://127.0.0.1:2/mcp"))
	if got, err := f.Editable("x"); err != nil || !tagged.Same(got.Settings, upstream.Settings{URL: "http://127.0.0.1:2/mcp"}, "") {
		t.Errorf("settings at another origin: %+v, %v", got, err)
	}
}

// A server that was added is disabled and enabled, removed and brought back, with all its
// settings.
func TestAddedUpstreamIsDisabledAndRestored(t *testing.T) {
	t.Parallel()
	for _, persistent := range []bool{true, false} {
		f := open(t, dbtest.Open(t, dbtest.SQLite(t)), key, persistent)
		ctx := t.Context()
		want := upstream.Settings{URL: unreachable, Headers: map[string]string{"Authorization": "Bearer s3cret"}, Aliases: map[string]string{"ls": "list"}}
		f.must(f.AddServer(ctx, "x", want))
		f.must(f.Disable(ctx, "x"))
		if status := f.want("x", "added", unreachable); status.State != upstreamset.StateRemoved || f.Has("x") {
			t.Errorf("disabled: %+v", status)
		}
		refused(t, f.AddServer(ctx, "x", want), fault.Conflict, "already")
		f.must(f.Restore(ctx, "x"))
		if removed, err := f.Remove(ctx, "x"); !removed || err != nil {
			t.Errorf("removed %v, %v", removed, err)
		}
		f.want("x", "", "")
		f.must(f.Restore(ctx, "x"))
		if got, err := f.Editable("x"); err != nil || !tagged.Same(got.Settings, want, "") || !f.Has("x") {
			t.Errorf("restored %+v, %v", got, err)
		}
		refused(t, f.Restore(ctx, "x"), fault.Conflict, "was not removed")
		refused(t, f.Restore(ctx, "other"), fault.Conflict, "was not removed")
		f.must(f.Disable(ctx, "x"))
		if removed, err := f.Remove(ctx, "x"); !removed || err != nil {
			t.Errorf("removed while disabled: %v, %v", removed, err)
		}
		f.want("x", "", "")
	}
}

// The settings of tools are those of the server that was added, or of the configuration.
func TestToolSettings(t *testing.T) {
	t.Parallel()
	f := openAlone(t)
	f.configure(map[string]string{"fixed": unreachable})
	f.must(f.add("x", unreachable))
	want := upstreamset.ToolSettings{Disabled: []string{"rm"}, Aliases: map[string]string{"ls": "list"}, Expose: []string{"list"}}
	f.must(f.SetTools(t.Context(), "x", want))
	got, configured, err := f.ToolSettings("x")
	if err != nil || configured || !slices.Equal(got.Disabled, want.Disabled) || got.Aliases["ls"] != "list" || !slices.Equal(got.Expose, want.Expose) {
		t.Errorf("settings %+v, %v, %v", got, configured, err)
	}
	if _, configured, err := f.ToolSettings("fixed"); err != nil || !configured {
		t.Errorf("fixed: %v, %v", configured, err)
	}
	_, _, err = f.ToolSettings("other")
	refused(t, err, fault.NotFound, "other")
	refused(t, f.SetTools(t.Context(), "fixed", want), fault.Conflict, "fixed")
	refused(t, f.SetTools(t.Context(), "x", upstreamset.ToolSettings{Aliases: map[string]string{"not a name": "list"}}), fault.Config, "not a name")
}
