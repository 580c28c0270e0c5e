package node_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/cluster/node"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// frozen is longer than any delay of a slow machine.
const frozen = time.Hour

func TestMain(m *testing.M) {
	node.FrozenAfter(frozen)
	os.Exit(m.Run())
}

// testWork counts the work of each node.
type testWork struct {
	node    string
	changed chan struct{}

	mu      *sync.Mutex
	owners  map[string]int
	checked int
}

func (e *testWork) Owners(context.Context) (list []string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, n := range e.owners {
		if n > 0 {
			list = append(list, id)
		}
	}
	return list, nil
}

func (e *testWork) TakeOver(_ context.Context, gone []string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range gone {
		e.owners[e.node] += e.owners[id]
		delete(e.owners, id)
	}
	select {
	case e.changed <- struct{}{}:
	default:
	}
	return nil
}

func (e *testWork) Recheck(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.checked++
	select {
	case e.changed <- struct{}{}:
	default:
	}
	return nil
}

// join opens the database as another process would.
func join(t *testing.T, url, name string) (*node.Node, *db.DB) {
	t.Helper()
	return joinWith(t, url, node.Options{Name: name, Version: "1", Silence: silence(url)})
}

func joinWith(t *testing.T, url string, o node.Options) (*node.Node, *db.DB) {
	t.Helper()
	d, err := db.Open(context.WithoutCancel(t.Context()), url, db.Options{OutageTimeout: clocktest.Timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	n, err := node.Join(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	return n, d
}

// each runs a test on an empty database of every kind.
func each(t *testing.T, test func(t *testing.T, url string)) {
	for name, fresh := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, fresh(t))
		})
	}
}

func silence(url string) time.Duration {
	if strings.HasPrefix(url, "sqlite") {
		return 0
	}
	return 2 * time.Second
}

func names(t *testing.T, d *db.DB) (list []string) {
	t.Helper()
	all, err := node.List(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		list = append(list, i.Name)
	}
	slices.Sort(list)
	return list
}

func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		a, d := join(t, url, "box")
		b, _ := join(t, url, "box")
		c, _ := join(t, url, "other")
		if got := names(t, d); !slices.Equal(got, []string{"box", "box-2", "other"}) || b.Name() != "box-2" {
			t.Errorf("nodes %v", got)
		}
		for _, n := range []*node.Node{a, c, b} {
			if err := n.Leave(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if got := names(t, d); len(got) != 0 {
			t.Errorf("left behind: %v", got)
		}
	})
}

