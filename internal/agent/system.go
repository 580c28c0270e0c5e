package agent

import (
	"strings"
)

// system is the part of the prompt that stays the same from message to message.
func (t *turn) system() string {
	slots := Resolve(append([]Prompts{t.agent.options.Prompts}, t.request.Prompts...)...)
	var parts []string
	for _, slot := range Slots {
		if slot == "memory_instructions" && t.request.Memory == nil {
			continue
		}
		if slots[slot] != "" {
			parts = append(parts, slots[slot])
		}
	}
	return strings.Join(parts, "\n\n")
}

// context is the part that may change with every message.
func (t *turn) context() string {
	var parts []string
	if lang := t.request.Language; lang != "" && lang != "en" {
		parts = append(parts, "Respond in "+lang+" when possible.")
	}
	if t.request.First {
		parts = append(parts, "This is the person's first message ever: greet them in a sentence.")
	}
	return strings.Join(parts, "\n\n")
}
