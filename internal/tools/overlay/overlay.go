// Package overlay gives the tools of others the names, the order and the looks
// that the owner of the house wants. It is a decorator around the source they
// come from: tools are listed as arranged, and called by either name. Where
// nothing is to be arranged it hands through what it gets.
package overlay

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// Source is a source whose tools are arranged. It is safe for concurrent use.
type Source struct {
	inner tool.Lister
	calls tool.Source

	mu        sync.Mutex
	rules     map[string]Rule
	transform Transform
	version   uint64 // grows with every change of the two
	tickets   uint64 // numbers readings
	last      listing
}

// checkedList is a list that was arranged.
type listing struct {
	ticket, version uint64
	from            []tool.Info
	namespaces      map[string]*namespace
	tools           []tool.Info
}

// namespace is one namespace as it was arranged.
type namespace struct {
	from       []tool.Info
	tools      []tool.Info
	originals  map[string]string    // the owner's name for each, by the one it shows under
	byOriginal map[string]tool.Info // how each shows, by the owner's name
	problems   []string
}

// New applies rules to the tools that inner lists; calls go to the source calls, by the
// upstream's names. Without rules and a transform it changes nothing.
func New(inner tool.Lister, calls tool.Source) *Source {
	return &Source{inner: inner, calls: calls, rules: map[string]Rule{}}
}

// SetRule arranges a namespace, which need not exist yet. It tells whether that
// changes anything.
func (s *Source) SetRule(namespace string, r Rule) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.rules[namespace]
	if old.Priority == r.Priority && maps.Equal(old.Tools, r.Tools) && maps.Equal(old.Aliases, r.Aliases) {
		return false
	}
	if delete(s.rules, namespace); !r.empty() {
		s.rules[namespace] = Rule{r.Priority, maps.Clone(r.Tools), maps.Clone(r.Aliases)}
	}
	s.version++
	return true
}

// SetTransform has every list looked at from now on; nil looks at none.
func (s *Source) SetTransform(look Transform) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.transform = look
	s.version++
}

// Problems tells what of a namespace's rule makes no sense for its tools.
func (s *Source) Problems(namespace string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.last.namespaces[namespace]; one != nil {
		return slices.Clone(one.problems)
	}
	return nil
}

// Tools implements tool.Source. Lists that did not change are not arranged again.
func (s *Source) Tools(ctx context.Context) ([]tool.Info, error) {
	s.mu.Lock()
	s.tickets++
	now := listing{ticket: s.tickets, version: s.version, namespaces: map[string]*namespace{}}
	rules, look, last := maps.Clone(s.rules), s.transform, s.last
	s.mu.Unlock()
	infos, err := s.inner.Tools(ctx)
	if err != nil || len(rules) == 0 && look == nil {
		return infos, err
	}
	if last.version == now.version && sameSlice(last.from, infos) {
		return last.tools, nil
	}
	now.from, now.tools = infos, make([]tool.Info, 0, len(infos))
	for _, part := range bySpace(infos) {
		name := part[0].Space
		one := last.namespaces[name]
		if one == nil || last.version != now.version || !same(one.from, part) {
			one = newNamespace(ctx, name, part, rules[name], look)
		}
		now.namespaces[name] = one
		now.tools = append(now.tools, one.tools...)
	}
	s.store(now)
	return now.tools, nil
}

// add remembers a reading unless a later one was faster.
func (s *Source) store(r listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.ticket > s.last.ticket {
		s.last = r
	}
}

// Namespaces are those of the inner source, where it tells them.
func (s *Source) Namespaces() []string {
	if n, ok := s.inner.(interface{ Namespaces() []string }); ok {
		return n.Namespaces()
	}
	return nil
}

// Call implements tool.Source: the tool's owner is called by its own name for it.
func (s *Source) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	name, err := s.OriginalName(ctx, call.Ref)
	if err != nil {
		return tool.Result{}, err
	}
	call.Ref.Name = name
	return s.calls.Call(ctx, call)
}

