package clientfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// stripComments replaces a byte order mark, comments and trailing commas by blanks,
// so that positions stay right.
func stripComments(text []byte) ([]byte, error) {
	out, err := blankComments(text)
	if err != nil {
		return nil, err
	}
	blankTrailingCommas(out)
	if err := rawjson.Valid(out); err != nil {
		return nil, jsonProblem(out, err)
	}
	return out, nil
}

// jsonProblem says where JSON is wrong.
func jsonProblem(text []byte, err error) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	var value json.RawMessage
	at := int64(len(text))
	if cause := decoder.Decode(&value); cause != nil {
		if syntax, ok := cause.(*json.SyntaxError); ok { //nolint:errorlint // the decoder returns it unwrapped
			at = min(syntax.Offset, at)
		}
	} else {
		at = decoder.InputOffset() + 1 // there is something behind the value
	}
	return fmt.Errorf("line %d: %w", 1+bytes.Count(text[:min(int(at), len(text))], []byte("\n")), err)
}

// blankComments replaces a byte order mark and comments by blanks.
func blankComments(text []byte) ([]byte, error) {
	out := bytes.Clone(text)
	if mark := []byte("\ufeff"); bytes.HasPrefix(out, mark) {
		blank(out[:len(mark)])
	}
	for i := 0; i < len(out); i++ {
		switch {
		case out[i] == '"':
			i = stringEnd(out, i)
		case beginsComment(out[i:]):
			end, err := commentEnd(out, i)
			if err != nil {
				return nil, err
			}
			blank(out[i:end])
			i = end - 1
		}
	}
	return out, nil
}

// blankTrailingCommas replaces commas before a closing bracket by blanks, in text
// without comments.
func blankTrailingCommas(out []byte) {
	comma, first := -1, true // the last comma that only blanks have followed so far, and whether nothing precedes it
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			i = stringEnd(out, i)
			comma, first = -1, false
		case c == ',':
			if comma = i; first {
				comma = -1 // [,] is wrong
			}
			first = true // and so is [1,,]
		case c == '}' || c == ']':
			if comma >= 0 {
				out[comma] = ' '
			}
			comma, first = -1, false
		case c == '{' || c == '[':
			comma, first = -1, true
		case !bytes.ContainsRune([]byte(" \t\r\n"), rune(c)):
			comma, first = -1, false
		}
	}
}

func beginsComment(text []byte) bool {
	return bytes.HasPrefix(text, []byte("//")) || bytes.HasPrefix(text, []byte("/*"))
}

// stringEnd is the end of the string that begins at i. The JSON parser reports
// malformed strings.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"', '\n':
			return i
		}
	}
	return i
}

func commentEnd(text []byte, i int) (int, error) {
	block := text[i+1] == '*'
	for j := i + 2; j < len(text); j++ {
		switch {
		case !block && text[j] == '\n':
			return j, nil
		case block && text[j] == '/' && text[j-1] == '*' && j > i+2:
			return j + 1, nil
		}
	}
	if block {
		return 0, fmt.Errorf("line %d: the comment has no end", 1+bytes.Count(text[:i], []byte("\n")))
	}
	return len(text), nil
}

func blank(text []byte) {
	for i, c := range text {
		if c != '\n' && c != '\r' {
			text[i] = ' '
		}
	}
}

// jsonc is JSON with comments and trailing commas, which some clients allow. An edit adds a
// trailing comma only behind another one.
type jsonc struct{}

func (jsonc) decode(text []byte) (json.RawMessage, error) {
	if blank, err := blankComments(text); err == nil && len(bytes.TrimSpace(blank)) == 0 {
		return json.RawMessage("{}"), nil
	}
	return stripComments(text)
}

// jsonText is a text while it is edited: as it is, without comments, and without
// trailing commas too.
type jsonText struct {
	text, commas, plain []byte
	newline, indent     string
}

func openJSON(text []byte) (t jsonText, err error) {
	t = jsonText{text: text, newline: newlineOf(text), indent: indentOf(text)}
	if t.commas, err = blankComments(text); err != nil {
		return t, err
	}
	t.plain, err = stripComments(text)
	return t, err
}

