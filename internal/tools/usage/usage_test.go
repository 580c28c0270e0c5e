package usage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/search"
	"github.com/luanette/luanette/internal/tools/usage"
)

// node is a server with tools whose texts say little.
type node struct {
	t       *testing.T
	clock   *clock.Virtual
	store   *usage.Store
	catalog *catalog.Catalog
	tools   *source
}

type source []tool.Info

func (s *source) Tools(context.Context) ([]tool.Info, error) { return slices.Clone(*s), nil }

func (s *source) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	switch call.Ref.Name {
	case "fails":
		return tool.Failed("no"), nil
	case "breaks":
		return tool.Result{}, errors.New("broken")
	}
	return tool.Output("done", nil)
}

var start = time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC)

func open(t *testing.T, folder string, o usage.Options) *node {
	t.Helper()
	return openOn(t, dbtest.Open(t, dbtest.In(t, folder)), o)
}

func openOn(t *testing.T, database *db.DB, o usage.Options) *node {
	t.Helper()
	n := &node{t: t, clock: clock.NewVirtual(start), tools: &source{}}
	o.Clock, o.Timeout = n.clock, time.Minute
	var err error
	if n.store, err = usage.Open(t.Context(), database, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.store.Close)
	for _, name := range []string{"z10_exec", "z20_exec", "z30_exec", "fails", "breaks"} {
		*n.tools = append(*n.tools, tool.Info{Ref: tool.Ref{Space: "erp", Name: name}, Description: "Runs the transaction " + name + ".", Input: []byte(`{"type":"object"}`)})
	}
	n.catalog = catalog.New(catalog.Options{
		Sources: []tool.Source{n.tools}, Usage: n.store, Steps: append(catalog.DefaultSteps(), n.store.LearnCalls()),
	})
	return n
}

// as is the context of a principal of an organization.
func (n *node) as(id, org string) context.Context {
	return principal.With(n.t.Context(), principal.Principal{ID: id, Org: org, Scopes: []principal.Scope{principal.MCP}})
}

// find returns the names of the tools found, best first.
func (n *node) find(ctx context.Context, query string) (names []string) {
	for _, h := range n.catalog.SearchAll(ctx, catalog.Query{Text: query}).Hits {
		names = append(names, h.Name)
	}
	return names
}

// first is the best tool for a query; "" if none is found.
func (n *node) first(ctx context.Context, query string) string {
	return append(n.find(ctx, query), "")[0]
}

func (n *node) call(ctx context.Context, name string) {
	n.t.Helper()
	_, err := n.catalog.Call(ctx, tool.Call{Ref: tool.Ref{Space: "erp", Name: name}})
	if (err != nil) != (name == "breaks") {
		n.t.Fatal(err)
	}
	n.store.Wait()
}

// use searches for a tool by its name with other words, and calls it.
func (n *node) use(ctx context.Context, query, name string) {
	n.t.Helper()
	n.find(ctx, query+" "+name)
	n.call(ctx, name)
	n.clock.Advance(time.Hour)
}

const reminders = "send reminders to debtors"

func TestUsedToolsAreFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := open(t, dir, usage.Options{})
	ada := n.as("key:ada", "")
	if got := n.find(ada, reminders); len(got) != 0 {
		t.Fatalf("before: %v", got)
	}
	n.use(ada, reminders, "z20_exec")
	if got := n.first(ada, "which debtors need reminders"); got != "z20_exec" {
		t.Errorf("after: %q", got)
	}
	restarted := open(t, dir, usage.Options{})
	if got := restarted.first(restarted.as("key:ada", ""), reminders); got != "z20_exec" {
		t.Errorf("after a restart: %q", got)
	}
}

// TestOtherNodesKnow checks that a node finds what was used on another one, at once.
func TestOtherNodesKnow(t *testing.T) {
	t.Parallel()
	url := dbtest.In(t, t.TempDir())
	one, other := openOn(t, dbtest.Open(t, url), usage.Options{}), openOn(t, dbtest.Open(t, url), usage.Options{})
	for _, name := range []string{"z10_exec", "z20_exec", "z20_exec"} {
		one.use(one.as("key:ada", ""), reminders, name)
		other.use(other.as("key:ada", ""), reminders, name)
	}
	for _, n := range []*node{one, other} {
		if got := n.find(n.as("key:ada", ""), reminders); !slices.Equal(got, []string{"z20_exec", "z10_exec"}) {
			t.Errorf("found %v", got)
		}
	}
}

// TestRewordedSearches checks that a search that found nothing learns from the one that
// did, unless a tool that it had shown is called.
func TestRewordedSearches(t *testing.T) {
	t.Parallel()
	n := open(t, t.TempDir(), usage.Options{})
	ada := n.as("key:ada", "")
	n.find(ada, reminders)
	n.use(ada, "overdue", "z20_exec")
	n.find(ada, "holidays") // an hour later
	n.store.Wait()
	if got := n.first(ada, reminders); got != "z20_exec" {
		t.Errorf("reworded: %q", got)
	}
	bob := n.as("key:bob", "")
	n.find(bob, "payroll z10_exec")
	n.find(bob, "invoice z30_exec")
	n.call(bob, "z30_exec")
	n.call(bob, "z10_exec")
	n.clock.Advance(time.Hour)
	n.find(bob, "holidays")
	n.store.Wait()
	if got := n.find(bob, "payroll"); !slices.Equal(got, []string{"z10_exec"}) {
		t.Errorf("two searches for two tools: %v", got)
	}
}

