package builtin

import (
	"context"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/host"
	"github.com/luanette/luanette/internal/nearest"
	"github.com/luanette/luanette/internal/tool"
)

type helpIn struct {
	Topic string `json:"topic,omitempty" jsonschema:"a module such as midi, or a function such as midi.read; left out, a list of all modules"`
}

// Help is what lua_help answers.
type Help struct {
	Topic  string   `json:"topic"`
	Page   string   `json:"page" jsonschema:"Markdown"`
	Topics []string `json:"topics" jsonschema:"modules there are pages about"`
}

// Text is the page.
func (h Help) Text() string { return h.Page }

// globals is the topic of the module that has no name.
const globals = "globals"

func (t scriptTools) help(_ context.Context, _ tool.Call, in helpIn) (Help, error) {
	modules := t.runner.Modules()
	h := Help{Topic: strings.TrimSpace(in.Topic), Topics: []string{}}
	var functions []string
	for i := range modules {
		m := &modules[i]
		title := moduleTopic(m)
		if slices.Contains(h.Topics, title) {
			continue
		}
		h.Topics = append(h.Topics, title)
		for _, section := range sections(m.Page) {
			functions = append(functions, section.name)
			if section.name == h.Topic {
				h.Page = section.text
			}
		}
		if title == h.Topic {
			h.Page = strings.TrimSpace(m.Page)
		}
	}
	if h.Topic == "" {
		h.Page = contents(modules)
	}
	if h.Page == "" {
		return Help{}, noTopic(h.Topic, h.Topics, functions)
	}
	return h, nil
}

func moduleTopic(m *host.Module) string {
	if m.Name != "" {
		return m.Name
	}
	if all := sections(m.Page); len(all) == 1 { // a global that has a page of its own, such as progress
		return all[0].name
	}
	return globals
}

// section is what a page says about one function.
type section struct{ name, text string }

// sections takes a page apart at its "## name(…)" headings.
func sections(page string) []section {
	var all []section
	for i, part := range strings.Split("\n"+page, "\n## ") {
		if i == 0 {
			continue
		}
		heading, _, _ := strings.Cut(part, "\n")
		name, _, _ := strings.Cut(heading, "(")
		all = append(all, section{strings.TrimSpace(name), strings.TrimSpace("## " + part)})
	}
	return all
}

// contents lists the functions of all modules.
func contents(modules []host.Module) string {
	var out strings.Builder
	out.WriteString("# What scripts can reach\n\nScripts are Lua 5.4 with these modules. lua_help {\"topic\": \"midi\"} tells about one, {\"topic\": \"midi.read\"} about a function.\n")
	for i := range modules {
		names := []string{}
		for _, s := range sections(modules[i].Page) {
			names = append(names, s.name)
		}
		if len(names) > 0 {
			out.WriteString("\n- **" + moduleTopic(&modules[i]) + "**: " + strings.Join(names, ", "))
		}
	}
	return out.String()
}

func noTopic(topic string, topics, functions []string) error {
	err := fault.New(fault.NotFound, "no help about %q", topic)
	if close := nearest.Names(topic, slices.Concat(topics, functions), 3); len(close) > 0 {
		return err.WithHint("did you mean %s?", strings.Join(close, " or "))
	}
	return err.WithHint("there are pages about %s", strings.Join(topics, ", "))
}
