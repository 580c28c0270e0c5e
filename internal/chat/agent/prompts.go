package agent

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/chat/llm"
)

// Slot is a named part of the system prompt.
type Slot string

// Slots lists the parts in their order in the prompt.
var Slots = []Slot{
	"identity", "methodology", "tool_guidance", "instructions", "client_instructions", "memory_instructions", "closing",
}

// Prompts are texts for some slots. A missing slot uses the next lower layer, at last
// the default; an empty text omits the part.
type Prompts map[Slot]string

// longestSlot limits the text of one slot, in characters.
const longestSlot = 8000

// Check validates slots and the length of texts.
func (p Prompts) Check() error {
	for _, slot := range slices.Sorted(maps.Keys(p)) {
		if !slices.Contains(Slots, slot) {
			return unknownSlot(slot)
		}
		if n := utf8.RuneCountInString(p[slot]); n > longestSlot {
			return fault.New(fault.InvalidParams, "prompt slot %s has %d characters", slot, n).
				WithHint("at most %d are allowed", longestSlot)
		}
	}
	return nil
}

func unknownSlot(slot Slot) error {
	known := make([]string, len(Slots))
	for i, s := range Slots {
		known[i] = string(s)
	}
	err := fault.New(fault.InvalidParams, "no prompt slot %q", slot)
	if near := suggest.Names(string(slot), known, 1); len(near) > 0 {
		return err.WithHint("did you mean %s?", near[0])
	}
	return err.WithHint("the slots are %s", strings.Join(known, ", "))
}

//go:embed prompts/*.md prompts/tools/*.md
var defaultPrompts embed.FS

// DefaultPrompts returns the default texts.
func DefaultPrompts() Prompts {
	all := Prompts{}
	for _, slot := range Slots {
		text, err := defaultPrompts.ReadFile("prompts/" + string(slot) + ".md")
		if err != nil {
			panic("agent: slot " + string(slot) + " has no default: " + err.Error())
		}
		all[slot] = strings.TrimSpace(string(text))
	}
	return all
}

// Resolve merges layers over the defaults; later layers take precedence.
func Resolve(layers ...Prompts) Prompts {
	all := DefaultPrompts()
	for _, layer := range layers {
		maps.Copy(all, layer)
	}
	return all
}

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
var remarks = lazyregexp.New(`(?s)%%.*?%%`)

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

// isReset reports whether the message is a command that resets the Lua session of the
// conversation. The model is not asked.
func (r *Request) isReset() bool {
	switch strings.Join(strings.Fields(r.Message), " ") {
	case "/reset", "/lua reset":
		return len(r.Messages) == 0
	}
	return false
}

// resetSession answers such a message.
func (t *turn) resetSession(ctx context.Context) error {
	if err := t.reset(ctx, func(name string) bool { return name == t.sessionName() }); err != nil {
		return err
	}
	const answer = "The Lua variables of this conversation are reset."
	t.send(Text{Text: answer})
	t.reply.Responses, t.reply.Stop = []string{answer}, llm.StopEnd
	return nil
}
