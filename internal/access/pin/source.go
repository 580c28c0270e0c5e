package pin

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// checkedList is a list that was judged. It is never changed.
type checkedList struct {
	version uint64
	from    []tool.Info
	shown   []tool.Info
	tools   map[tool.Ref]*checkedTool
	names   map[string]*checkedTool // by every way to write the name of what is not shown
	naming  *naming
}

// checkedTool is one tool and what became of it.
type checkedTool struct {
	*content
	info   *tool.Info
	flags  []Finding
	shadow shadow
	pin    *Pin // nil where nothing is pinned
}

// allowed tells whether the tool may be seen and called, or why not.
func (j *checkedTool) allowed() error {
	switch {
	case j.shadow.refused:
		return fault.New(fault.Denied, "tool %s is refused: its name passes for %s", Visible(j.info.Ref.String()), Visible(j.shadow.of)).
			WithHint("ask the server's maker for another name; disabled_tools in its configuration takes it off the list")
	case j.pin != nil && j.pin.State() != Approved:
		return notApproved(j.pin)
	default:
		return nil
	}
}

// Tools implements tool.Lister: the tools that callers may see. A list that did not change is
// not judged again.
func (g *Guard) Tools(ctx context.Context) ([]tool.Info, error) {
	infos, err := g.inner.Tools(ctx)
	if err != nil {
		return infos, err
	}
	return g.check(ctx, infos).shown, nil
}

func (g *Guard) check(ctx context.Context, infos []tool.Info) *checkedList {
	if last := g.last.Load(); last.current(g.version.Load(), infos) {
		return last
	}
	g.checking.Lock()
	defer g.checking.Unlock()
	version := g.version.Load()
	last := g.last.Load()
	if last.current(version, infos) {
		return last
	}
	now := g.checkAll(ctx, infos, last)
	now.version = version
	g.last.Store(now)
	return now
}

func (r *checkedList) current(version uint64, infos []tool.Info) bool {
	return r != nil && r.version == version && len(r.from) == len(infos) && (len(infos) == 0 || &r.from[0] == &infos[0])
}

// checkAll judges every tool of a list. judging is held.
func (g *Guard) checkAll(ctx context.Context, infos []tool.Info, last *checkedList) *checkedList {
	g.mu.Lock()
	settings := g.settings
	g.mu.Unlock()
	own := g.options.Own()
	now := &checkedList{from: infos, tools: make(map[tool.Ref]*checkedTool, len(infos)), names: map[string]*checkedTool{}, naming: last.namingFor(infos)}
	shadowing, ours := shadows(infos, now.naming, own, &settings), ownNames(own)
	var fresh []*checkedTool
	for i := range infos {
		info := &infos[i]
		j := &checkedTool{content: last.content(info), info: info, shadow: shadowing[info.Ref]}
		j.flags = j.content.allFindings(&mentions{info.Space, now.naming, ours})
		if j.shadow.of != "" {
			j.flags = append(j.flags, j.shadow.finding())
		}
		now.tools[info.Ref] = j
		if settings.mode(info.Space) == Pinned {
			fresh = append(fresh, j)
		} else {
			g.reportFlags(j)
		}
	}
	g.pin(ctx, fresh)
	now.shown = make([]tool.Info, 0, len(infos))
	for i := range infos {
		j := now.tools[infos[i].Ref]
		if j.allowed() == nil {
			now.shown = append(now.shown, flagged(infos[i], j.flags))
			continue
		}
		now.names[infos[i].Ref.String()] = j
		now.names[infos[i].Space+"__"+infos[i].Name] = j
	}
	return now
}

// content is what a tool's definition says. One that did not change is not read
// again.
func (r *checkedList) content(info *tool.Info) *content {
	if r != nil {
		if old := r.tools[info.Ref]; old != nil && old.info.Same(info) {
			return old.content
		}
	}
	return contentOf(definitionOf(info))
}

// definitionOf is a tool as its owner wrote it, or as we know it.
func definitionOf(info *tool.Info) json.RawMessage {
	if info.Raw != nil {
		return info.Raw
	}
	raw, err := json.Marshal(map[string]any{
		"name": info.Name, "title": info.Title, "description": info.Description,
		"inputSchema": info.Input, "outputSchema": info.Output, "annotations": info.Hints,
	})
	if err != nil { // a schema that is no JSON
		return json.RawMessage(info.Name + "\x00" + info.Description + "\x00" + string(info.Input) + "\x00" + string(info.Output))
	}
	return raw
}

func flagged(info tool.Info, flags []Finding) tool.Info {
	if len(flags) == 0 {
		return info
	}
	info.Flags = nil
	for _, f := range flags {
		if !slices.Contains(info.Flags, string(f.Code)) {
			info.Flags = append(info.Flags, string(f.Code))
		}
	}
	return info
}

// CheckCall says why a tool may not be called, by its owner's name for it.
func (g *Guard) CheckCall(ctx context.Context, ref tool.Ref) error {
	r := g.last.Load()
	if r == nil || r.version != g.version.Load() {
		if _, err := g.Tools(ctx); err != nil {
			return err
		}
		r = g.last.Load()
	}
	if j := r.tools[ref]; j != nil {
		return j.allowed()
	}
	if g.ModeOf(ref.Space) != Pinned || !g.has(ref.Space) {
		return nil
	}
	if err := g.Refresh(ctx, ref.Space); err != nil { // it was not listed yet
		return err
	}
	if _, err := g.Tools(ctx); err != nil {
		return err
	}
	if j := g.last.Load().tools[ref]; j != nil {
		return j.allowed()
	}
	return fault.New(fault.ToolNotFound, "no tool %q", Visible(ref.String())).
		WithHint("%s is pinned: only what it lists, and somebody approved, can be called", ref.Space)
}

// Refresh has the inner source list a namespace anew, where it can.
func (g *Guard) Refresh(ctx context.Context, namespace string) error {
	if r, ok := g.inner.(interface {
		Refresh(ctx context.Context, namespace string) error
	}); ok {
		return r.Refresh(ctx, namespace)
	}
	return nil
}

// has tells whether a namespace is one of the inner source, as far as that can tell.
func (g *Guard) has(namespace string) bool {
	n, ok := g.inner.(interface{ Namespaces() []string })
	return !ok || slices.Contains(n.Namespaces(), namespace)
}

// Namespaces are those of the inner source, where it tells them.
func (g *Guard) Namespaces() []string {
	if n, ok := g.inner.(interface{ Namespaces() []string }); ok {
		return n.Namespaces()
	}
	return nil
}

// WhyHidden says why there is no tool of a name that an upstream does offer; nil
// when it is not our doing. The name is "space.tool" or "space__tool".
func (g *Guard) WhyHidden(name string) error {
	r := g.last.Load()
	if r == nil {
		return nil
	}
	if j := r.names[name]; j != nil {
		return j.allowed()
	}
	return nil
}

// AwaitingReview counts what of a namespace is not shown.
func (g *Guard) CountHidden(namespace string) (n int) {
	if r := g.last.Load(); r != nil {
		for ref, j := range r.tools {
			if ref.Space == namespace && j.allowed() != nil {
				n++
			}
		}
	}
	return n
}

var _ tool.Lister = (*Guard)(nil)
