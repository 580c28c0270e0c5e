package agent

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/luanette/luanette/internal/base/redact"
)

// longestMenu bounds what the list of tools may take of the system prompt, in
// bytes. Longer lists are told in less detail.
const longestMenu = 16 << 10

// menu lists the servers' tools, grouped by server and in a stable order, in as
// much detail as there is room for. It has no examples: models take them for
// facts.
func (b *toolbox) menu() string {
	if len(b.groups) == 0 {
		return "## Available tools\n\nNo tools of servers are available."
	}
	var text string
	for _, detail := range []func(group, *strings.Builder){group.lines, group.names, group.count} {
		var menu strings.Builder
		menu.WriteString("## Available tools\n")
		for _, g := range b.groups {
			fmt.Fprintf(&menu, "\n### %s\n", oneLine(g.title(), 160))
			if g.direct { // each is offered with its definition already
				g.names(&menu)
			} else {
				detail(g, &menu)
			}
		}
		if text = strings.TrimSpace(menu.String()); len(text) <= longestMenu {
			return text
		}
	}
	return redact.Cut(text, longestMenu) + "\n(search_tools finds the rest)"
}

// lines has a line for each tool.
func (g group) lines(out *strings.Builder) {
	for _, info := range g.tools {
		fmt.Fprintf(out, "- %s: %s\n", info.Ref, brief(info.Description))
	}
	g.empty(out)
}

// names has the names only.
func (g group) names(out *strings.Builder) {
	names := make([]string, len(g.tools))
	for i, info := range g.tools {
		names[i] = info.Ref.String()
	}
	if len(names) > 0 {
		fmt.Fprintln(out, strings.Join(names, ", "))
	}
	g.empty(out)
}

// count has only how many there are.
func (g group) count(out *strings.Builder) {
	if len(g.tools) > 0 {
		fmt.Fprintf(out, "%d tools; search_tools with this namespace lists them\n", len(g.tools))
	}
	g.empty(out)
}

func (g group) empty(out *strings.Builder) {
	if len(g.tools) == 0 {
		out.WriteString("(its tools are not known just now)\n")
	}
}

// longestBrief bounds what is told of one tool.
const longestBrief = 80

// brief is the first sentence of a description.
func brief(text string) string {
	text = oneLine(text, 4*longestBrief)
	for i, c := range text {
		if c == '.' && (i+1 == len(text) || text[i+1] == ' ') {
			text = text[:i]
			break
		}
	}
	if text == "" {
		return "no description"
	}
	if len(text) <= longestBrief {
		return text
	}
	text = strings.TrimSuffix(redact.Cut(text, longestBrief), "…")
	if space := strings.LastIndexByte(text, ' '); space > longestBrief/2 {
		text = text[:space]
	}
	return text + "..."
}

// oneLine makes a stranger's text one line of a list: nothing in it begins a new
// line or heading.
func oneLine(text string, limit int) string {
	text = redact.Cut(text, 4*limit)
	text = strings.Join(strings.FieldsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }), " ")
	return redact.Cut(text, limit)
}
