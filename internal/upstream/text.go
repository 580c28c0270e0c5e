package upstream

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
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

// tidy replaces bytes that are no UTF-8, so that one bad character does not cost
// a whole message.
func tidy(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	return bytes.ToValidUTF8(data, []byte("\uFFFD"))
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// ration lets so many things pass per second.
type ration struct {
	perSecond int

	mu     sync.Mutex
	second time.Time
	count  int
}

func (r *ration) take(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.second) >= time.Second {
		r.second, r.count = now, 0
	}
	r.count++
	return r.count <= r.perSecond
}