// newlineOf returns how the lines of a text end.
func newlineOf(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// indentOf returns the indentation of the first indented line.
func indentOf(text []byte) string {
	for line := range bytes.Lines(text) {
		rest := bytes.TrimLeft(line, " \t")
		if size := len(line) - len(rest); size > 0 && len(bytes.TrimSpace(rest)) > 0 {
			return string(line[:size])
		}
	}
	return "  "
}

// place is where a member is: its key begins at start, its value at value.
type place struct {
	name              string
	start, value, end int
}

// members returns the members of the object that begins at offset at, and where its
// closing brace is.
func (t jsonText) members(at int) (list []place, closing int) {
	m := rawjson.Walk(t.plain[at:])
	closing = at + 1
	for m.Next() {
		start, end := m.Span()
		list = append(list, place{string(m.Name()), at + start, at + end - len(m.Value), at + end})
		closing = at + end
	}
	for t.plain[closing] != '}' {
		closing++
	}
	return list, closing
}

// root returns where the document's object begins.
func (t jsonText) root() (int, error) {
	at := len(t.plain) - len(bytes.TrimLeft(t.plain, " \t\r\n"))
	if t.plain[at] != '{' {
		return 0, fmt.Errorf("line %d: it is not an object", 1+bytes.Count(t.plain[:at], []byte("\n")))
	}
	return at, nil
}

// find returns the last member of that name, which is the one that counts.
func find(list []place, name string) int {
	for i, m := range slices.Backward(list) {
		if m.name == name {
			return i
		}
	}
	return -1
}

func (jsonc) set(text []byte, path []string, value json.RawMessage) ([]byte, error) {
	if blank, err := blankComments(text); err == nil && len(bytes.TrimSpace(blank)) == 0 {
		newline := newlineOf(text)
		if len(bytes.TrimSpace(text)) == 0 {
			return []byte("{" + newline + "  " + member("  ", newline, path, value, "  ") + newline + "}" + newline), nil
		}
		text = append(bytes.TrimRight(text, "\r\n"), newline+"{"+newline+"}"+newline...)
	}
	t, err := openJSON(text)
	if err != nil {
		return nil, err
	}
	at, err := t.root()
	if err != nil {
		return nil, err
	}
	for i, key := range path {
		list, closing := t.members(at)
		found := find(list, key)
		switch {
		case found < 0:
			return t.insert(at, closing, list, path[i:], value), nil
		case i == len(path)-1 || t.plain[list[found].value] != '{':
			m := list[found]
			nested := t.render(t.lineIndent(m.start), nest(path[i+1:], value))
			return slices.Concat(text[:m.value], []byte(nested), text[m.end:]), nil
		}
		at = list[found].value
	}
	return text, nil
}

// nest wraps value in objects.
func nest(path []string, value json.RawMessage) json.RawMessage {
	for _, key := range slices.Backward(path) {
		value = slices.Concat([]byte("{"), rawjson.AppendText(nil, key), []byte(":"), value, []byte("}"))
	}
	return value
}

// member returns `"key": value`, indented.
func member(prefix, newline string, path []string, value json.RawMessage, indent string) string {
	return string(rawjson.AppendText(nil, path[0])) + ": " + rendered(prefix, indent, newline, nest(path[1:], value))
}

func rendered(prefix, indent, newline string, value json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, value, prefix, indent) != nil {
		return string(value)
	}
	return strings.ReplaceAll(out.String(), "\n", newline)
}

func (t jsonText) render(prefix string, value json.RawMessage) string {
	if !bytes.Contains(t.text, []byte("\n")) {
		var out bytes.Buffer
		if json.Compact(&out, value) == nil {
			return out.String()
		}
	}
	return rendered(prefix, t.indent, t.newline, value)
}