func TestOnlySuccessTeaches(t *testing.T) {
	t.Parallel()
	n := open(t, t.TempDir(), usage.Options{Ignore: func(ref tool.Ref) bool { return ref.Name == "z30_exec" }})
	ada := n.as("key:ada", "")
	for _, name := range []string{"fails", "breaks", "z30_exec"} {
		n.use(ada, "warehouse", name)
	}
	n.find(ada, "warehouse z10_exec")
	n.clock.Advance(time.Hour) // too late to belong to the search
	n.call(ada, "z10_exec")
	if got := n.find(ada, "warehouse"); len(got) != 0 {
		t.Errorf("found %v", got)
	}
}

func TestUseDecays(t *testing.T) {
	t.Parallel()
	n := open(t, t.TempDir(), usage.Options{HalfLife: 24 * time.Hour})
	ada := n.as("key:ada", "")
	weight := func() float64 {
		for _, u := range n.store.Recall(ada, []string{"warehous"}, n.current) {
			return u.Weight
		}
		return 0
	}
	n.find(ada, "warehouse z10_exec")
	n.call(ada, "z10_exec")
	if got := weight(); got != 1 {
		t.Errorf("weight %v", got)
	}
	n.clock.Advance(48 * time.Hour)
	if got := weight(); got != 0.25 {
		t.Errorf("weight after two half-lives %v", got)
	}
	for range 20 {
		n.find(ada, "warehouse z10_exec")
		n.call(ada, "z10_exec")
	}
	if got := weight(); got != 8 {
		t.Errorf("greatest weight %v", got)
	}
}

// current is the definition of a tool as the catalog has it.
func (n *node) current(ref tool.Ref) *tool.Info {
	if info, ok := n.catalog.Find(n.t.Context(), ref); ok {
		return &info
	}
	return nil
}

func TestChangedDefinitionsAreForgotten(t *testing.T) {
	t.Parallel()
	n := open(t, t.TempDir(), usage.Options{})
	ada := n.as("key:ada", "")
	n.use(ada, reminders, "z20_exec")
	former := (*n.tools)[1].Description
	for _, text := range []string{"Deletes the transaction z20_exec.", former} {
		(*n.tools)[1].Description = text
		n.catalog.Refresh(t.Context())
		if got := n.find(ada, reminders); len(got) != 0 {
			t.Errorf("with %q found %v", text, got)
		}
		n.store.Wait()
	}
}

func TestUsageIsPrivate(t *testing.T) {
	t.Parallel()
	n := open(t, t.TempDir(), usage.Options{})
	for range 5 {
		n.use(n.as("key:eve", ""), reminders, "z10_exec")
		n.use(n.as("key:eve", "acme"), reminders, "z10_exec")
	}
	for who, ctx := range map[string]context.Context{
		"another caller":       n.as("key:ada", ""),
		"the local owner":      principal.With(t.Context(), principal.Local()),
		"an organization":      n.as("key:ada", "globex"),
		"eve elsewhere":        n.as("key:eve", "globex"),
		"a user of eve's key":  principal.With(t.Context(), principal.Principal{ID: "key:eve", User: "ada"}),
		"a member of eve's":    n.as("key:ada", "acme"),
		"with a similar owner": principal.With(t.Context(), principal.Principal{ID: "key:ev", User: "e"}),
	} {
		if got := n.find(ctx, reminders); len(got) != 0 {
			t.Errorf("%s finds %v", who, got)
		}
	}
}

// TestUsageOfOrganisations checks that members find what they used of upstreams of their
// organisation, that the same name elsewhere is another tool, and that nothing which one
// organisation learns is found, ranked higher or forgotten in another.
func TestUsageOfOrganisations(t *testing.T) {
	t.Parallel()
	n := open(t, t.TempDir(), usage.Options{AllWords: 40})
	for _, info := range slices.Clone(*n.tools) {
		for _, org := range []string{"acme", "beta"} {
			info.Space = "erp@" + org
			*n.tools = append(*n.tools, info)
		}
	}
	ada, bob, carl, root := n.as("key:ada", "acme"), n.as("key:bob", "acme"), n.as("key:carl", "acme"), n.as("key:ada", "")
	rival := n.as("key:ada", "beta")
	n.use(ada, reminders, "z20_exec")
	n.use(bob, reminders, "z20_exec")
	n.use(rival, reminders, "z10_exec")
	for range 30 { // more than is stored of one organisation
		n.use(rival, fmt.Sprintf("payroll holidays warehouse%c", 'a'+n.clock.Now().Hour()), "z30_exec")
	}
	for who, want := range map[context.Context][]string{ada: {"z20_exec"}, carl: {"z20_exec"}, root: nil, n.as("key:new", "beta"): nil} {
		if got := n.find(who, reminders); !slices.Equal(got, want) {
			t.Errorf("%v finds %v, not %v", principal.Of(who), got, want)
		}
	}
	*n.tools = slices.DeleteFunc(*n.tools, func(info tool.Info) bool { return info.Space == "erp@acme" })
	n.catalog.Refresh(t.Context())
	if got := n.find(ada, reminders); len(got) != 0 {
		t.Errorf("of the server's upstream with the same name ada finds %v", got)
	}
}