// With Options.Only a node's name must be free. Dead nodes have no name.
func TestAChosenNameIsNotShared(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	a, d := join(t, url, "box")
	only := node.Options{Name: "box", Silence: silence(url), Only: true}
	if _, err := node.Join(t.Context(), d, only); fault.CodeOf(err) != fault.Conflict || !strings.Contains(fault.HintOf(err), "--node") {
		t.Errorf("a second one of a chosen name: %v (%s)", err, fault.HintOf(err))
	}
	first, firstDB := join(t, url, "first") // so that its claim is not the one that is free next
	b, _ := join(t, url, "other")
	kill(t, first, firstDB)
	if err := a.Abandon(); err != nil {
		t.Fatal(err)
	}
	rejoin, err := node.Join(t.Context(), d, only)
	if err != nil || rejoin.Name() != "box" {
		t.Fatalf("after its death: %v", err)
	}
	for _, n := range []*node.Node{rejoin, b} {
		if err := n.Leave(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A node that holds its claim but sends no heartbeat for long, because it is frozen for
// instance, counts as dead. A shorter silence does not matter.
func TestAFrozenNodeIsTakenForDead(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	silent, d := join(t, url, "silent")
	heir, _ := join(t, url, "heir")
	for _, step := range []struct {
		after time.Duration // added to the time so far
		want  string
	}{{frozen / 2, "heir,silent"}, {frozen / 2, "heir"}} {
		err := d.Exec(t.Context(), `UPDATE nodes SET beat = beat - $1, started = started - $1 - 1 WHERE id = $2`, step.after.Microseconds(), silent.ID)
		if err != nil {
			t.Fatal(err)
		}
		if err := heir.RemoveDead(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(names(t, d), ","); got != step.want {
			t.Errorf("after %s more: nodes %s, want %s", step.after, got, step.want)
		}
	}
	for _, n := range []*node.Node{silent, heir} {
		if err := n.Leave(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// The work of a dead node goes to another; that of a living node stays.
func TestWorkIsTakenOver(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		dead, deadDB := join(t, url, "dead")
		heir, d := join(t, url, "heir")
		work := &testWork{node: heir.ID, changed: make(chan struct{}, 1), mu: &sync.Mutex{}, owners: map[string]int{dead.ID: 3, heir.ID: 1}}
		heir.Run(t.Context(), work)
		if err := heir.Sweep(t.Context()); err != nil || work.owners[dead.ID] != 3 {
			t.Errorf("the work of a living node was taken over: %v (%v)", work.owners, err)
		}
		kill(t, dead, deadDB)
		<-work.changed
		work.mu.Lock()
		if work.owners[heir.ID] != 4 {
			t.Errorf("owners %v", work.owners)
		}
		work.mu.Unlock()
		if got := names(t, d); !slices.Equal(got, []string{"heir"}) {
			t.Errorf("nodes %v", got)
		}
		if err := heir.Leave(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// kill ends what holds a node's claim, as the death of its process would.
func kill(t *testing.T, n *node.Node, d *db.DB) {
	t.Helper()
	if err := n.Abandon(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// A node that restarts does not report that it is gone itself.
func TestARestartIsNoDeath(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		killed, d := join(t, url, "box")
		kill(t, killed, d)
		var log bytes.Buffer
		again, _ := joinWith(t, url, node.Options{Name: "box", Silence: silence(url), Log: slog.New(slog.NewTextHandler(&log, nil))})
		if again.Name() != "box" || strings.Contains(log.String(), "gone") {
			t.Errorf("%s joined, and logged %q", again.Name(), log.String())
		}
		if err := again.Leave(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A node that restarts gets its claim and its name again at once.
func TestRestartKeepsClaimAndName(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		dead, deadDB := join(t, url, "box")
		kill(t, dead, deadDB)
		again, d := join(t, url, "box")
		if got := names(t, d); !slices.Equal(got, []string{"box"}) || again.ID == dead.ID {
			t.Errorf("nodes %v", got)
		}
		if err := again.Leave(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A node whose row was removed while it was disconnected registers again under its id,
// and checks which work is still its own.
func TestRemovedNodeRegistersAgain(t *testing.T) {
	t.Parallel()
	n, d := join(t, dbtest.Postgres(t), "box")
	work := &testWork{node: n.ID, changed: make(chan struct{}, 1), mu: &sync.Mutex{}, owners: map[string]int{}}
	n.Run(t.Context(), work)
	err := d.Exec(t.Context(), `DELETE FROM nodes`)
	if err != nil {
		t.Fatal(err)
	}
	<-work.changed
	all, err := node.List(t.Context(), d)
	if err != nil || len(all) != 1 || all[0].ID != n.ID || all[0].State != "up" {
		t.Errorf("nodes %v (%v)", all, err)
	}
	n.AnnounceDrain(t.Context())
	if all, err := node.List(t.Context(), d); err != nil || all[0].State != "draining" {
		t.Errorf("nodes %v (%v)", all, err)
	}
	if err := n.Leave(t.Context()); err != nil {
		t.Error(err)
	}
}

// After a restart of the server, claims are lost but nodes are not.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	server := dbtest.StartServer(t)
	const silence = clocktest.Timeout // either may reconnect slowly
	a, d := joinWith(t, server.URL, node.Options{Name: "a", Silence: silence})
	b, _ := joinWith(t, server.URL, node.Options{Name: "b", Silence: silence})
	work := &testWork{node: b.ID, changed: make(chan struct{}, 1), mu: &sync.Mutex{}, owners: map[string]int{a.ID: 1}}
	a.Run(t.Context())
	b.Run(t.Context(), work)
	server.Stop(t, "immediate")
	server.Start(t)
	for _, n := range []*node.Node{a, b} { // a heartbeat of each, with new claims
		clocktest.Await(t, func() bool { return n.Held(t.Context()) == nil })
	}
	if err := b.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if got := names(t, d); !slices.Equal(got, []string{"a", "b"}) || work.owners[a.ID] != 1 {
		t.Errorf("nodes %v, owners %v", got, work.owners)
	}
	for _, n := range []*node.Node{a, b} {
		if err := n.Leave(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
