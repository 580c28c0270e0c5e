// Package overlay changes the names, order, titles and descriptions of upstream tools,
// by rules of the configuration and by a transform of startup.lua. It is a decorator
// around the source of the tools: they are listed under their new names, and called by
// the new or the original name. Without rules it changes nothing.
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

// Source is a source of tools to which rules apply. It is safe for concurrent use.
type Source struct {
	inner tool.Lister
	calls tool.Source

	mu        sync.Mutex
	rules     map[string]Rule
	transform Transform
	version   uint64 // grows when rules or transform change
	tickets   uint64 // numbers listings
	last      listing
}

// listing is a list to which the rules were applied.
type listing struct {
	ticket, version uint64
	from            []tool.Info
	namespaces      map[string]*namespace
	tools           []tool.Info
}

// namespace is the tools of one namespace, with the rules applied.
type namespace struct {
	from       []tool.Info
	tools      []tool.Info
	originals  map[string]string    // the upstream's name of each tool, by its name here
	byOriginal map[string]tool.Info // each tool by the upstream's name
	problems   []string
}

// New applies rules to the tools that inner lists; calls go to the source calls, by the
// upstream's names. Without rules and a transform it changes nothing.
func New(inner tool.Lister, calls tool.Source) *Source {
	return &Source{inner: inner, calls: calls, rules: map[string]Rule{}}
}

// SetRule sets the rule of a namespace, which need not exist yet. It tells whether that
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

// SetTransform sets the transform of every list; nil sets none.
func (s *Source) SetTransform(transform Transform) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.transform = transform
	s.version++
}

// Problems lists what in a namespace's rule does not fit its tools.
func (s *Source) Problems(namespace string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.last.namespaces[namespace]; one != nil {
		return slices.Clone(one.problems)
	}
	return nil
}

// Tools implements tool.Source. The rules are applied again only to lists that changed.
func (s *Source) Tools(ctx context.Context) ([]tool.Info, error) {
	s.mu.Lock()
	s.tickets++
	now := listing{ticket: s.tickets, version: s.version, namespaces: map[string]*namespace{}}
	rules, transform, last := maps.Clone(s.rules), s.transform, s.last
	s.mu.Unlock()
	infos, err := s.inner.Tools(ctx)
	if err != nil || len(rules) == 0 && transform == nil {
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
			one = newNamespace(ctx, name, part, rules[name], transform)
		}
		now.namespaces[name] = one
		now.tools = append(now.tools, one.tools...)
	}
	s.store(now)
	return now.tools, nil
}

// store saves a listing unless a later one was faster.
func (s *Source) store(r listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.ticket > s.last.ticket {
		s.last = r
	}
}

// Namespaces are those of the inner source, if it can tell.
func (s *Source) Namespaces() []string {
	if n, ok := s.inner.(interface{ Namespaces() []string }); ok {
		return n.Namespaces()
	}
	return nil
}

// Call implements tool.Source: it calls the tool by the upstream's name.
func (s *Source) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	name, err := s.OriginalName(ctx, call.Ref)
	if err != nil {
		return tool.Result{}, err
	}
	call.Ref.Name = name
	return s.calls.Call(ctx, call)
}

// OriginalName is the upstream's name of a tool, given that name or the name here. The
// error is a tool_not_found when the transform hides the tool.
func (s *Source) OriginalName(ctx context.Context, ref tool.Ref) (string, error) {
	one, transforms := s.namespace(ref.Space)
	if one == nil && transforms {
		if err := s.fetch(ctx, ref.Space); err != nil && fault.CodeOf(err) != fault.NotFound { // of the tools of this process it knows none
			return "", err
		}
		one, _ = s.namespace(ref.Space)
	}
	if one == nil { // never listed: only the rule can tell
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

// ByOriginal is a tool by the upstream's name; false when it is hidden or not known.
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

// Version grows when rules or the transform change.
func (s *Source) Version() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// namespace is the last listing of a namespace, or nil, and whether a transform must
// see every list before it is used.
func (s *Source) namespace(name string) (one *namespace, transforms bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.version != s.version {
		return nil, s.transform != nil
	}
	return s.last.namespaces[name], s.transform != nil
}

// fetch has a namespace listed that was not listed yet, so that the transform can see
// it.
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

// bySpace splits a list by namespace.
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

// same tells whether two lists are equal.
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

// newNamespace applies the rule, then the transform.
func newNamespace(ctx context.Context, name string, from []tool.Info, rule Rule, transform Transform) *namespace {
	one := &namespace{from: from}
	tools := one.applyRule(rule)
	if transform != nil {
		if seen, err := transform(ctx, name, identified(tools)); err == nil {
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

// identified sets Original on every tool, so that the transform can tell them apart.
func identified(tools []tool.Info) []tool.Info {
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].Original = originalOf(&tools[i])
	}
	return tools
}

var _ tool.Source = (*Source)(nil)

// CheckCalls refuses relayed calls of tools that the transform hides. Other calls do
// not find such tools in the catalog.
func (s *Source) CheckCalls() tool.Step {
	return tool.Step{Name: "overlay", ChecksOnly: true, Before: func(ctx context.Context, i *tool.Invocation) (context.Context, error) {
		if !i.Relayed || i.Call.Kind != "" || !s.transforms() {
			return ctx, nil
		}
		_, err := s.OriginalName(ctx, i.Call.Ref)
		return ctx, err
	}}
}

// transforms tells whether a transform is set.
func (s *Source) transforms() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.transform != nil
}