// TestNoMemberPoisons checks that one member of an organization cannot change what others
// find, while what two agree on helps all.
func TestNoMemberPoisons(t *testing.T) {
	t.Parallel()
	n := open(t, t.TempDir(), usage.Options{})
	ada, bob, eve, new := n.as("key:ada", "acme"), n.as("key:bob", "acme"), n.as("key:eve", "acme"), n.as("key:new", "acme")
	for range 20 {
		n.use(eve, reminders, "z10_exec")
	}
	n.use(ada, reminders, "z20_exec")
	if got := n.find(ada, reminders); !slices.Equal(got, []string{"z20_exec"}) {
		t.Errorf("ada finds %v", got)
	}
	if got := n.find(new, reminders); len(got) != 0 {
		t.Errorf("a new member finds %v", got)
	}
	n.use(bob, reminders, "z20_exec")
	if got := n.find(new, reminders); !slices.Equal(got, []string{"z20_exec"}) {
		t.Errorf("when two agree, a new member finds %v", got)
	}
	if got := n.first(eve, reminders); got != "z10_exec" {
		t.Errorf("eve finds %v", got)
	}
}

func TestUsageIsBounded(t *testing.T) {
	t.Parallel()
	n := open(t, t.TempDir(), usage.Options{Words: 10, AllWords: 20})
	ada := n.as("key:ada", "")
	for i := range 24 {
		who := ada
		if i%2 == 0 {
			who = n.as(fmt.Sprint("key:", i), "")
		}
		n.use(who, fmt.Sprintf("alpha%c beta%c gamma%c", 'a'+i, 'a'+i, 'a'+i), "z10_exec")
	}
	count := 0
	for i := range 24 {
		count += len(n.store.Recall(ada, []string{fmt.Sprintf("alpha%c", 'a'+i), fmt.Sprintf("beta%c", 'a'+i), fmt.Sprintf("gamma%c", 'a'+i)}, n.current))
	}
	if count == 0 || count > 13 {
		t.Errorf("%d words of one caller", count)
	}
	if all, err := n.store.Erase(t.Context()); err != nil || all == 0 || all > 45 {
		t.Errorf("%d words of all callers, %v", all, err)
	}
}

func TestUsageIsErased(t *testing.T) {
	t.Parallel()
	n := open(t, t.TempDir(), usage.Options{})
	ada, bob := n.as("key:ada", ""), n.as("key:bob", "")
	n.use(ada, reminders, "z20_exec")
	n.use(bob, reminders, "z20_exec")
	n.find(ada, "payroll z10_exec")
	if count, err := n.store.Forget(ada); err != nil || count == 0 {
		t.Errorf("forgot %d, %v", count, err)
	}
	n.call(ada, "z10_exec") // the search is forgotten, too
	if got := append(n.find(ada, reminders), n.find(ada, "payroll")...); len(got) != 0 {
		t.Errorf("ada finds %v", got)
	}
	if got := n.first(bob, reminders); got != "z20_exec" {
		t.Errorf("bob finds %v", got)
	}
	if _, err := n.store.Erase(t.Context()); err != nil {
		t.Error(err)
	}
	if got := n.find(bob, reminders); len(got) != 0 {
		t.Errorf("bob finds %v", got)
	}
}

func TestUsageIsSwitchedOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := open(t, dir, usage.Options{})
	n.use(t.Context(), reminders, "z20_exec")
	off := open(t, dir, usage.Options{Off: true})
	off.use(t.Context(), reminders, "z20_exec")
	if got := off.find(t.Context(), reminders); len(got) != 0 {
		t.Errorf("found %v", got)
	}
	again := open(t, dir, usage.Options{})
	if got := again.find(t.Context(), reminders); len(got) != 0 {
		t.Errorf("later found %v", got)
	}
}

// TestSearchWithoutDatabase checks that a search works without the database.
func TestSearchWithoutDatabase(t *testing.T) {
	t.Parallel()
	database := dbtest.Open(t, dbtest.SQLite(t))
	n := openOn(t, database, usage.Options{})
	n.use(t.Context(), reminders, "z20_exec")
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
	if got := n.first(t.Context(), "z20_exec"); got != "z20_exec" {
		t.Errorf("found %v", got)
	}
}

var _ catalog.Usage = (*usage.Store)(nil)

func TestWordsOfASearch(t *testing.T) {
	t.Parallel()
	got := search.Words([]string{`Please send the reminder "for Anna" 4711 to k8s user123456 at https://example.com/x`, "send mails"})
	if want := []string{"send", "reminder", "k8s", "url", "exampl", "com", "mail"}; !slices.Equal(got, want) {
		t.Errorf("words %q", got)
	}
}
