package agent

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// writeSystem writes the part of the prompt that does not change between messages: the
// slots, with the list of tools after the slot that explains them.
func (t *turn) writeSystem() string {
	slots := Resolve(append([]Prompts{t.agent.options.Prompts}, t.request.Prompts...)...)
	var parts []string
	for _, slot := range Slots {
		text := t.fill(slots[slot])
		switch {
		case slot == "memory_instructions" && t.memory == nil:
			text = ""
		case slot == "client_instructions" && text != "":
			text = "## Client platform\n\n" + text
		}
		if text != "" {
			parts = append(parts, text)
		}
		if slot == "tool_guidance" && t.agent.options.Tools != nil {
			parts = append(parts, t.tools.menu())
		}
	}
	if t.request.Instructions != "" {
		parts = append(parts, t.request.Instructions)
	}
	return strings.Join(parts, "\n\n")
}

// remarks matches comments in prompts: %% comment %%.
var remarks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)%%.*?%%`) })

// fill removes comments from a slot's text and replaces variables.
func (t *turn) fill(text string) string {
	text = remarks().ReplaceAllString(text, "")
	return strings.TrimSpace(strings.ReplaceAll(text, "{{version}}", t.agent.options.Version))
}

// writeContext writes the part that may change with every message.
func (t *turn) writeContext() string {
	parts := []string{"Today is " + t.began.UTC().Format("Monday, 2 January 2006") + " (UTC)."}
	if lang := t.request.Language; lang != "" && lang != "en" {
		parts = append(parts, "Respond in "+oneLine(lang, 32)+" when possible.")
	}
	if t.request.First {
		parts = append(parts, "This is the first message this person has ever sent: welcome them in a sentence before you answer.")
	}
	var away []string
	for _, g := range t.tools.groups {
		if g.away {
			away = append(away, g.title())
		}
	}
	if len(away) > 0 {
		parts = append(parts, "The tools of these servers cannot be used now, or will probably fail: "+strings.Join(away, ", ")+".")
	}
	if t.memory != nil {
		parts = append(parts, t.memory.contents())
	}
	return strings.Join(parts, "\n\n")
}

// contents lists the sections of the memory.
func (m *memory) contents() string {
	if len(m.sections) == 0 {
		return "Memory: empty."
	}
	var out strings.Builder
	fmt.Fprintf(&out, "Memory (%d%% full):", m.percent())
	for _, s := range m.sections {
		fmt.Fprintf(&out, "\n- %s (%d bytes, updated %s%s)", oneLine(s.Name, 80), len(s.Text), s.Updated.UTC().Format(time.DateOnly), pinMark(s.Pinned))
	}
	return out.String()
}

func pinMark(pinned bool) string {
	if pinned {
		return ", pinned"
	}
	return ""
}
