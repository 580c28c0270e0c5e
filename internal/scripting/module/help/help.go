// Package help is the help function of scripts, and the manual behind it: the pages of
// all modules, by module and by function.
package help

import (
	_ "embed"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed help.md
var page string

// Module is the global function help, which knows the given modules and itself.
func Module(modules []host.Module) host.Module {
	m := host.Module{Text: host.Text{Page: page}}
	manual := NewManual(append(modules[:len(modules):len(modules)], m))
	m.Funcs = []host.Func{{Name: "help", Pure: host.BindPure(func(topic *string) (string, error) {
		return manual.Lookup(host.Or(topic, ""))
	})}}
	return m
}

// Manual is the pages of modules, in the order the modules were given.
type Manual struct{ chapters []chapter }

// chapter is the page of one module.
type chapter struct {
	topic    string // its first heading, in lower case
	text     string
	sections []section
}

// section is the part of a page about one function.
type section struct{ name, text string }

// NewManual reads the pages of modules.
func NewManual(modules []host.Module) *Manual {
	m := &Manual{}
	for i := range modules {
		if text := strings.TrimSpace(modules[i].Page); text != "" {
			m.chapters = append(m.chapters, newChapter(text))
		}
	}
	return m
}

func newChapter(text string) chapter {
	heading, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
	c := chapter{topic: strings.ToLower(strings.TrimSpace(heading)), text: text}
	for _, part := range strings.Split(text, "\n## ")[1:] {
		heading, _, _ := strings.Cut(part, "\n")
		name := heading
		if end := strings.IndexAny(heading, "( "); end >= 0 {
			name = heading[:end]
		}
		c.sections = append(c.sections, section{name, strings.TrimSpace("## " + part)})
	}
	return c
}

// Topics returns the modules that have pages.
func (m *Manual) Topics() []string {
	topics := make([]string, len(m.chapters))
	for i, c := range m.chapters {
		topics[i] = c.topic
	}
	return topics
}

// Lookup returns the page of a module or the section of a function, in Markdown; the
// contents for an empty topic. For an unknown topic the error suggests the nearest ones.
func (m *Manual) Lookup(topic string) (string, error) {
	topic = strings.TrimSuffix(strings.TrimSpace(topic), "()")
	if topic == "" {
		return m.Contents(), nil
	}
	var known []string
	for _, c := range m.chapters {
		if c.topic == strings.ToLower(topic) {
			return c.text, nil
		}
		known = append(known, c.topic)
	}
	for _, c := range m.chapters {
		for _, s := range c.sections {
			if s.name == topic {
				return s.text, nil
			}
			known = append(known, s.name)
		}
	}
	err := fault.New(fault.NotFound, "no help about %q", topic)
	if near := suggest.Names(topic, known, 3); len(near) > 0 {
		return "", err.WithHint("did you mean %s?", strings.Join(near, " or "))
	}
	return "", err.WithHint("available: %s", strings.Join(m.Topics(), ", "))
}

// Contents lists all modules with their functions, one line each.
func (m *Manual) Contents() string {
	var out strings.Builder
	out.WriteString("# What scripts can reach\n")
	for _, c := range m.chapters {
		names := make([]string, len(c.sections))
		for i, s := range c.sections {
			names[i] = s.name
		}
		out.WriteString("\n- **" + c.topic + "**: " + strings.Join(names, ", "))
	}
	return out.String()
}
