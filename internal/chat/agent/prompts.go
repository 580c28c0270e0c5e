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

// Slots lists the parts in the order they stand in the prompt.
var Slots = []Slot{
	"identity", "methodology", "tool_guidance", "instructions", "client_instructions", "memory_instructions", "closing",
}

// Prompts are texts for some slots. A slot that is not there falls through to a
// weaker Prompts, in the end to the default; an empty text leaves the part out.
type Prompts map[Slot]string

// longestSlot bounds the text of one slot, in characters.
const longestSlot = 8000

// Check refuses slots there are not and texts that are too long.
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

// DefaultPrompts are the texts used where nobody says otherwise.
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

// Resolve lays Prompts over the defaults, the weakest first.
func Resolve(layers ...Prompts) Prompts {
	all := DefaultPrompts()
	for _, layer := range layers {
		maps.Copy(all, layer)
	}
	return all
}
