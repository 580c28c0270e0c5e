package builtin

import (
	"context"
	"strings"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/module/help"
)

type helpIn struct {
	Topic string `json:"topic,omitempty" jsonschema:"a module such as midi, or a function such as midi.read; default: a list of all modules"`
}

// Help is the result of lua_help.
type Help struct {
	Topic  string   `json:"topic"`
	Page   string   `json:"page" jsonschema:"Markdown"`
	Topics []string `json:"topics" jsonschema:"documented modules"`
}

// Text returns the page.
func (h Help) Text() string { return h.Page }

func (t scriptTools) help(_ context.Context, _ tool.Call, in helpIn) (Help, error) {
	manual := help.NewManual(t.runner.Modules())
	page, err := manual.Lookup(in.Topic)
	return Help{strings.TrimSpace(in.Topic), page, manual.Topics()}, err
}
