package upstreamset_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// orgs lets organisations add so many upstreams to a set.
func (f *fixture) orgs(most int) *upstreamset.Orgs {
	return &upstreamset.Orgs{Set: f.Set, Most: func(string) int { return most }}
}

// TestNodesDoNotExceedTheNumberOfAnOrganisation adds upstreams on two nodes at once.
func TestNodesDoNotExceedTheNumberOfAnOrganisation(t *testing.T) {
	t.Parallel()
	for name, fresh := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const most, each = 5, 6
			url := fresh(t)
			nodes := []*upstreamset.Orgs{}
			for range 2 {
				nodes = append(nodes, open(t, dbtest.OpenWith(t, url, db.Options{}), key, true).orgs(most))
			}
			var adding sync.WaitGroup
			results := make(chan error, len(nodes)*each)
			for n, node := range nodes {
				for i := range each {
					adding.Go(func() {
						results <- node.Add(t.Context(), "acme", fmt.Sprintf("s%d-%d", n, i), upstream.Settings{URL: unreachable})
					})
				}
			}
			adding.Wait()
			close(results)
			added := 0
			for err := range results {
				if err == nil {
					added++
				} else {
					refused(t, err, fault.Limit, "may add 5 upstreams")
				}
			}
			stored, err := nodes[0].Set.Store.All(t.Context())
			if err != nil || added != most || len(stored) != most {
				t.Errorf("%d were added, %d are stored, %v; want %d", added, len(stored), err, most)
			}
			if err := nodes[1].Add(t.Context(), "Acme", "other", upstream.Settings{URL: unreachable}); err != nil {
				t.Errorf("another organisation: %v", err)
			}
		})
	}
}

// TestOrganisationChangesItsOwn checks what an organisation may change, in a set that stores
// nothing and in one that does.
func TestOrganisationChangesItsOwn(t *testing.T) {
	t.Parallel()
	for _, persistent := range []bool{false, true} {
		f := open(t, dbtest.Open(t, dbtest.SQLite(t)), key, persistent)
		f.configure(map[string]string{"fixed@acme": unreachable, "wiki": unreachable})
		o, ctx := f.orgs(2), t.Context()
		server := upstream.Settings{URL: unreachable, Headers: map[string]string{"X-Key": "s3cret"}}
		f.must(o.Add(ctx, "acme", "wiki", server))
		refused(t, o.Add(ctx, "acme", "wiki", server), fault.Conflict, "already")
		refused(t, o.Add(ctx, "acme", "fixed", server), fault.Conflict, "configuration")
		refused(t, o.Add(ctx, "acme", "wiki@beta", server), fault.InvalidParams, "not a valid name")
		refused(t, o.Add(ctx, "a%", "wiki", server), fault.InvalidParams, "organisation")
		refused(t, o.Connect(ctx, "acme", "pets", upstream.Settings{URL: unreachable, Transport: "openapi"}), fault.Denied, "over HTTP")

		moved := unreachable + "/2"
		f.must(o.Edit(ctx, "acme", "wiki", func(s upstream.Settings) (upstream.Settings, error) {
			s.URL = moved
			return s, nil
		}))
		f.want("wiki@acme", "added", moved)
		if s, err := f.Editable("wiki@acme"); err != nil || !s.Guarded || s.Headers["X-Key"] != "s3cret" {
			t.Errorf("the edited server is %+v, %v", s, err)
		}
		same := func(s upstream.Settings) (upstream.Settings, error) { return s, nil }
		for _, name := range []string{"fixed", "none", "wiki@acme"} {
			refused(t, o.Edit(ctx, "acme", name, same), fault.NotFound, "operators")
		}
		refused(t, o.Edit(ctx, "beta", "wiki", same), fault.NotFound, "has added no upstream")

		f.must(f.Disable(ctx, "wiki@acme"))
		f.must(o.Edit(ctx, "acme", "wiki", func(s upstream.Settings) (upstream.Settings, error) {
			s.ReadOnly = true
			return s, nil
		}))
		if s := f.want("wiki@acme", "added", moved); s.State != upstreamset.StateRemoved {
			t.Errorf("a disabled server is %s after a change", s.State)
		}
		f.must(o.Connect(ctx, "acme", "wiki", upstream.Settings{URL: unreachable}))
		if s := f.want("wiki@acme", "added", unreachable); s.State == upstreamset.StateRemoved {
			t.Error("connecting does not enable it")
		}
		if s, err := f.Editable("wiki@acme"); err != nil || !s.ReadOnly || len(s.Headers) > 0 {
			t.Errorf("the connected server is %+v, %v", s, err)
		}

		guarded := func(after string) {
			if s, err := f.Editable("wiki@acme"); err != nil || !s.Guarded {
				t.Errorf("after %s it is %+v, %v", after, s, err)
			}
		}
		f.must(f.Disable(ctx, "wiki@acme"))
		f.must(f.Restore(ctx, "wiki@acme"))
		guarded("it was disabled and restored")
		f.must(f.EditServer(ctx, "wiki@acme", same))
		guarded("an operator changed it")
		f.must(f.add("wiki@acme", unreachable))
		guarded("an operator connected it")
		if _, err := f.Remove(ctx, "wiki@acme"); err != nil {
			t.Fatal(err)
		}
		f.must(f.Restore(ctx, "wiki@acme"))
		guarded("it was removed and restored")

		f.must(f.add("given@acme", unreachable)) // by an operator
		refused(t, o.Edit(ctx, "acme", "given", same), fault.Denied, "operators")
		refused(t, o.Connect(ctx, "acme", "given", upstream.Settings{URL: moved}), fault.Denied, "operators")
		refused(t, o.Add(ctx, "acme", "third", server), fault.Limit, "may add 2")
		if _, err := f.Remove(ctx, "fixed@acme"); err != nil { // it does not count
			t.Fatal(err)
		}
		_, err := f.Remove(ctx, "given@acme")
		f.must(err)
		f.must(o.Add(ctx, "acme", "third", server))
		f.want("wiki", "config", unreachable)
	}
}
