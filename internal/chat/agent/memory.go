package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/chat/llm"
)

// Limits of what is remembered about one person.
const (
	memorySize     = 128 << 10 // bytes of all sections, names included
	longestSection = 32 << 10
	longestTitle   = 128
)

// memory is what is remembered about a person, during a turn. Changes of the model are
// saved at once.
type memory struct {
	store Memory

	mu       sync.Mutex
	sections []Section // by name
}

func openMemory(ctx context.Context, store Memory) (*memory, error) {
	sections, err := store.Load(ctx)
	if err != nil {
		return nil, fault.Wrap(fault.CodeOf(err), err, "read memory")
	}
	slices.SortFunc(sections, func(a, b Section) int { return strings.Compare(a.Name, b.Name) })
	return &memory{store: store, sections: sections}, nil
}

// offerMemory offers the memory tools to the model.
func (t *turn) offerMemory(box *toolbox) {
	for _, own := range []struct {
		name, schema string
		do           func(context.Context, json.RawMessage) (string, error)
	}{
		{"read_memory", readSchema, t.memory.read},
		{"update_memory", updateSchema, t.memory.update},
	} {
		if box.client[own.name] {
			continue
		}
		text, err := defaultPrompts.ReadFile("prompts/tools/" + own.name + ".md")
		if err != nil {
			panic("agent: " + own.name + " has no description: " + err.Error())
		}
		box.local[own.name] = own.do
		box.offered = append(box.offered, llm.Tool{Name: own.name, Description: strings.TrimSpace(string(text)), Input: json.RawMessage(own.schema)})
	}
}

const (
	readSchema = `{"type":"object","properties":{"sections":{"type":"array","items":{"type":"string"},` +
		`"description":"names of the sections to read; all if omitted"}}}`
	updateSchema = `{"type":"object","properties":{` +
		`"sections":{"type":"object","additionalProperties":{"type":["string","null"]},"description":"new text by section name; null deletes a section"},` +
		`"pin":{"type":"array","items":{"type":"string"},"description":"sections that must stay"},` +
		`"unpin":{"type":"array","items":{"type":"string"},"description":"sections that need not stay any longer"}}}`
)

func (m *memory) read(_ context.Context, input json.RawMessage) (string, error) {
	var in struct {
		Sections names `json:"sections"`
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return "", fault.Wrap(fault.InvalidParams, rawjson.InWords(err), "read the arguments of read_memory")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string]string{}
	for _, s := range m.sections {
		if in.Sections == nil || slices.Contains(in.Sections, s.Name) {
			found[s.Name] = s.Text
		}
	}
	missing := slices.DeleteFunc(slices.Clone(in.Sections), func(name string) bool { _, ok := found[name]; return ok })
	return asJSON(map[string]any{"sections": found, "missing": append(names{}, missing...)})
}

// memoryChange is a change that the model asks for.
type memoryChange struct {
	Sections texts `json:"sections"`
	Pin      names `json:"pin"`
	Unpin    names `json:"unpin"`
}

// memoryChanged is the result of update_memory.
type memoryChanged struct {
	Updated  []string `json:"updated"`
	Deleted  []string `json:"deleted"`
	Evicted  []string `json:"evicted"`
	Size     int      `json:"totalSizeBytes"`
	Capacity int      `json:"capacityPercent"`
}

func (m *memory) update(ctx context.Context, input json.RawMessage) (string, error) {
	in, err := readChange(input)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	next := &memory{store: m.store, sections: slices.Clone(m.sections)}
	changed, err := next.change(in, time.Now())
	if err != nil {
		return "", err
	}
	if err := m.store.Save(ctx, next.sections); err != nil {
		return "", fault.Wrap(fault.CodeOf(err), err, "save memory")
	}
	m.sections = next.sections
	return asJSON(changed)
}

// readChange reads the arguments of update_memory. An argument with another name would
// change nothing, and the model would believe that it was stored.
func readChange(input json.RawMessage) (in memoryChange, err error) {
	strict := json.NewDecoder(bytes.NewReader(input))
	strict.DisallowUnknownFields()
	err = strict.Decode(&in)
	if err == nil && in.Sections == nil && in.Pin == nil && in.Unpin == nil {
		err = errors.New("nothing is to be changed")
	}
	if err != nil {
		return in, fault.Wrap(fault.InvalidParams, rawjson.InWords(err), "read the arguments of update_memory").
			WithHint(`send {"sections": {"name": "text", "old name": null}, "pin": ["name"], "unpin": ["name"]}; each may be left out`)
	}
	return in, nil
}

