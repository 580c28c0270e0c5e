package results

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/redact"
)

// Read is a stored result, or the part at a JSON pointer: "" is all of it,
// "/items/0/name" the name of the first item.
func (s *Store) Read(ctx context.Context, owner, handle, pointer string) (json.RawMessage, error) {
	value, err := s.get(ctx, owner, handle)
	if err != nil {
		return nil, err
	}
	return follow(value, pointer)
}

// Part is a part of a list or of a text.
type Part struct {
	Value json.RawMessage
	Total int // items or characters in all
}

// Slice skips items of a list, or characters of a text, and returns the next count.
func (s *Store) Slice(ctx context.Context, owner, handle, pointer string, skip, count int) (Part, error) {
	value, err := s.Read(ctx, owner, handle, pointer)
	if err != nil {
		return Part{}, err
	}
	skip, count = max(skip, 0), max(count, 0)
	if text, ok := rawjson.Text(value); ok {
		return sliceText(text, skip, count)
	}
	items, ok := rawjson.Items(value)
	if !ok {
		return Part{}, fault.New(fault.InvalidParams, "%s%s is neither a list nor a text", handle, pointer).
			WithHint("%s", inside(value))
	}
	from := min(skip, len(items))
	raw, err := json.Marshal(items[from:min(from+count, len(items))])
	return Part{raw, len(items)}, err
}

func sliceText(text string, skip, count int) (Part, error) {
	characters := []rune(text)
	from := min(skip, len(characters))
	raw, err := json.Marshal(string(characters[from:min(from+count, len(characters))]))
	return Part{raw, len(characters)}, err
}

// follow resolves a JSON pointer.
func follow(value json.RawMessage, pointer string) (json.RawMessage, error) {
	if pointer == "" || pointer == "/" {
		return value, nil
	}
	if !strings.HasPrefix(pointer, "/") {
		return nil, fault.New(fault.InvalidParams, "%q is not a JSON pointer", redact.Cut(pointer, 80)).
			WithHint(`write "/items/0/name": a slash before every step, lists count from 0`)
	}
	at := value
	for _, step := range strings.Split(pointer[1:], "/") {
		next, ok := rawjson.Descend(at, step)
		if !ok {
			return nil, fault.New(fault.NotFound, "no value at %s: there is no %q", redact.Cut(pointer, 80), redact.Cut(step, 40)).
				WithHint("%s", inside(at))
		}
		at = next
	}
	return at, nil
}

// inside describes the contents of a value, for hints.
func inside(value json.RawMessage) string {
	if items, ok := rawjson.Items(value); ok {
		return "it is a list of " + strconv.Itoa(len(items)) + " items, counted from 0"
	}
	if !rawjson.IsObject(value) {
		return "it is " + redact.Cut(string(value), 60)
	}
	var names []string
	rawjson.Each(value, func(name string, _ json.RawMessage) bool {
		names = append(names, redact.Cut(name, 40))
		return len(names) < 20
	})
	return "it has " + strings.Join(names, ", ")
}
