// Package redact formats data for traces and logs, without secrets and with limited
// length.
package redact

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/plural"
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
		return "(" + plural.Count(len(args), "byte") + ")"
	case isPlain(args) && json.Valid(args):
		return string(args)
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(args))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return "(" + plural.Count(len(args), "byte") + ", not JSON)"
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(veiled(value)) != nil {
		return "(" + plural.Count(len(args), "byte") + ")"
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

// Text hides what looks secret in text: the values of settings with secret names,
// passwords in URLs, private keys, tokens of well-known services, and words that look
// random. Ids, hashes, paths, encoded images, prose and code stay.
func Text(text string) string {
	if !mayHide(text) {
		return text
	}
	found := spans{}
	found.keyBlocks(text)
	found.values(text)
	found.words(text)
	return found.hide(text)
}

// mayHide is a quick look at text that has nothing to hide: most has neither an
// assignment nor a long word.
func mayHide(text string) bool {
	run := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '=' || c == ':':
			return true
		case wordByte[c]:
			if run++; run >= shortestWord {
				return true
			}
		default:
			run = 0
		}
	}
	return strings.Contains(text, "earer ")
}

// span is a part of a text that is hidden.
type span struct{ from, to int }

// spans are the hidden parts of a text.
type spans []span

func (s *spans) add(from, to int) {
	if from < to {
		*s = append(*s, span{from, to})
	}
}

// covers reports whether a part is hidden already.
func (s spans) covers(from, to int) bool {
	for _, other := range s {
		if from < other.to && other.from < to {
			return true
		}
	}
	return false
}

// hide replaces the parts; those that overlap become one.
func (s spans) hide(text string) string {
	if len(s) == 0 {
		return text
	}
	hidden := make([]bool, len(text))
	for _, part := range s {
		for i := part.from; i < part.to; i++ {
			hidden[i] = true
		}
	}
	var out strings.Builder
	for i := 0; i < len(text); {
		if !hidden[i] {
			_, size := utf8.DecodeRuneInString(text[i:])
			out.WriteString(text[i : i+size])
			i += size
			continue
		}
		out.WriteString(Hidden)
		for i < len(text) && hidden[i] {
			i++
		}
	}
	return out.String()
}

// keyBlocks finds private keys in PEM.
func (s *spans) keyBlocks(text string) {
	const begin, end = "-----BEGIN ", "-----END "
	for at := 0; ; {
		from := strings.Index(text[at:], begin)
		if from < 0 {
			return
		}
		from += at
		title, _, _ := strings.Cut(text[from+len(begin):], "-----")
		at = from + len(begin)
		if len(title) > 60 || !strings.Contains(title, "PRIVATE KEY") {
			continue
		}
		to := len(text) // without an end, the rest may be the key
		if closing := strings.Index(text[at:], end); closing >= 0 {
			to = at + closing
		}
		s.add(from+len(begin)+len(title)+len("-----"), to)
		at = to
	}
}

// longestCommand limits the length of a command line.
const longestCommand = 300

// Command formats a command line for people, without the values of flags and settings
// with secret names, credentials in URLs, and words that look like keys.
func Command(name string, args []string) string {
	words := []string{quoted(name)}
	for _, arg := range Args(args) {
		words = append(words, quoted(arg))
	}
	return Cut(strings.Join(words, " "), longestCommand)
}

// Args returns a command's arguments without secrets.
func Args(args []string) []string {
	shown := make([]string, len(args))
	hideNext := false
	for i, arg := range args {
		flag := strings.HasPrefix(arg, "-")
		switch {
		case hideNext && !flag:
			arg, hideNext = Hidden, false
		case flag && !strings.ContainsAny(arg, "=: "):
			hideNext = Secret(arg)
		default:
			arg, hideNext = word(arg), false
		}
		shown[i] = arg
	}
	return shown
}

// assignment matches "key=value" or "Key: value", as a flag or not.
var assignment = lazyregexp.New(`^(-*[A-Za-z][\w.-]*)(=|:\s+)(.+)$`)

// word hides the secrets in one argument.
func word(arg string) string {
	if m := assignment().FindStringSubmatch(arg); m != nil {
		if Secret(m[1]) {
			return m[1] + m[2] + Hidden
		}
		return m[1] + m[2] + word(m[3])
	}
	if u, err := url.Parse(arg); err == nil && u.Scheme != "" && u.Host != "" {
		return address(u)
	}
	if looksLikeKey(arg) {
		return Hidden
	}
	return arg
}

// address returns a URL without password and query.
func address(u *url.URL) string {
	if u.RawQuery != "" {
		u.RawQuery = "…"
	}
	u.Fragment = ""
	return u.Redacted()
}

// keyPrefixes are the prefixes of keys of well-known services.
var keyPrefixes = []string{"sk-", "sk_", "pk_", "rk_", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xapp-", "AKIA", "AIza", "eyJ", "npm_", "hf_", "Bearer "}

var (
	keyShape = lazyregexp.New(`^[A-Za-z0-9+/_=-]{32,}$`)
	letters  = lazyregexp.New(`[A-Za-z]`)
)

// looksLikeKey reports whether a word looks generated: it has a known prefix, or is a
// long run of letters and digits.
func looksLikeKey(word string) bool {
	for _, prefix := range keyPrefixes {
		if strings.HasPrefix(word, prefix) && len(word) > len(prefix)+8 {
			return true
		}
	}
	isPath := strings.HasPrefix(word, "/") || strings.Count(word, "/") > 1
	isName := strings.Count(word, "-") > 3 || !strings.ContainsAny(word, "0123456789") || !letters().MatchString(word)
	return keyShape().MatchString(word) && !isPath && !isName
}

// quoted quotes words that contain spaces.
func quoted(word string) string {
	if word == "" || strings.ContainsAny(word, " \t\n\"'") {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}
