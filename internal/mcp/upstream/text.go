package upstream

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/mcp/wire"
)

// What strangers write is shown to people only in part and on one line.
const maxExcerpt = 300

// excerpt is the beginning of data as one line of printable text.
func excerpt(data []byte) string {
	if len(data) > maxExcerpt {
		data = data[:maxExcerpt]
		return clean(string(data)) + "…"
	}
	return clean(string(data))
}

func clean(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text))
}

// parse reads a message. Bytes that are no UTF-8 are replaced, so that one bad
// character does not cost a whole message.
func parse(data []byte) (wire.Message, error) {
	m, err := wire.Parse(data)
	if err != nil && !utf8.Valid(data) {
		return wire.Parse(bytes.ToValidUTF8(data, []byte("\uFFFD")))
	}
	return m, err
}
