package catalog_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(clocktest.Settled(m)) }

// answer is what a tool does when it is called.
type answer func(ctx context.Context, call tool.Call) (tool.Result, error)

// memory is a source of tools that live in the test.
type memory struct {
	mu      sync.Mutex
	tools   []tool.Info
	answers map[tool.Ref]answer
	spaces  []string
	err     error
	calls   []tool.Call
}

func newMemory() *memory { return &memory{answers: map[tool.Ref]answer{}} }

// with adds a tool; the answer nil echoes the arguments.
func (m *memory) with(space, name, schema string, a answer) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	ref := tool.Ref{Space: space, Name: name}
	if schema == "" {
		schema = `{"type":"object"}`
	}
	if a == nil {
		a = echo
	}
	raw := fmt.Sprintf(`{"name":%q,"x-kept":9007199254740993,"inputSchema":%s}`, name, schema)
	m.tools = append(slices.Clone(m.tools), tool.Info{
		Ref: ref, Description: "does " + name, Input: json.RawMessage(schema), Raw: json.RawMessage(raw),
	})
	slices.SortFunc(m.tools, func(a, b tool.Info) int {
		return cmp.Or(cmp.Compare(a.Space, b.Space), cmp.Compare(a.Name, b.Name))
	})
	m.answers[ref] = a
	return m
}

func (m *memory) without(ref tool.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tools = slices.DeleteFunc(slices.Clone(m.tools), func(i tool.Info) bool { return i.Ref == ref })
}

func (m *memory) breakWith(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func (m *memory) Tools(context.Context) ([]tool.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tools, m.err
}

func (m *memory) Namespaces() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spaces
}

func (m *memory) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	m.mu.Lock()
	m.calls = append(m.calls, call)
	a := m.answers[call.Ref]
	m.mu.Unlock()
	if a == nil {
		return tool.Result{}, fault.New(fault.Unavailable, "call %s: still connecting", call.Ref)
	}
	return a(ctx, call)
}

func (m *memory) called() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.calls)
}

func echo(_ context.Context, call tool.Call) (tool.Result, error) {
	return tool.Output(call.Ref.String(), call.Args)
}

func fail(code fault.Code) answer {
	return func(_ context.Context, call tool.Call) (tool.Result, error) {
		return tool.Result{}, fault.New(code, "call %s: broken", call.Ref)
	}
}

func ref(space, name string) tool.Ref { return tool.Ref{Space: space, Name: name} }

// call makes a call; no args at all for the empty string.
func call(space, name, args string) tool.Call {
	if args == "" {
		return tool.Call{Ref: ref(space, name)}
	}
	return tool.Call{Ref: ref(space, name), Args: json.RawMessage(args)}
}

// wantFault checks an error's code and returns the fault.
func wantFault(t *testing.T, err error, code fault.Code) *fault.Error {
	t.Helper()
	if err == nil || fault.CodeOf(err) != code {
		t.Fatalf("error = %v (%s), want code %s", err, fault.CodeOf(err), code)
	}
	return fault.From(err)
}

func names(tools []tool.Info) []string {
	all := make([]string, len(tools))
	for i := range tools {
		all[i] = tools[i].Ref.String()
	}
	return all
}

func listed(t *testing.T, s tool.Source) []string {
	t.Helper()
	tools, err := s.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return names(tools)
}

func open(o catalog.Options, sources ...tool.Source) *catalog.Catalog {
	o.Sources = append(o.Sources, sources...)
	return catalog.New(o)
}
