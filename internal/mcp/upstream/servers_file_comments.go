package upstream

import (
	"bytes"
	"fmt"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// stripComments replaces a byte order mark, comments and trailing commas by blanks,
// so that positions in errors stay right.
func stripComments(text []byte) ([]byte, error) {
	out := bytes.Clone(text)
	if mark := []byte("\ufeff"); bytes.HasPrefix(out, mark) {
		blank(out[:len(mark)])
	}
	comma := -1 // the last comma that only blanks have followed so far
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			i = stringEnd(out, i)
			comma = -1
		case beginsComment(out[i:]):
			end, err := commentEnd(out, i)
			if err != nil {
				return nil, err
			}
			blank(out[i:end])
			i = end - 1
		case c == ',':
			comma = i
		case c == '}' || c == ']':
			if comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
		case !bytes.ContainsRune([]byte(" \t\r\n"), rune(c)):
			comma = -1
		}
	}
	return out, rawjson.Valid(out)
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
		return 0, fmt.Errorf("comment at byte %d has no end", i)
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