// OriginalName is the owner's name of a tool, which is called by that or by the name it
// shows under. The error is a tool_not_found when it shall not be seen.
func (s *Source) OriginalName(ctx context.Context, ref tool.Ref) (string, error) {
	one, looked := s.namespace(ref.Space)
	if one == nil && looked {
		if err := s.fetch(ctx, ref.Space); err != nil {
			return "", err
		}
		one, _ = s.namespace(ref.Space)
	}
	if one == nil { // never listed: the rule alone decides
		s.mu.Lock()
		defer s.mu.Unlock()
		if original, ok := s.rules[ref.Space].Aliases[ref.Name]; ok {
			return original, nil
		}
		return ref.Name, nil
	}
	if original, ok := one.originals[ref.Name]; ok {
		return original, nil
	}
	if _, ok := one.byOriginal[ref.Name]; ok {
		return ref.Name, nil
	}
	return "", fault.New(fault.ToolNotFound, "no tool %q", ref)
}

// ByOriginal is how a tool shows, by its owner's name for it; false when it shall not
// be seen or is not known.
func (s *Source) ByOriginal(ctx context.Context, namespace, name string) (tool.Info, bool) {
	if _, err := s.Tools(ctx); err != nil {
		return tool.Info{}, false
	}
	one, _ := s.namespace(namespace)
	if one == nil {
		return tool.Info{}, false
	}
	info, ok := one.byOriginal[name]
	return info, ok
}

// namespace is a namespace as it was arranged last, or nil, and whether every list
// must be looked at before anybody may use it.
func (s *Source) namespace(name string) (one *namespace, looked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.version != s.version {
		return nil, s.transform != nil
	}
	return s.last.namespaces[name], s.transform != nil
}

// fetch has a namespace listed that was not yet, so that it can be looked at.
func (s *Source) fetch(ctx context.Context, namespace string) error {
	if r, ok := s.inner.(interface {
		Refresh(ctx context.Context, namespace string) error
	}); ok {
		if err := r.Refresh(ctx, namespace); err != nil {
			return err
		}
	}
	_, err := s.Tools(ctx)
	return err
}

func originalOf(info *tool.Info) string {
	if info.Original != "" {
		return info.Original
	}
	return info.Name
}

// bySpace cuts a list into its namespaces.
func bySpace(infos []tool.Info) [][]tool.Info {
	var parts [][]tool.Info
	for begin := 0; begin < len(infos); {
		end := begin + 1
		for end < len(infos) && infos[end].Space == infos[begin].Space {
			end++
		}
		parts = append(parts, infos[begin:end])
		begin = end
	}
	return parts
}

// same tells whether two lists say the same.
func same(a, b []tool.Info) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Stale != b[i].Stale || !a[i].Same(&b[i]) {
			return false
		}
	}
	return true
}

func sameSlice(a, b []tool.Info) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// newNamespace applies the rule, and then the look.
func newNamespace(ctx context.Context, name string, from []tool.Info, rule Rule, look Transform) *namespace {
	one := &namespace{from: from}
	tools := one.applyRule(rule)
	if look != nil {
		if seen, err := look(ctx, name, identified(tools)); err == nil {
			tools = one.applyTransform(tools, seen)
		}
	}
	one.originals, one.byOriginal = make(map[string]string, len(tools)), make(map[string]tool.Info, len(tools))
	for i := range tools {
		original := originalOf(&tools[i])
		if tools[i].Original == tools[i].Name {
			tools[i].Original = ""
		}
		one.originals[tools[i].Name], one.byOriginal[original] = original, tools[i]
	}
	slices.SortFunc(tools, func(a, b tool.Info) int { return strings.Compare(a.Name, b.Name) })
	one.tools = tools
	return one
}

// identified gives every tool its original name to be known by.
func identified(tools []tool.Info) []tool.Info {
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].Original = originalOf(&tools[i])
	}
	return tools
}

var _ tool.Source = (*Source)(nil)
