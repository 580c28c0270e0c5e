package server

import (
	"net/http"
	"slices"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/govern/audit"
)

// TestRestartAndReloadReachAllNodes restarts an upstream at one node, and reloads there: the
// other does the same.
func TestRestartAndReloadReachAllNodes(t *testing.T) {
	t.Parallel()
	database := tables.Postgres(t)
	text := "[upstreams.far]\nurl = \"" + serveTools(t, "far", echoTool{}) + "/mcp\"\n"
	a, b := startNode(t, database, "a", text), startNode(t, database, "b", text)
	nodes := []testNode{a, b}
	generations := func() (list [2]uint64) {
		for i, n := range nodes {
			status, _ := n.srv.upstreams.Manager.Status("far")
			list[i] = status.Generation
		}
		return list
	}
	for _, n := range nodes {
		n.await("far", "connected")
	}
	before := generations()
	a.api(http.StatusOK, http.MethodPost, "/upstreams/far/restart", "")
	clocktest.Await(t, func() bool {
		now := generations()
		return now[0] > before[0] && now[1] > before[1]
	})
	if _, err := a.srv.ReloadAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		clocktest.Await(t, func() bool {
			entries, _ := n.srv.audit.Find(t.Context(), audit.Filter{Node: n.srv.node.Name(), Limit: 100})
			return slices.ContainsFunc(entries, func(e audit.Entry) bool { return e.Action == "config.reload" })
		})
	}
}
