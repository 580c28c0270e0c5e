package pin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Change is one part of a definition that differs from what was approved. Old and New
// are readable, with hidden characters made visible; empty: the part did not or does
// not exist.
type Change struct {
	Path string `json:"path"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// Diff is what changed since the pin was approved, or everything if it never was.
func (p *Pin) Diff() []Change {
	var changes []Change
	if p.ApprovedDigest != "" && p.ApprovedTarget != p.Target {
		changes = append(changes, Change{"server", Visible(p.ApprovedTarget), Visible(p.Target)})
	}
	return append(changes, differences("", p.ApprovedAs, p.Definition)...)
}

// differences compares two JSON values part by part: objects, and lists of the same
// length. Everything else is shown whole.
func differences(path string, before, after json.RawMessage) []Change {
	if bytes.Equal(before, after) {
		return nil
	}
	old, fresh := parts(before), parts(after)
	if old == nil && path == "" && len(before) == 0 { // new: show all of it
		old = &splitValue{}
	}
	if !old.comparable(fresh) {
		return []Change{{orWhole(path), shown(before), shown(after)}}
	}
	var changes []Change
	names := slices.Clone(fresh.names)
	for _, name := range old.names {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if !fresh.list {
		slices.Sort(names)
	}
	for _, name := range names {
		changes = append(changes, differences(join(path, name, fresh.list), old.values[name], fresh.values[name])...)
	}
	return changes
}

// splitValue is an object or a list split into parts.
type splitValue struct {
	list   bool
	names  []string
	values map[string]json.RawMessage
}

// comparable reports whether two values can be compared part by part: two objects,
// or two lists of one length.
func (t *splitValue) comparable(other *splitValue) bool {
	if t == nil || other == nil || t.list != other.list {
		return false
	}
	return !t.list || len(t.names) == len(other.names)
}

// parts splits a value; nil for one that has no parts.
func parts(raw json.RawMessage) *splitValue {
	if len(raw) == 0 {
		return nil
	}
	t := &splitValue{list: raw[0] == '[', values: map[string]json.RawMessage{}}
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') && open != json.Delim('[') {
		return nil
	}
	for i := 0; d.More(); i++ {
		name := fmt.Sprint(i)
		if !t.list {
			token, err := d.Token()
			if err != nil {
				return nil
			}
			name, _ = token.(string)
			name = freeName(name, func(name string) bool { return t.values[name] != nil })
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil
		}
		t.names, t.values[name] = append(t.names, name), value
	}
	return t
}

// freeName is a free name: repeated members are parts of their own.
func freeName(name string, taken func(string) bool) string {
	for base, n := name, 2; taken(name); n++ {
		name = fmt.Sprintf("%s#%d", base, n)
	}
	return name
}

func join(path, name string, list bool) string {
	switch {
	case list:
		return path + "[" + name + "]"
	case path == "":
		return Visible(name)
	default:
		return path + "." + Visible(name)
	}
}

func orWhole(path string) string {
	if path == "" {
		return "definition"
	}
	return path
}

// shown is a readable value: text without quotes, the rest as JSON.
func shown(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil && len(raw) > 0 && raw[0] == '"' {
		return Visible(text)
	}
	return Visible(string(raw))
}

// FormatChanges writes changes as a diff.
func FormatChanges(changes []Change) string {
	var b strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&b, "%s\n", c.Path)
		for _, side := range []struct{ mark, text string }{{"-", c.Old}, {"+", c.New}} {
			if side.text == "" {
				continue
			}
			for line := range strings.Lines(side.text) {
				fmt.Fprintf(&b, "  %s %s\n", side.mark, strings.TrimRight(line, "\n"))
			}
		}
	}
	return strings.TrimRight(b.String(), "\n")
}
