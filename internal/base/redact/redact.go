// Package redact formats data for traces and logs, without secrets and with limited
// length.
package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits for the arguments of a call in a span.
const (
	longestShown  = 2048     // of all arguments
	longestValue  = 256      // of one string
	longestParsed = 32 << 10 // of longer arguments only the size is shown

	// Hidden is shown in place of a secret.
	Hidden = "[redacted]"
)

// secretWords are the parts of a key that mark its value as secret.
var secretWords = []string{
	"password", "passwd", "passphrase", "secret", "token", "apikey", "authorization", "credential",
	"cookie", "privatekey", "bearer", "signature", "accesskey", "accountkey", "authkey", "applicationkey", "secretkey", "signingkey", "encryptionkey",
}

// JSON formats arguments for people, without the values of keys that look secret, and
// with limited length.
func JSON(args json.RawMessage) string {
	switch {
	case len(args) == 0:
		return "{}"
	case len(args) > longestParsed:
		return fmt.Sprintf("(%d bytes)", len(args))
	case isPlain(args) && json.Valid(args):
		return string(args)
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(args))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return fmt.Sprintf("(%d bytes, not JSON)", len(args))
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(veiled(value)) != nil {
		return fmt.Sprintf("(%d bytes)", len(args))
	}
	return Cut(strings.TrimSuffix(out.String(), "\n"), longestShown)
}

// isPlain reports whether JSON can be shown unchanged: it is short and compact, has no
// escapes and no long strings, and nothing in it may be secret. Most arguments are like
// that.
func isPlain(args []byte) bool {
	if len(args) > longestShown {
		return false
	}
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case '\\', ' ', '\t', '\r', '\n':
			return false
		case '"':
			length := bytes.IndexByte(args[i+1:], '"')
			if length < 0 || length > longestValue || bytes.IndexByte(args[i+1:i+1+length], '\\') >= 0 {
				return false
			}
			end := i + 1 + length
			if !isPlainText(string(args[i+1:end]), end+1 < len(args) && args[end+1] == ':') {
				return false
			}
			i = end
		}
	}
	return true
}

// isPlainText reports whether a key or a value has nothing to hide.
func isPlainText(text string, isKey bool) bool {
	if isKey {
		return !Secret(text)
	}
	return Text(text) == text
}

func veiled(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if v[key] = veiled(inner); Secret(key) && !harmless(inner) {
				v[key] = Hidden
			}
		}
	case []any:
		for i := range v {
			v[i] = veiled(v[i])
		}
	case string:
		return Cut(Text(v), longestValue)
	}
	return value
}

// harmless reports whether a value cannot be a secret: max_tokens is a number.
func harmless(value any) bool {
	switch value.(type) {
	case json.Number, bool, nil:
		return true
	default:
		return false
	}
}

// Secret reports whether the value of a key is secret.
func Secret(key string) bool {
	var buffer [64]byte
	plain := buffer[:0]
	for i := range min(len(key), len(buffer)) {
		switch c := key[i]; {
		case c >= 'A' && c <= 'Z':
			plain = append(plain, c|0x20)
		case c != '_' && c != '-' && c != '.':
			plain = append(plain, c)
		}
	}
	return len(plain) >= shortestSecretWord && slices.ContainsFunc(secretWords, func(word string) bool { return bytes.Contains(plain, []byte(word)) })
}

// shortestSecretWord is the length of "token".
const shortestSecretWord = 5

// Cut shortens text to about limit bytes, at a character boundary.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}
