package builtin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/search"
)

// Found is the result of search_tools.
type Found struct {
	Tools    []FoundTool   `json:"tools" jsonschema:"best match first"`
	Total    int           `json:"total" jsonschema:"how many tools matched"`
	Servers  []FoundServer `json:"servers,omitempty"`
	Steps    []FoundStep   `json:"steps,omitempty"`
	Families []Family      `json:"families,omitempty" jsonschema:"our own tools that are used together with those found"`
}

// FoundServer is a server with tools that match.
type FoundServer struct {
	Name     string   `json:"name"`
	Matched  int      `json:"matched"`
	Families []string `json:"families,omitempty"`
}

// FoundStep is one step of a task.
type FoundStep struct {
	Step  string   `json:"step"`
	Tools []string `json:"tools"`
}

// FoundTool is one tool found, in short form.
type FoundTool struct {
	Name        string `json:"name" jsonschema:"for get_tool_definitions and call_tool"`
	Script      string `json:"script,omitempty" jsonschema:"how scripts write it, if not mcp.NAME"`
	Signature   string `json:"signature" jsonschema:"arguments it takes; a question mark marks optional ones"`
	Description string `json:"description" jsonschema:"beginning of the description"`
	Distinct    string `json:"distinct,omitempty"`
	Family      string `json:"family,omitempty" jsonschema:"of a tool of our own"`
	ReadOnly    bool   `json:"read_only,omitempty" jsonschema:"it is marked read-only"`
	Stale       bool   `json:"stale,omitempty" jsonschema:"its server is currently disconnected"`
}

// Text lists the tools, one paragraph each, and the families.
func (f Found) Text() string {
	var b strings.Builder
	switch {
	case len(f.Tools) == 0 && len(f.Families) == 0:
		return "No tool matches. Try other words, or mcp_list_upstreams."
	case f.Total > len(f.Tools):
		fmt.Fprintf(&b, "%d of %d matching tools:\n", len(f.Tools), f.Total)
	}
	for _, t := range f.Tools {
		fmt.Fprintf(&b, "%s%s", t.Name, t.Signature)
		if t.Script != "" {
			fmt.Fprintf(&b, ", in scripts %s", t.Script)
		}
		if t.Distinct != "" {
			fmt.Fprintf(&b, " [%s]", t.Distinct)
		}
		fmt.Fprintf(&b, "\n  %s\n", t.Description)
	}
	f.overview(&b)
	if len(f.Families) > 0 {
		b.WriteString("Luanette's own tools, by family:\n" + familyLines(f.Families))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// inScripts returns how scripts write a tool, if that is not mcp. and its name.
func inScripts(ref tool.Ref) string {
	if path := ref.ScriptPath(); path != "mcp."+ref.String() {
		return path
	}
	return ""
}

// foundLength is how much of a description search_tools shows, in bytes: eight tools must
// fit into 600 tokens.
const foundLength = 120

func servers(spaces []search.Space) []FoundServer {
	var all []FoundServer
	for _, s := range spaces {
		all = append(all, FoundServer{s.Name, s.Matched, s.Families})
	}
	return all
}

// stepsOf returns the steps of a task with the tools found for them; none if the tools
// are for one step only.
func stepsOf(found catalog.Found) []FoundStep {
	all := make([]FoundStep, len(found.Steps))
	for i, step := range found.Steps {
		all[i].Step = opening(step, 60)
	}
	for _, h := range found.Hits {
		if h.Step < len(all) {
			all[h.Step].Tools = append(all[h.Step].Tools, h.Ref.String())
		}
	}
	all = slices.DeleteFunc(all, func(s FoundStep) bool { return len(s.Tools) == 0 })
	if len(all) < 2 {
		return nil
	}
	return all
}

// overview writes the servers and steps.
func (f Found) overview(b *strings.Builder) {
	for _, s := range f.Servers {
		if s.Matched < 2 && len(s.Families) == 0 {
			continue
		}
		fmt.Fprintf(b, "%s: %d match", s.Name, s.Matched)
		if len(s.Families) > 0 {
			fmt.Fprintf(b, "; also about %s", strings.Join(s.Families, ", "))
		}
		b.WriteByte('\n')
	}
	for _, s := range f.Steps {
		fmt.Fprintf(b, "%s: %s\n", s.Step, strings.Join(s.Tools, ", "))
	}
}