// change applies a change and makes space for it: of the sections that are not pinned
// and not part of the change, those updated longest ago are removed first.
func (m *memory) change(in memoryChange, now time.Time) (memoryChanged, error) {
	done := memoryChanged{Updated: []string{}, Deleted: []string{}, Evicted: []string{}}
	for _, name := range slices.Sorted(maps.Keys(in.Sections)) {
		text := in.Sections[name]
		if text == nil {
			if i := m.at(name); i >= 0 {
				m.sections = slices.Delete(m.sections, i, i+1)
				done.Deleted = append(done.Deleted, name)
			}
			continue
		}
		if err := checkSection(name, *text); err != nil {
			return done, err
		}
		m.put(name, *text, now)
		done.Updated = append(done.Updated, name)
	}
	if err := m.pin(in.Pin, true); err != nil {
		return done, err
	}
	if err := m.pin(in.Unpin, false); err != nil {
		return done, err
	}
	evicted, err := m.makeRoom(done.Updated)
	done.Evicted = append(done.Evicted, evicted...)
	done.Size, done.Capacity = m.size(), m.percent()
	return done, err
}

func checkSection(name, text string) error {
	if name == "" || len(name) > longestTitle {
		return fault.New(fault.InvalidParams, "a section's name has 1 to %d bytes", longestTitle)
	}
	if len(text) > longestSection {
		return fault.New(fault.Limit, "section %q has %d bytes", name, len(text)).
			WithHint("at most %d are allowed: shorten or split it", longestSection)
	}
	return nil
}

func (m *memory) at(name string) int {
	return slices.IndexFunc(m.sections, func(s Section) bool { return s.Name == name })
}

func (m *memory) put(name, text string, now time.Time) {
	if i := m.at(name); i >= 0 {
		m.sections[i].Text, m.sections[i].Updated = text, now
		return
	}
	m.sections = append(m.sections, Section{Name: name, Text: text, Updated: now})
	slices.SortFunc(m.sections, func(a, b Section) int { return strings.Compare(a.Name, b.Name) })
}

func (m *memory) pin(names []string, pinned bool) error {
	for _, name := range names {
		i := m.at(name)
		if i < 0 {
			return fault.New(fault.NotFound, "no section %q in memory", name).WithHint("read_memory lists them")
		}
		m.sections[i].Pinned = pinned
	}
	return nil
}

// makeRoom removes sections until everything fits.
func (m *memory) makeRoom(keep []string) (evicted []string, err error) {
	for m.size() > memorySize {
		oldest := -1
		for i, s := range m.sections {
			if s.Pinned || slices.Contains(keep, s.Name) {
				continue
			}
			if oldest < 0 || cmp.Or(s.Updated.Compare(m.sections[oldest].Updated), strings.Compare(s.Name, m.sections[oldest].Name)) < 0 {
				oldest = i
			}
		}
		if oldest < 0 {
			return evicted, fault.New(fault.Limit, "memory is full: %d bytes are pinned or new, %d fit", m.size(), memorySize).
				WithHint("unpin or delete sections, or write shorter ones")
		}
		evicted = append(evicted, m.sections[oldest].Name)
		m.sections = slices.Delete(m.sections, oldest, oldest+1)
	}
	return evicted, nil
}

func (m *memory) size() int {
	size := 0
	for _, s := range m.sections {
		size += len(s.Name) + len(s.Text)
	}
	return size
}

func (m *memory) percent() int { return m.size() * 100 / memorySize }

// texts is an object of strings. Models also send it as a string that contains JSON, or
// with extra braces.
type texts map[string]*string

// UnmarshalJSON accepts all these forms.
func (x *texts) UnmarshalJSON(raw []byte) error {
	raw = unwrapped(raw)
	var plain map[string]*string
	err := json.Unmarshal(raw, &plain)
	if err != nil {
		var wrapped struct {
			Sections map[string]*string `json:"sections"`
		}
		if json.Unmarshal(raw, &wrapped) != nil || wrapped.Sections == nil {
			return err
		}
		plain = wrapped.Sections
	}
	*x = plain
	return nil
}

// names is a list of names. Models also send one name, or a string that contains JSON.
type names []string

// UnmarshalJSON accepts all these forms.
func (x *names) UnmarshalJSON(raw []byte) error {
	raw = unwrapped(raw)
	if len(raw) > 0 && raw[0] == '"' {
		var one string
		if err := json.Unmarshal(raw, &one); err != nil {
			return err
		}
		*x = names{one}
		return nil
	}
	var plain []string
	err := json.Unmarshal(raw, &plain)
	*x = plain
	return err
}

// unwrapped returns the JSON inside a string, without extra braces; otherwise raw
// itself.
func unwrapped(raw []byte) []byte {
	var inner string
	if json.Unmarshal(raw, &inner) != nil {
		return raw
	}
	text := bytes.TrimSpace([]byte(inner))
	for len(text) > 3 && bytes.HasPrefix(text, []byte("{{")) && bytes.HasSuffix(text, []byte("}}")) {
		text = text[1 : len(text)-1]
	}
	if len(text) > 0 && (text[0] == '{' || text[0] == '[') && json.Valid(text) {
		return text
	}
	return raw
}

func asJSON(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("write answer: %w", err)
	}
	return string(raw), nil
}
