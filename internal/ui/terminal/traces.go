package terminal

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
)

// trace is a request as /api/v1/traces lists it.
type trace struct {
	ID       plain         `json:"trace_id"`
	Name     plain         `json:"name"`
	Start    time.Time     `json:"start"`
	Duration time.Duration `json:"duration_ns"`
	Failed   bool          `json:"failed"`
	Count    int           `json:"span_count"`
	Tools    []plain       `json:"tools"`
	Spans    []span        `json:"spans"`
}

// span is one operation of a trace.
type span struct {
	ID         string           `json:"span_id"`
	Parent     string           `json:"parent_id"`
	Name       plain            `json:"name"`
	Start      time.Time        `json:"start"`
	Duration   time.Duration    `json:"duration_ns"`
	Failed     bool             `json:"failed"`
	Error      plain            `json:"error"`
	Attributes map[string]plain `json:"attributes"`
}

func loadTraces(ctx context.Context, s *server, _ time.Time) (store, error) {
	var response struct{ Traces []trace }
	err := s.get(ctx, "/api/v1/traces?limit=1000", &response)
	return func(b *state) { b.traces = response.Traces }, err
}

// routine are the requests that clients and dashboards repeat.
var routine = lazyregexp.New(`^((tools|prompts|resources)/(list|templates)|server/discover|ping|initialize|notifications/|completion/|logging/)`)

// isWork reports whether a user asked for the request.
func (t *trace) isWork() bool {
	if t.Failed {
		return true
	}
	if routine().MatchString(string(t.Name)) {
		return false
	}
	tool, isCall := strings.CutPrefix(string(t.Name), "tools/call ")
	return !isCall || t.Count > 2 || !slices.Contains(ownTools, plain(tool))
}

// concerns reports whether the request called the server or the tool of a scope.
func (t *trace) concerns(of scope) bool {
	switch {
	case of.tool != "":
		return slices.Contains(t.Tools, of.tool) || t.Name == "tools/call "+of.tool
	case of.server != "":
		return slices.ContainsFunc(t.Tools, func(tool plain) bool { return strings.HasPrefix(string(tool), string(of.server)+".") })
	}
	return of.all || t.isWork()
}

// tracesView lists recent requests, the newest first.
type tracesView struct{}

func (tracesView) name() string { return "traces" }

func (tracesView) columns() []column {
	return []column{
		{title: "Began", width: 8},
		{title: "Result", width: 7},
		{title: "Duration", width: 9, right: true},
		{title: "Spans", width: 6, right: true, from: 76},
		{title: "Method", width: 24},
		{title: "Tools", from: 60},
		{title: "trace", width: 32, from: 140},
	}
}

func (tracesView) rows(b *state, of scope, now time.Time) (rows []row) {
	for i := range b.traces {
		t := &b.traces[i]
		if !t.concerns(of) {
			continue
		}
		result := cell{text: "ok", style: green}
		if t.Failed {
			result = cell{text: "failed", style: red}
		}
		rows = append(rows, row{string(t.ID), []cell{
			moment(t.Start, now), result, lasting(t.Duration), number(t.Count), {text: t.Name}, {text: plain(strings.Join(texts(t.Tools), ", ")), style: bold}, {text: t.ID, style: faint},
		}})
	}
	return rows
}

// showTraces lists the traces of a server or a tool.
func (m *model) showTraces(of scope) tea.Cmd {
	return m.push(&table{view: tracesView{}, of: of, name: "traces of " + of.title()})
}

// open shows a trace as a waterfall.
func (tracesView) open(m *model, _ scope, row string) tea.Cmd {
	return m.push(&document{name: "trace " + beginning(plain(row)), row: row, load: func(ctx context.Context) (body, error) {
		var t trace
		err := m.server.get(ctx, "/api/v1/traces/"+url.PathEscape(row), &t)
		if fault.CodeOf(err) == fault.NotFound {
			err = fault.New(fault.NotFound, "this trace is not stored any more").WithHint("hud.recent_traces in luanette.toml sets how many are")
		}
		return func(_ *state, width int, now time.Time) []styled { return t.text(width, now) }, err
	}})
}

// text is the trace as a waterfall, then the attributes of its spans.
func (t *trace) text(width int, now time.Time) []styled {
	all := slices.Concat(field("request", t.Name), field("began", clockTime(t.Start, now)), field("duration", short(t.Duration)),
		field("tools", strings.Join(texts(t.Tools), ", ")), field("trace", t.ID))
	nested := t.nested()
	bars := make([]timeBar, len(nested))
	for i, n := range nested {
		bars[i] = timeBar{label: plain(strings.Repeat("  ", min(n.depth, deepest))) + n.Name, from: n.Start.Sub(t.Start), took: n.Duration, total: t.Duration}
		if n.Failed {
			bars[i].problem = cmp.Or(n.Error, "failed")
		}
	}
	all = slices.Concat(all, heading("Spans"), waterfall(bars, width))
	if more := t.Count - len(t.Spans); more > 0 {
		all = append(all, styled{plain(counted(more, "more span is", "more spans are") + " not stored"), faint})
	}
	for _, n := range nested {
		if len(n.Attributes) > 0 {
			all = append(all, heading(n.Name)...)
		}
		for _, name := range slices.Sorted(maps.Keys(n.Attributes)) {
			all = append(all, styled{"  " + clean(name) + " = " + n.Attributes[name], faint})
		}
	}
	return all
}

// deepest is how far spans are indented.
const deepest = 10

// nestedSpan is a span below its parents.
type nestedSpan struct {
	*span
	depth int
}

// nested are the spans, each after its parent. A span without a known parent is at the
// top; each span appears once, also if parents form a cycle.
func (t *trace) nested() (all []nestedSpan) {
	below := map[string][]*span{}
	known := map[string]bool{}
	for i := range t.Spans {
		known[t.Spans[i].ID] = true
	}
	for i := range t.Spans {
		parent := t.Spans[i].Parent
		if !known[parent] {
			parent = ""
		}
		below[parent] = append(below[parent], &t.Spans[i])
	}
	var add func(parent string, depth int)
	add = func(parent string, depth int) {
		children := below[parent]
		delete(below, parent)
		for _, s := range children {
			all = append(all, nestedSpan{s, depth})
			if s.ID != "" {
				add(s.ID, depth+1)
			}
		}
	}
	add("", 0)
	return all
}

func (tracesView) newestFirst() {}

func (tracesView) actions(scope) []action { return nil }

func (tracesView) empty(of scope) plain {
	if of.title() != "" {
		return "no recent request called " + of.title()
	}
	return "no requests yet; `:traces all` also lists what clients and dashboards repeat"
}

func (tracesView) needs() lists { return setOf(traceList) }