// lineIndent returns the indentation of the line at an offset.
func (t jsonText) lineIndent(at int) string {
	line := t.commas[bytes.LastIndexByte(t.commas[:at], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// ownLine reports whether nothing but blanks precedes an offset on its line.
func (t jsonText) ownLine(at int) bool {
	start := bytes.LastIndexByte(t.text[:at], '\n') + 1
	return start > 0 && len(bytes.TrimLeft(t.text[start:at], " \t")) == 0
}

// insert adds a member at the end of the object between the offsets open and closing.
func (t jsonText) insert(open, closing int, list []place, path []string, value json.RawMessage) []byte {
	inline := !bytes.Contains(t.text[open:closing], []byte("\n")) && (len(list) > 0 || open > 0 && !bytes.Contains(t.text, []byte("\n")))
	if inline {
		return t.insertInline(open, list, path, value)
	}
	own := t.lineIndent(open)
	child := own + t.indent
	if len(list) > 0 && t.ownLine(list[0].start) {
		child = t.lineIndent(list[0].start)
	}
	head, tail, trailing := t.text[:open+1], t.text[open+1:closing], ""
	if len(list) > 0 {
		end := list[len(list)-1].end
		head, tail = slices.Clone(t.text[:end]), t.text[end:closing]
		if bytes.Contains(t.commas[end:closing], []byte(",")) {
			trailing = ","
		} else {
			head = append(head, ',')
		}
	}
	text := bytes.TrimRight(tail, " \t\r\n")
	rest := tail[len(text):]
	if !bytes.Contains(rest, []byte("\n")) {
		rest = []byte(t.newline + own)
	}
	added := t.newline + child + member(child, t.newline, path, value, t.indent) + trailing
	return slices.Concat(head, text, []byte(added), rest, t.text[closing:])
}

// insertInline adds a member to an object on one line.
func (t jsonText) insertInline(open int, list []place, path []string, value json.RawMessage) []byte {
	added := slices.Concat(rawjson.AppendText(nil, path[0]), []byte(": "), nest(path[1:], value))
	at := open + 1
	if len(list) > 0 {
		at = list[len(list)-1].end
		if comma := t.commaAfter(at); comma >= 0 {
			at = comma + 1
			added = slices.Concat([]byte(" "), added, []byte(","))
		} else {
			added = append([]byte(", "), added...)
		}
	}
	return slices.Concat(t.text[:at], added, t.text[at:])
}

// commaAfter returns where the next comma is if only blanks and comments precede it, or
// -1.
func (t jsonText) commaAfter(at int) int {
	for ; at < len(t.commas); at++ {
		switch t.commas[at] {
		case ',':
			return at
		case ' ', '\t', '\r', '\n':
		default:
			return -1
		}
	}
	return -1
}

func (jsonc) cut(text []byte, path []string) ([]byte, error) {
	for {
		t, err := openJSON(text)
		if err != nil {
			return nil, err
		}
		at, err := t.root()
		if err != nil {
			return nil, err
		}
		list, closing := t.members(at)
		for _, key := range path[:len(path)-1] {
			found := find(list, key)
			if found < 0 || t.plain[list[found].value] != '{' {
				return text, nil
			}
			at = list[found].value
			list, closing = t.members(at)
		}
		found := find(list, path[len(path)-1])
		if found < 0 {
			return text, nil
		}
		text = t.remove(at, closing, list, found) // again, if there is another of that name
	}
}

// remove removes a member with its comma, and with the comment behind it on its line.
func (t jsonText) remove(open, closing int, list []place, index int) []byte {
	begin, end := t.extent(list[index])
	only := len(list) == 1 && len(bytes.TrimSpace(t.text[open+1:begin])) == 0 && len(bytes.TrimSpace(t.text[end:closing])) == 0
	if only {
		return slices.Concat(t.text[:open+1], t.text[closing:])
	}
	head := t.text[:begin]
	if index > 0 && t.commaAfter(list[index].end) < 0 { // it was the last: the one before needs no comma
		before := t.commaAfter(list[index-1].end)
		head = slices.Concat(t.text[:before], t.text[before+1:max(begin, before+1)])
	}
	if index > 0 && index == len(list)-1 && !t.ownLine(list[index].start) {
		head = bytes.TrimRight(head, " ")
	}
	return slices.Concat(head, t.text[end:])
}

// extent returns what is removed with a member: its comma, and its line if it has one.
func (t jsonText) extent(m place) (begin, end int) {
	begin, end = m.start, m.end
	comma := t.commaAfter(end)
	if comma >= 0 {
		end = comma + 1
	}
	if !t.ownLine(begin) {
		for comma >= 0 && end < len(t.text) && t.text[end] == ' ' {
			end++
		}
		return begin, end
	}
	begin = bytes.LastIndexByte(t.text[:begin], '\n')
	if begin > 0 && t.text[begin-1] == '\r' {
		begin--
	}
	return begin, t.commentBehind(end)
}

// commentBehind returns the end of the line if only a comment follows on it, else at.
func (t jsonText) commentBehind(at int) int {
	end := len(t.text)
	if size := bytes.IndexByte(t.text[at:], '\n'); size >= 0 {
		end = at + size
	}
	if end > at && t.text[end-1] == '\r' {
		end--
	}
	if len(bytes.TrimSpace(t.commas[at:end])) > 0 {
		return at
	}
	if open := bytes.LastIndex(t.text[at:end], []byte("/*")); open >= 0 && !bytes.Contains(t.text[at+open:end], []byte("*/")) && !bytes.Contains(t.text[at:at+open], []byte("//")) {
		return at // the comment goes on on the next line
	}
	return end
}
