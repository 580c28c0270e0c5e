package hootenanny

import (
	"context"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/toolset"
)

func (h *Backend) helpTools() []toolset.Tool {
	return []toolset.Tool{define("help", reads(), h.help)}
}

type helpIn struct {
	Tool     string `json:"tool,omitempty" jsonschema:"name of a tool" max:"64"`
	Category string `json:"category,omitempty" jsonschema:"such as cas, artifact, graph, job, abc, garden or orpheus" max:"64"`
}

// Help is the result of help.
type Help struct {
	Categories []string       `json:"categories,omitempty"`
	Tools      []ToolHelp     `json:"tools,omitempty"`
	Schema     toolset.Object `json:"input_schema,omitempty"`
}

// ToolHelp is the name and description of a tool.
type ToolHelp struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Text has one line per item.
func (h Help) Text() string {
	var lines []string
	if len(h.Categories) > 0 {
		lines = append(lines, "Categories: "+strings.Join(h.Categories, ", "))
	}
	for _, t := range h.Tools {
		lines = append(lines, t.Name+": "+t.Description)
	}
	return strings.Join(lines, "\n")
}

// category returns the category of a tool, derived from its name.
func category(name string) string {
	switch family, _, _ := strings.Cut(name, "_"); family {
	case "add":
		return "graph"
	case "midi", "audio", "time", "convert":
		return "media"
	case "musicgen", "yue", "clap", "beatthis", "anticipatory":
		return "models"
	default:
		return family
	}
}

func (h *Backend) help(ctx context.Context, _ tool.Call, in helpIn) (Help, error) {
	all, err := h.set.Tools(ctx)
	if err != nil {
		return Help{}, err
	}
	families := map[string][]ToolHelp{}
	names := make([]string, len(all))
	for i, info := range all {
		names[i] = info.Name
		one := ToolHelp{info.Name, info.Description}
		if info.Name == in.Tool {
			return Help{Tools: []ToolHelp{one}, Schema: toolset.Object(info.Input)}, nil
		}
		families[category(info.Name)] = append(families[category(info.Name)], one)
	}
	switch known := sortedKeys(families); {
	case in.Tool != "":
		return Help{}, unknownName("tool", in.Tool, names)
	case in.Category == "":
		return Help{Categories: known}, nil
	case families[in.Category] == nil:
		return Help{}, unknownName("category", in.Category, known)
	}
	return Help{Tools: families[in.Category]}, nil
}

func unknownName(what, name string, known []string) error {
	err := fault.New(fault.NotFound, "unknown %s %q", what, name)
	if close := suggest.Names(name, known, 3); len(close) > 0 {
		return err.WithHint("did you mean %s?", strings.Join(close, " or "))
	}
	return err.WithHint("%s", fmt.Sprintf("known: %s", strings.Join(known, ", ")))
}
