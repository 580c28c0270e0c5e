package clientfile

import (
	"bytes"
	"encoding/json"
	"fmt"

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
