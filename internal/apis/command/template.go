package command

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// template is a command line with placeholders. It never passes a shell: each of its
// arguments is one argument of the program, whatever the values are.
type template struct {
	program string
	groups  []group
	dash    []string // params whose values may begin with a dash
}

// group is arguments that are used together.
type group struct {
	arguments []argument
	optional  bool
}

// argument is the parts of one argument.
type argument []part

// part is a text, or a placeholder.
type part struct {
	text  string
	param string
	kind  kind
}

type kind int

const (
	one       kind = iota // {{name}}: a value
	many                  // {{name...}}: an argument per item
	condition             // {{?name}}: no argument; the group needs it to be true
)

var placeholder = lazyregexp.New(`\{\{\s*(\??)([A-Za-z_][A-Za-z0-9_]*)(\.\.\.)?\s*\}\}`)

// parse reads the templates of a command.
func parse(c api.CommandTool) (*template, error) {
	t := &template{dash: c.Dash}
	for i, given := range c.Args {
		g := group{optional: given.Optional}
		for _, text := range given.Texts {
			a, err := parseArgument(text, given.Optional)
			if err != nil {
				return nil, err
			}
			g.arguments = append(g.arguments, a)
		}
		if i > 0 {
			t.groups = append(t.groups, g)
			continue
		}
		if len(g.arguments) != 1 || len(g.arguments[0]) != 1 || g.arguments[0][0].param != "" {
			return nil, fault.New(fault.Config, "the program %q cannot be a template", strings.Join(given.Texts, " "))
		}
		t.program = given.Texts[0]
	}
	return t, nil
}

func parseArgument(text string, optional bool) (a argument, err error) {
	rest := text
	for at := placeholder().FindStringSubmatchIndex(rest); at != nil; at = placeholder().FindStringSubmatchIndex(rest) {
		if at[0] > 0 {
			a = append(a, part{text: rest[:at[0]]})
		}
		a = append(a, newPlaceholder(rest[at[4]:at[5]], at[2] != at[3], at[6] >= 0))
		rest = rest[at[1]:]
	}
	if rest != "" || len(a) == 0 {
		a = append(a, part{text: rest})
	}
	return a, a.check(text, optional)
}

func newPlaceholder(name string, isCondition, isList bool) part {
	switch {
	case isCondition:
		return part{param: name, kind: condition}
	case isList:
		return part{param: name, kind: many}
	}
	return part{param: name}
}

// check refuses an argument that cannot be what its author means.
func (a argument) check(text string, optional bool) error {
	for _, p := range a {
		switch {
		case strings.Contains(p.text, "{{"):
			return fault.New(fault.Config, "%q: what is in braces is no name", text).WithHint("write {{name}}, {{name...}} for a list, or {{?name}} for a condition")
		case p.kind != one && len(a) > 1:
			return fault.New(fault.Config, "%q: a list and a condition must be an argument of their own", text)
		case p.kind == condition && !optional:
			return fault.New(fault.Config, "%q: a condition belongs to a group", text).WithHint("write [\"{{?name}}\", \"--flag\"]")
		}
	}
	return nil
}

// params calls see for every placeholder.
func (t *template) params(see func(p part, optional bool)) {
	for _, g := range t.groups {
		for _, a := range g.arguments {
			for _, p := range a {
				if p.param != "" {
					see(p, g.optional)
				}
			}
		}
	}
}

// expand returns the arguments of the program for some values.
func (t *template) expand(values json.RawMessage) (args []string, err error) {
	ended := false // after --, nothing is an option
	for _, g := range t.groups {
		if !g.applies(values) {
			continue
		}
		for _, a := range g.arguments {
			more, err := a.expand(values)
			if err != nil {
				return nil, err
			}
			if err := t.checkDash(a, more, ended); err != nil {
				return nil, err
			}
			ended = ended || a[0].param == "" && len(a) == 1 && a[0].text == "--"
			args = append(args, more...)
		}
	}
	return args, nil
}

// applies reports whether all values of a group are there.
func (g *group) applies(values json.RawMessage) bool {
	if !g.optional {
		return true
	}
	for _, a := range g.arguments {
		for _, p := range a {
			if p.param == "" {
				continue
			}
			value, ok := rawjson.Get(values, p.param)
			if !ok || rawjson.IsNull(value) || p.kind == condition && string(value) != "true" {
				return false
			}
		}
	}
	return true
}

// checkDash refuses values that would be options of the program.
func (t *template) checkDash(a argument, texts []string, ended bool) error {
	first := a[0].param
	if first == "" || ended || slices.Contains(t.dash, first) {
		return nil
	}
	for _, text := range texts {
		if strings.HasPrefix(text, "-") {
			return fault.New(fault.InvalidParams, "%s: %q begins with a dash and would be an option of %s", first, text, t.program).
				WithHint("the owner can allow it with dash = [\"%s\"], or put \"--\" before it", first)
		}
	}
	return nil
}

// expand returns the texts of an argument.
func (a argument) expand(values json.RawMessage) ([]string, error) {
	var out strings.Builder
	for _, p := range a {
		if p.param == "" {
			out.WriteString(p.text)
			continue
		}
		value, ok := rawjson.Get(values, p.param)
		if p.kind == condition {
			return nil, nil
		}
		if p.kind == many {
			return p.items(value)
		}
		if !ok {
			return nil, fault.New(fault.InvalidParams, "%s is missing", p.param)
		}
		text, err := p.scalar(value)
		if err != nil {
			return nil, err
		}
		out.WriteString(text)
	}
	return []string{out.String()}, nil
}

// items returns the items of a list; a missing list has none.
func (p part) items(value json.RawMessage) (texts []string, err error) {
	list, ok := rawjson.Items(value)
	if !ok && len(value) > 0 && !rawjson.IsNull(value) {
		list = []json.RawMessage{value}
	}
	for _, item := range list {
		text, err := p.scalar(item)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// scalar returns a value as a text.
func (p part) scalar(value json.RawMessage) (string, error) {
	text, ok := rawjson.Text(value)
	if !ok {
		text = string(value) // a number, true or false
	}
	if first := rawjson.First(value); !ok && (first == '{' || first == '[' || rawjson.IsNull(value)) {
		return "", fault.New(fault.InvalidParams, "%s: an argument is a text, a number, true or false", p.param)
	}
	if strings.ContainsRune(text, 0) {
		return "", fault.New(fault.InvalidParams, "%s: an argument cannot contain a zero byte", p.param)
	}
	return text, nil
}
