package overlay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// listSource is a source whose list the test changes.
type listSource struct {
	tools   []tool.Info
	called  []string
	fetched int
}

func (s *listSource) Tools(context.Context) ([]tool.Info, error) { return s.tools, nil }

func (s *listSource) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	s.called = append(s.called, call.Ref.String())
	return tool.Output("done", nil)
}

// lateSource is a listSource that has tools only after Refresh.
type lateSource struct {
	listSource
	refreshed []tool.Info
}

func (l *lateSource) Refresh(context.Context, string) error {
	l.fetched++
	l.tools = l.refreshed
	return nil
}

// infos makes tools with the given names, such as "space.tool".
func infos(names ...string) []tool.Info {
	var all []tool.Info
	for _, name := range names {
		space, own, _ := strings.Cut(name, ".")
		all = append(all, tool.Info{
			Ref: tool.Ref{Space: space, Name: own}, Description: "does " + own,
			Raw: json.RawMessage(`{"name":"` + own + `","description":"does ` + own + `","x":1}`),
		})
	}
	return all
}

func listed(t *testing.T, s tool.Source) []string {
	t.Helper()
	tools, err := s.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, info := range tools {
		name := info.Ref.String()
		if info.Original != "" {
			name += "=" + info.Original
		}
		names = append(names, name)
	}
	return names
}

func TestWithoutRules(t *testing.T) {
	t.Parallel()
	inner := &listSource{tools: infos("a.x", "a.y")}
	tools, err := overlay.New(inner, inner).Tools(t.Context())
	if err != nil || &tools[0] != &inner.tools[0] {
		t.Errorf("the list is not passed on unchanged: %v", err)
	}
}

func TestAliases(t *testing.T) {
	t.Parallel()
	inner := &listSource{tools: infos("a.read_file", "a.write", "b.read_file")}
	s := overlay.New(inner, inner)
	if !s.SetRule("a", overlay.Rule{Priority: 2, Tools: map[string]int{"read_file": 3, "wirte": 1}, Aliases: map[string]string{"read": "read_file", "write": "read_file2", "see": "write"}}) {
		t.Error("a new rule changes nothing")
	}
	if got, want := listed(t, s), []string{"a.read=read_file", "a.see=write", "b.read_file"}; !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	tools, _ := s.Tools(t.Context())
	if tools[0].Priority != 5 || tools[1].Priority != 2 || tools[2].Priority != 0 {
		t.Errorf("priorities of %+v", tools)
	}
	again, _ := s.Tools(t.Context())
	if &again[0] != &tools[0] {
		t.Error("an unchanged list was built again")
	}
	for _, name := range []string{"read", "read_file"} {
		if _, err := s.Call(t.Context(), tool.Call{Ref: tool.Ref{Space: "a", Name: name}}); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"a.read_file", "a.read_file"}; !slices.Equal(inner.called, want) {
		t.Errorf("called %q, want %q", inner.called, want)
	}
	if got := strings.Join(s.Problems("a"), "\n"); !strings.Contains(got, `"wirte"; did you mean "write"?`) || !strings.Contains(got, `"read_file2" for alias "write"`) {
		t.Errorf("problems:\n%s", got)
	}
	if s.SetRule("a", overlay.Rule{}); !slices.Equal(listed(t, s), []string{"a.read_file", "a.write", "b.read_file"}) {
		t.Errorf("without its rule: %q", listed(t, s))
	}
}

func TestAliasDoesNotShadow(t *testing.T) {
	t.Parallel()
	inner := &listSource{tools: infos("a.read", "a.read_file")}
	s := overlay.New(inner, inner)
	s.SetRule("a", overlay.Rule{Aliases: map[string]string{"read": "read_file"}})
	if got := listed(t, s); !slices.Equal(got, []string{"a.read", "a.read_file"}) {
		t.Errorf("listed %q", got)
	}
	if got := s.Problems("a"); len(got) != 1 || !strings.Contains(got[0], "another tool has that name") {
		t.Errorf("problems %q", got)
	}
}

