package builtin_test

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/builtin/approvaltools"
	"github.com/luanette/luanette/internal/builtin/jobtools"
	"github.com/luanette/luanette/internal/builtin/offertools"
	"github.com/luanette/luanette/internal/builtin/scripttools"
	"github.com/luanette/luanette/internal/builtin/searchtools"
	"github.com/luanette/luanette/internal/builtin/servertools"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/toolset"
)

func TestMain(m *testing.M) {
	clocktest.SetParallel()
	goleak.VerifyTestMain(clocktest.Settled(m))
}

// servers are upstreams inside the test: both their manager and their tools.
type servers struct {
	mu          sync.Mutex
	desired     map[string]upstream.Settings
	fixed       map[string]bool
	offers      map[string][]tool.Info // tools of a server once it is connected
	unreachable map[string]string      // why a server cannot be reached
	tools       []tool.Info
	awaits      int
}

func newServers() *servers {
	return &servers{
		desired: map[string]upstream.Settings{}, fixed: map[string]bool{},
		offers: map[string][]tool.Info{}, unreachable: map[string]string{},
	}
}

// offer sets the tools of a server, by name and input schema.
func (s *servers) offer(namespace string, tools map[string]string) *servers {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offers[namespace] = nil
	for name, schema := range tools {
		s.offers[namespace] = append(s.offers[namespace], tool.Info{
			Ref: tool.Ref{Space: namespace, Name: name}, Description: "Does " + strings.ReplaceAll(name, "_", " ") + ".",
			Input: json.RawMessage(schema),
			Raw:   json.RawMessage(`{"name":"` + name + `","annotations":{"readOnlyHint":true}}`),
		})
	}
	slices.SortFunc(s.offers[namespace], func(a, b tool.Info) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

func (s *servers) Add(_ context.Context, namespace string, u upstream.Settings) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.desired[namespace] = u
	s.list()
	return nil
}

func (s *servers) Remove(_ context.Context, namespace string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, had := s.desired[namespace]
	delete(s.desired, namespace)
	s.list()
	return had, nil
}

// list rebuilds the list of tools. The caller holds mu.
func (s *servers) list() {
	s.tools = nil
	for namespace := range s.desired {
		if s.unreachable[namespace] == "" {
			s.tools = append(s.tools, s.offers[namespace]...)
		}
	}
}

func (s *servers) Namespaces() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.desired {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s *servers) List() []upstreamset.Status {
	all := []upstreamset.Status{}
	for _, name := range s.Namespaces() {
		status, _ := s.Status(name)
		all = append(all, status)
	}
	return all
}

func (s *servers) Status(namespace string) (upstreamset.Status, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.desired[namespace]
	if !ok {
		return upstreamset.Status{}, false
	}
	status := upstreamset.Status{
		Namespace: namespace, Endpoint: u.URL, Transport: "http", State: "connected",
		Tools: len(s.offers[namespace]), Fixed: s.fixed[namespace],
	}
	if trouble := s.unreachable[namespace]; trouble != "" {
		status.State, status.Error, status.Attempt, status.Tools = "reconnecting", trouble, 2, 0
	}
	return status, true
}

func (s *servers) Await(context.Context, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awaits++
}

func (s *servers) Problems() []string { return []string{"mcp.import: open .mcp.json: no such file"} }

func (s *servers) Refresh(_ context.Context, namespace string) ([]tool.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if trouble := s.unreachable[namespace]; trouble != "" {
		return nil, fault.New(fault.Unavailable, "refresh %s: %s", namespace, trouble)
	}
	s.list()
	return s.offers[namespace], nil
}

func (s *servers) Tools(context.Context) ([]tool.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools, nil
}

func (s *servers) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if trouble := s.unreachable[call.Ref.Space]; trouble != "" {
		return tool.Result{}, fault.New(fault.Unavailable, "call %s: %s", call.Ref, trouble)
	}
	if _, ok := s.desired[call.Ref.Space]; !ok {
		return tool.Result{}, fault.New(fault.NotFound, "no upstream %q", call.Ref.Space)
	}
	if call.Args == nil {
		call.Args = json.RawMessage("{}")
	}
	return tool.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"` + call.Ref.String() + `"}],"structuredContent":` +
		string(call.Args) + `,"x-unknown":9007199254740993}`)}, nil
}

// toolFixture is a catalog with the built-in tools and some servers.
type toolFixture struct {
	servers *servers
	catalog *catalog.Catalog
	set     *toolset.Set
	scriptFixture
}

func open(t *testing.T) toolFixture {
	t.Helper()
	s := newServers().
		offer("fs", map[string]string{
			"read_file":  `{"type":"object","properties":{"path":{"type":"string"},"head":{"type":"integer"}},"required":["path"]}`,
			"write-file": `{"type":"object"}`,
		}).
		offer("music", map[string]string{"orpheus_generate": `{"type":"object"}`})
	c := catalog.New(catalog.Options{Sources: []tool.Source{s}})
	scriptFixture := newStudy(t, c)
	set := toolset.NewSet("", servertools.Tools(s, c, nil, nil), offertools.Tools(nil), searchtools.Tools(c, findable(scriptFixture)),
		scripttools.Tools(scriptFixture.runner, scriptFixture.scripts, scriptFixture.published, scriptFixture.sessions),
		builtin.Results(scriptFixture.results, builtin.DefaultShown),
		scripttools.Sessions(scriptFixture.sessions),
		scripttools.Code(scriptFixture.runner, scriptFixture.sessions, scripttools.CodeOptions{Time: clocktest.Timeout}),
		scripttools.Preview(scriptFixture.runner, scriptFixture.sessions, scriptFixture.scripts, c), approvaltools.Tools(nil, scriptFixture.sessions),
		jobtools.Tools(nil, scriptFixture.scripts, scriptFixture.runner), jobtools.Schedules(nil, nil), jobtools.Traces(nil)) // openJobs has a queue
	c.Add(builtin.LimitedSet{Set: set, Keeper: scriptFixture.results, Shown: builtin.DefaultShown})
	c.Add(scriptFixture.published)
	for _, name := range []string{"fs", "music"} {
		if err := s.Add(t.Context(), name, upstream.Settings{URL: "http://127.0.0.1:9/" + name}); err != nil {
			t.Fatal(err)
		}
	}
	return toolFixture{s, c, set, scriptFixture}
}

// findable are the options of the tools that find and call others, without a policy.
func findable(f scriptFixture) searchtools.Options {
	return searchtools.Options{Shapes: f.results, Reads: func(info *tool.Info) bool { return info.Hints.ReadOnly }}
}

// call runs a built-in tool through the catalog, as the hub does, and decodes the
// result.
func (h toolFixture) call(t *testing.T, name, args string) (tool.View, error) {
	t.Helper()
	result, err := h.catalog.Call(t.Context(), tool.Call{Ref: tool.Ref{Name: name}, Args: json.RawMessage(args)})
	if err != nil {
		return tool.View{}, err
	}
	view, err := result.View()
	if err != nil {
		t.Fatal(err)
	}
	if !view.IsError {
		h.checkOutput(t, name, view)
	}
	return view, nil
}

// mustCall is call for calls that must succeed; it decodes the structured result.
func (h toolFixture) mustCall(t *testing.T, name, args string, out any) tool.View {
	t.Helper()
	view, err := h.call(t, name, args)
	if err != nil {
		t.Fatalf("%s %s: %v", name, args, err)
	}
	if view.IsError {
		t.Fatalf("%s %s: %s", name, args, view.Text())
	}
	if out != nil {
		if err := json.Unmarshal(view.Structured, out); err != nil {
			t.Fatal(err)
		}
	}
	return view
}
