package recording

import (
	"encoding/json"
	"regexp"
	"strconv"
	"sync"

	"github.com/luanette/luanette/internal/base/redact"
)

// masked returns JSON without secrets; nil stays nil.
func masked(raw json.RawMessage, hide func(string) string) json.RawMessage {
	if raw == nil {
		return nil
	}
	return encode(mask(decode(raw), hide))
}

// mask returns a decoded value without secrets: texts under keys with secret names, what
// looks like a key in other texts, and what hide knows. A masked text matches every
// value, so that a recording answers requests with the real one.
func mask(value any, hide func(string) string) any {
	switch v := value.(type) {
	case map[string]any:
		_, isContent := v["mimeType"]
		for key, inner := range v {
			if text, ok := inner.(string); ok {
				v[key] = maskMember(key, text, isContent, hide)
			} else {
				v[key] = mask(inner, hide)
			}
		}
	case []any:
		for i := range v {
			v[i] = mask(v[i], hide)
		}
	case string:
		return hideText(v, hide)
	}
	return value
}

// maskMember returns the text of a member without secrets. isContent says that it belongs
// to a content of a result.
func maskMember(key, text string, isContent bool, hide func(string) string) string {
	switch key {
	case "data", "blob": // Base64 of an image or a file
		if isContent {
			return text
		}
	case "cursor", "nextCursor": // the pages of a list are told apart by it
		return text
	}
	if text != "" && redact.Secret(key) {
		return redact.Hidden
	}
	return hideText(text, hide)
}

// digest matches SHA-1 and SHA-256 in hexadecimal, such as the names of commits. They look
// like keys, but are what many requests differ in.
var digest = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b([0-9a-f]{40}|[0-9a-f]{64})\b`)
})

// placeholder stands for a digest while the rest of a text is masked.
var placeholder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\x00[0-9]+\x00") })

// hideText masks a text, except for digests that are not the value of a secret setting.
func hideText(text string, hide func(string) string) string {
	text = hide(text)
	found := digest().FindAllString(text, -1)
	if len(found) == 0 {
		return redact.Text(text)
	}
	n := -1
	text = redact.Text(digest().ReplaceAllStringFunc(text, func(string) string {
		n++
		return "\x00" + strconv.Itoa(n) + "\x00"
	}))
	return placeholder().ReplaceAllStringFunc(text, func(mark string) string {
		if i, err := strconv.Atoi(mark[1 : len(mark)-1]); err == nil && i < len(found) {
			return found[i]
		}
		return mark
	})
}
