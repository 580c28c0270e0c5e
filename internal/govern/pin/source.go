package pin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// checkedList is the result of checking a list. It is never changed.
type checkedList struct {
	version uint64
	from    []tool.Info
	shown   []tool.Info
	tools   map[tool.Ref]*checkedTool
	names   map[string]*checkedTool // hidden tools by every spelling of their names
	naming  *naming
}

// checkedTool is one tool and the result of its check.
type checkedTool struct {
	*content
	info   *tool.Info
	flags  []Finding
	shadow shadow
	pin    *Pin // nil: the upstream is not pinned
}

// allowed is why the tool may not be listed and called; nil: it may.
func (j *checkedTool) allowed() error {
	switch {
	case j.shadow.refused:
		return fault.New(fault.Denied, "tool %s is refused: its name imitates %s", Visible(j.info.Ref.String()), Visible(j.shadow.of)).
			WithHint("ask the author of the server for another name; disabled_tools in its configuration removes the tool")
	case j.pin != nil && j.pin.State() != Approved:
		return notApproved(j.pin)
	default:
		return nil
	}
}

// Tools implements tool.Lister: the tools that callers may see. A list that did not
// change is not checked again.
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

// checkAll checks every tool of a list. checking is held.
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

// content is the scanned definition of a tool. One that did not change is not scanned
// again.
func (r *checkedList) content(info *tool.Info) *content {
	if r != nil {
		if old := r.tools[info.Ref]; old != nil && old.info.Same(info) {
			return old.content
		}
	}
	return contentOf(definitionOf(info))
}

// definitionOf is the definition as the upstream wrote it, or what is known of it.
func definitionOf(info *tool.Info) json.RawMessage {
	if info.Raw != nil {
		return info.Raw
	}
	raw, err := json.Marshal(map[string]any{
		"name": info.Name, "title": info.Title, "description": info.Description,
		"inputSchema": info.Input, "outputSchema": info.Output, "annotations": info.Hints,
	})
	if err != nil { // a schema that is not JSON
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

// CheckCall says why a tool may not be called, by the upstream's name. Of a pinned
// upstream only listed and approved tools may be called.
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
		WithHint("%s is pinned: only tools that it lists and a person has approved can be called", ref.Space)
}

// Refresh has the inner source list a namespace again, if it can.
func (g *Guard) Refresh(ctx context.Context, namespace string) error {
	if r, ok := g.inner.(interface {
		Refresh(ctx context.Context, namespace string) error
	}); ok {
		return r.Refresh(ctx, namespace)
	}
	return nil
}

// has reports whether a namespace is one of the inner source, as far as that can tell.
func (g *Guard) has(namespace string) bool {
	n, ok := g.inner.(interface{ Namespaces() []string })
	return !ok || slices.Contains(n.Namespaces(), namespace)
}

// Namespaces are those of the inner source, if it can tell.
func (g *Guard) Namespaces() []string {
	if n, ok := g.inner.(interface{ Namespaces() []string }); ok {
		return n.Namespaces()
	}
	return nil
}

// WhyHidden says why a tool that an upstream offers is not listed; nil: it is not
// hidden. The name is "space.tool" or "space__tool".
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

// Warnings says how many tools of a namespace are hidden until a person approves them.
func (g *Guard) Warnings(namespace string) []string {
	if n := g.CountHidden(namespace); n > 0 {
		return []string{fmt.Sprintf("%d of its tools await review: luanette pin list %s", n, namespace)}
	}
	return nil
}

// CountHidden counts the tools of a namespace that are not listed.
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

// A server may define a tool otherwise for one person than for others. What is listed for
// all is checked and pinned as usual; what one person has instead is a variant of it.

// Version grows when variants may be decided otherwise.
func (g *Guard) Version() uint64 { return g.version.Load() }

// CheckVariant returns a variant of a listed tool, by the upstream's name, with what is
// suspicious about it; ok is false if it may not be used. Of a pinned upstream only the
// approved definition may.
func (g *Guard) CheckVariant(info *tool.Info) (checked tool.Info, ok bool) {
	c, r := contentOf(definitionOf(info)), g.last.Load()
	if r == nil || r.tools[info.Ref] == nil {
		return *info, g.ModeOf(info.Space) != Pinned
	}
	if r.tools[info.Ref].refuses(c) != nil {
		return *info, false
	}
	return flagged(*info, c.allFindings(&mentions{info.Space, r.naming, ownNames(g.options.Own())})), true
}

// refuses says why a variant of the tool may not be used.
func (j *checkedTool) refuses(variant *content) error {
	if err := j.allowed(); err != nil || j.pin == nil || j.digest == variant.digest {
		return err
	}
	return fault.New(fault.Denied, "tool %s has another definition for you than the approved one", Visible(j.info.Ref.String())).
		WithHint("`luanette pin show %s` shows the approved one", j.pin.ID)
}

// checkPersonal checks a tool as one person's list has it; seen is false if nobody's list
// that was checked has it.
func (g *Guard) checkPersonal(namespace string, raw json.RawMessage, name string) (seen bool, err error) {
	r := g.last.Load()
	if r == nil {
		return false, nil
	}
	j := r.tools[tool.Ref{Space: namespace, Name: name}]
	if j == nil {
		return false, nil
	}
	return true, j.refuses(contentOf(raw))
}

// content is a definition and what its scan found without regard to other tools. It is
// never changed: lists share it while the definition stays the same.
type content struct {
	definition []byte // canonical JSON
	digest     string // its SHA-256
	findings   []Finding
	candidates []candidates
}

// candidates are words in one text of a definition that could be names of tools.
type candidates struct {
	after int // how many findings come before
	at    *place
	names []string
}

// contentOf reads a definition.
func contentOf(raw []byte) *content {
	definition, tree, ok := canonical(raw)
	c := scan(definition, &tree, ok)
	sum := sha256.Sum256(definition)
	c.definition, c.digest = definition, hex.EncodeToString(sum[:])
	return c
}

// allFindings adds the findings that depend on the names of other tools; without m there are
// none. The same definition and names always give the same findings.
func (c *content) allFindings(m *mentions) []Finding {
	if m == nil {
		return c.findings
	}
	all, done := []Finding{}, 0
	for _, found := range c.candidates {
		if at := slices.IndexFunc(found.names, m.foreign); at >= 0 && len(all) < maxFindings {
			all = append(all, c.findings[done:found.after]...)
			all = append(all, Finding{OtherTool, found.at.String(), "it mentions " + found.names[at]})
			done = found.after
		}
	}
	if len(all) == 0 {
		return c.findings
	}
	all = append(all, c.findings[done:]...)
	return slices.Clip(all[:min(len(all), maxFindings)])
}
