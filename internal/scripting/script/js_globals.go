package script

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/js"
)

// globals returns which words of a source are tools that can be called by their plain
// names. The tools depend on the outside, so the query passes the Handler; if it is
// refused, only mcp.<namespace>.<tool> works.
func (h *jsHost) globals(ctx context.Context, source string) func(string) (js.Func, bool) {
	words, fields := wordsOf(source)
	if len(words)+len(fields) == 0 {
		return nil
	}
	look := &host.Func{Name: "globals", Kind: host.Nondeterministic, Effect: func(ctx context.Context, w *host.Services, _ host.Args) ([]host.Value, error) {
		table, err := host.Table(h.engine.plainNames(ctx, w.Tools, words, fields))
		return []host.Value{table}, err
	}}
	values, err := h.env.Call(ctx, "mcp", look, nil)
	if err != nil || len(values) != 1 {
		return nil
	}
	raw, _ := values[0].(json.RawMessage)
	var found map[string]string
	if json.Unmarshal(raw, &found) != nil || len(found) == 0 {
		return nil
	}
	h.spelled = found
	return func(word string) (js.Func, bool) {
		path, ok := found[word]
		return js.Func{Name: word, Target: "mcp." + path}, ok
	}
}

// plainIndex maps identifiers made from tool names to the tools; "" if several tools
// have the same.
type plainIndex struct {
	of    []tool.Info // the listing it was made from
	paths map[string]string
	// spelled are the tools whose names are not identifiers, by those identifiers.
	spelled map[string][]tool.Ref
}

// plainNames finds tools by words. The index is reused until the listing changes.
func (e *JavaScriptEngine) plainNames(ctx context.Context, source tool.Source, words, fields []string) map[string]string {
	found := map[string]string{}
	if source == nil {
		return found
	}
	infos, err := source.Tools(ctx)
	if err != nil || len(infos) == 0 {
		return found
	}
	index := e.plain.Load()
	if index == nil || len(index.of) != len(infos) || &index.of[0] != &infos[0] {
		index = newPlainIndex(infos)
		e.plain.Store(index)
	}
	for _, word := range words {
		if path := index.paths[word]; path != "" {
			found[word] = path
		}
	}
	index.addSpelled(found, fields)
	return found
}

// addSpelled adds the tools whose names are written as one of the fields.
func (x *plainIndex) addSpelled(found map[string]string, fields []string) {
	for _, word := range fields {
		for _, ref := range x.spelled[word] {
			key := ref.Space + "." + word
			if _, again := found[key]; again {
				found[key] = "" // several tools are written so
			} else {
				found[key] = ref.String()
			}
		}
	}
}

func newPlainIndex(infos []tool.Info) *plainIndex {
	index := &plainIndex{of: infos, paths: make(map[string]string, len(infos)), spelled: map[string][]tool.Ref{}}
	exact := make(map[tool.Ref]bool, len(infos))
	for i := range infos {
		exact[infos[i].Ref] = true
	}
	for i := range infos {
		name, path := identifier(infos[i].Name), infos[i].Name
		if infos[i].Space != "" {
			path = infos[i].Space + "." + path
		}
		if _, again := index.paths[name]; again {
			path = ""
		}
		index.paths[name] = path
		if name != infos[i].Name && infos[i].Space != "" && !exact[tool.Ref{Space: infos[i].Space, Name: name}] {
			index.spelled[name] = append(index.spelled[name], infos[i].Ref)
		}
	}
	return index
}

// identifier returns a tool's name as an identifier.
func identifier(name string) string {
	return strings.Map(func(r rune) rune {
		if isWordRune(r) {
			return r
		}
		return '_'
	}, name)
}

func isWordRune(r rune) bool {
	return r == '_' || r == '$' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// wordsOf returns the words of a source that may be names of globals, without duplicates
// and keywords, and the names after a dot that may stand for names with other characters.
func wordsOf(source string) (words, fields []string) {
	seen := map[string]bool{}
	for i := 0; i < len(source); i++ {
		if !isWordRune(rune(source[i])) {
			continue
		}
		end := i
		for end < len(source) && isWordRune(rune(source[end])) {
			end++
		}
		word := source[i:end]
		field := afterDot(source[:i])
		switch {
		case isDigit(word[0]):
		case field && strings.Contains(word, "_") && !seen["."+word]:
			seen["."+word] = true
			fields = append(fields, word)
		case !field && !seen[word] && !jsKeywords[word]:
			seen[word] = true
			words = append(words, word)
		}
		i = end
	}
	return words, fields
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// afterDot reports whether the text ends in a dot that is not part of three dots.
func afterDot(text string) bool {
	return strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "...")
}

var jsKeywords = wordSet(`await async break case catch class const continue default delete do else extends false finally for function if in
	instanceof let new null of return static super switch this throw true try typeof undefined var void while yield
	Array JSON Math Object Promise Date console length mcp params main describe`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return set
}
