package upstream

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/mcp/wire"
)

// maxExcerpt is how much of a server's text is shown in errors and events, in bytes.
const maxExcerpt = 300

// excerpt is the beginning of data as one line of printable text.
func excerpt(data []byte) string {
	if len(data) > maxExcerpt {
		data = data[:maxExcerpt]
		return clean(string(data)) + "…"
	}
	return clean(string(data))
}

// clean makes text one line of printable characters.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text))
}

// parse reads a message. It replaces invalid UTF-8, so that one bad byte does not
// make the whole message unreadable.
func parse(data []byte) (wire.Message, error) {
	m, err := wire.Parse(data)
	if err != nil && !utf8.Valid(data) {
		return wire.Parse(bytes.ToValidUTF8(data, []byte("\uFFFD")))
	}
	return m, err
}
