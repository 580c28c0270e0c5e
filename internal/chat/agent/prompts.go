package agent

import (
	"embed"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
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
