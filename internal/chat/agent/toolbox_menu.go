package agent

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/luanette/luanette/internal/base/redact"
)

// longestMenu limits the size of the tool list in the system prompt, in bytes. Longer
// lists have less detail.
const longestMenu = 16 << 10

// menu lists the servers' tools, grouped by server and in a stable order, in as much
// detail as fits. It has no examples, because models take them for facts.
func (b *toolbox) menu() string {
	if len(b.groups) == 0 {
		return "## Available tools\n\nNo servers are connected."
	}
	var text string
	for _, detail := range []func(group, *strings.Builder){group.lines, group.names, group.count} {
		var menu strings.Builder
		menu.WriteString("## Available tools\n")
		for _, g := range b.groups {
			fmt.Fprintf(&menu, "\n### %s\n", oneLine(g.title(), 160))
			if g.direct { // they are offered with their definitions
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

// lines writes a line for each tool.
func (g group) lines(out *strings.Builder) {
	for _, info := range g.tools {
		fmt.Fprintf(out, "- %s: %s\n", info.Ref, brief(info.Description))
	}
	g.empty(out)
}

// names writes the names only.
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

// count writes only the number of tools.
func (g group) count(out *strings.Builder) {
	if len(g.tools) > 0 {
		fmt.Fprintf(out, "%d tools; search_tools with this namespace lists them\n", len(g.tools))
	}
	g.empty(out)
}

func (g group) empty(out *strings.Builder) {
	if len(g.tools) == 0 {
		out.WriteString("(its tools are currently unknown)\n")
	}
}

// longestBrief limits the description of one tool.
const longestBrief = 80

// brief returns the first sentence of a description.
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

// oneLine converts untrusted text to one line of a list, so that it cannot begin a new
// line or heading.
func oneLine(text string, limit int) string {
	text = redact.Cut(text, 4*limit)
	text = strings.Join(strings.FieldsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }), " ")
	return redact.Cut(text, limit)
}