func TestRuleThatDoesNotFit(t *testing.T) {
	t.Parallel()
	for name, aliases := range map[string]map[string]string{
		"no name":     {"a b": "x"},
		"of nothing":  {"a": ""},
		"of itself":   {"a": "a"},
		"two for one": {"a": "x", "b": "x"},
	} {
		if err := (overlay.Rule{Aliases: aliases}).Validate(); fault.CodeOf(err) != fault.Config || fault.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (overlay.Rule{Aliases: map[string]string{"read": "read_file"}}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestRuleOverAnother(t *testing.T) {
	t.Parallel()
	below := overlay.Rule{Priority: 1, Tools: map[string]int{"x": 1, "y": 1}, Aliases: map[string]string{"a": "x", "b": "y"}}
	got := below.OverriddenBy(overlay.Rule{Priority: 2, Tools: map[string]int{"x": 5}, Aliases: map[string]string{"c": "x"}})
	if got.Priority != 3 || got.Tools["x"] != 5 || got.Tools["y"] != 1 || len(got.Aliases) != 2 || got.Aliases["c"] != "x" || got.Validate() != nil {
		t.Errorf("%+v", got)
	}
	if below.Tools["x"] != 1 || below.Aliases["a"] != "x" {
		t.Errorf("Over changed its receiver: %+v", below)
	}
}

func TestTransform(t *testing.T) {
	t.Parallel()
	inner := &listSource{tools: infos("a.x", "a.y", "a.z", "b.x")}
	s := overlay.New(inner, inner)
	s.SetRule("a", overlay.Rule{Aliases: map[string]string{"ex": "x"}})
	transforms := 0
	s.SetTransform(func(_ context.Context, namespace string, tools []tool.Info) ([]tool.Info, error) {
		transforms++
		if namespace == "b" {
			return nil, errors.New("transform failed")
		}
		tools[0].Description = "changed"            // x, which shows as ex
		tools[1].Name, tools[1].Priority = "why", 4 // y
		unknown := tool.Info{Ref: tool.Ref{Name: "s"}, Original: "s"}
		return []tool.Info{tools[0], tools[1], unknown}, nil // z is hidden
	})
	if got, want := listed(t, s), []string{"a.ex=x", "a.why=y", "b.x"}; !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	tools, _ := s.Tools(t.Context())
	if tools[0].Description != "changed" || string(tools[0].Raw) != `{"name":"x","description":"changed","x":1}` || tools[1].Priority != 4 {
		t.Errorf("got %+v", tools[:2])
	}
	if inner.tools[0].Description != "does x" {
		t.Error("the owner's definition was changed")
	}
	if transforms != 2 {
		t.Errorf("transformed %d times, with two namespaces", transforms)
	}
	for name, want := range map[string]fault.Code{"ex": "", "x": "", "why": "", "y": "", "z": fault.ToolNotFound, "s": fault.ToolNotFound} {
		if _, err := s.Call(t.Context(), tool.Call{Ref: tool.Ref{Space: "a", Name: name}}); err == nil && want != "" || err != nil && fault.CodeOf(err) != want {
			t.Errorf("call of %s: %v", name, err)
		}
	}
	if info, ok := s.ByOriginal(t.Context(), "a", "y"); !ok || info.Name != "why" {
		t.Errorf("y shows as %+v", info)
	}
	if _, ok := s.ByOriginal(t.Context(), "a", "z"); ok {
		t.Error("z is shown")
	}
}

func TestTransformRefusesShadowing(t *testing.T) {
	t.Parallel()
	inner := &listSource{tools: infos("a.x", "a.y", "a.z")}
	s := overlay.New(inner, inner)
	s.SetTransform(func(_ context.Context, _ string, tools []tool.Info) ([]tool.Info, error) {
		tools[0].Name = "y"     // is another's
		tools[1].Name = "a b c" // is none
		tools[2].Name = "fine"
		return tools, nil
	})
	if got, want := listed(t, s), []string{"a.fine=z", "a.x", "a.y"}; !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	if got := s.Problems("a"); len(got) != 2 {
		t.Errorf("problems %q", got)
	}
}

// The transform sees a namespace before its tools are used for the first time.
func TestTransformBeforeFirstUse(t *testing.T) {
	t.Parallel()
	inner := &lateSource{refreshed: infos("a.x", "a.secret")}
	s := overlay.New(inner, inner)
	s.SetTransform(func(_ context.Context, _ string, tools []tool.Info) ([]tool.Info, error) {
		return slices.DeleteFunc(tools, func(i tool.Info) bool { return i.Name == "secret" }), nil
	})
	_, err := s.Call(t.Context(), tool.Call{Ref: tool.Ref{Space: "a", Name: "secret"}})
	if fault.CodeOf(err) != fault.ToolNotFound || inner.fetched != 1 || len(inner.called) != 0 {
		t.Errorf("error %v, fetched %d times, called %q", err, inner.fetched, inner.called)
	}
	if _, err := s.Call(t.Context(), tool.Call{Ref: tool.Ref{Space: "a", Name: "x"}}); err != nil {
		t.Error(err)
	}
}

// absentSource has no namespaces at all.
type absentSource struct{ listSource }

func (absentSource) Refresh(_ context.Context, namespace string) error {
	return fault.New(fault.NotFound, "no upstream %q", namespace)
}

// The transform does not refuse tools of namespaces that the source does not have, such as
// those of the music tools in this process.
func TestTransformIsOfTheSource(t *testing.T) {
	t.Parallel()
	inner := &absentSource{}
	s := overlay.New(inner, inner)
	s.SetTransform(func(_ context.Context, _ string, tools []tool.Info) ([]tool.Info, error) { return tools, nil })
	if name, err := s.OriginalName(t.Context(), tool.Ref{Space: "music", Name: "play"}); name != "play" || err != nil {
		t.Errorf("the original name is %q, %v", name, err)
	}
}

// BenchmarkOneChanged measures listing many tools after one of them has changed.
func BenchmarkOneChanged(b *testing.B) {
	var tools []tool.Info
	for i := range 10_000 {
		tools = append(tools, tool.Info{
			Ref:         tool.Ref{Space: fmt.Sprintf("space%02d", i/200), Name: fmt.Sprintf("tool_%05d", i)},
			Description: "A tool.", Input: json.RawMessage(`{"type":"object"}`), Raw: json.RawMessage(`{"name":"x"}`),
		})
	}
	inner := &listSource{tools: tools}
	s := overlay.New(inner, inner)
	s.SetRule("space07", overlay.Rule{Priority: 3, Aliases: map[string]string{"mine": "tool_01500"}})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		inner.tools = slices.Clone(inner.tools)
		inner.tools[0].Description = fmt.Sprint("now ", i)
		if _, err := s.Tools(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// TestVariant checks that another definition of a tool is named, worded and hidden like the
// listed one.
func TestVariant(t *testing.T) {
	t.Parallel()
	inner := &listSource{tools: infos("a.x", "a.y")}
	s := overlay.New(inner, inner)
	s.SetRule("a", overlay.Rule{Priority: 2, Aliases: map[string]string{"ex": "x"}})
	other := tool.Info{Ref: tool.Ref{Space: "a", Name: "x"}, Description: "does x for ann", Raw: json.RawMessage(`{"name":"x","description":"does x for ann"}`)}
	tools, _ := s.Tools(t.Context())
	got, ok := s.Variant(t.Context(), &tools[0], other)
	if !ok || got.Name != "ex" || got.Original != "x" || got.Priority != 2 || got.Description != other.Description {
		t.Errorf("by the rule: %+v, %v", got, ok)
	}
	before := s.Version()
	s.SetTransform(func(_ context.Context, _ string, tools []tool.Info) (kept []tool.Info, _ error) {
		for _, info := range tools {
			if !strings.Contains(info.Description, "bob") {
				info.Description += ", seen"
				kept = append(kept, info)
			}
		}
		return kept, nil
	})
	tools, _ = s.Tools(t.Context())
	if got, ok = s.Variant(t.Context(), &tools[0], other); !ok || got.Description != "does x for ann, seen" || !strings.Contains(string(got.Raw), "ann, seen") || s.Version() == before {
		t.Errorf("by the transform: %+v, %v", got, ok)
	}
	other.Description = "does x for bob"
	if _, ok = s.Variant(t.Context(), &tools[0], other); ok {
		t.Error("what the transform hides is shown")
	}
}
