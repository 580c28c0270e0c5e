package redact

import (
	"slices"
	"strings"
)

// values finds the values of settings with secret names, such as "token=…", "Api-Key: …"
// and "password": "…", and passwords in URLs.
func (s *spans) values(text string) {
	for i := range len(text) {
		switch text[i] {
		case '=', ':':
			if strings.HasPrefix(text[i:], "://") {
				s.urlPassword(text, i+3)
			} else if name := nameBefore(text, i); Secret(name) || isKeyName(name) {
				s.value(text, name, i)
			}
		case ' ':
			if word := wordBefore(text, i); strings.EqualFold(word, "bearer") || strings.EqualFold(word, "basic") {
				s.credential(text, i+1)
			}
		}
	}
}

// isKeyName reports names such as "key", "AccountKey" and "access_key_id".
func isKeyName(name string) bool {
	switch plain := strings.ToLower(name); plain {
	case "key", "auth", "pwd", "sig", "pass":
		return true
	default:
		ends := func(suffix string) bool { return strings.HasSuffix(plain, suffix) }
		return strings.HasSuffix(name, "Key") && len(name) > 6 || slices.ContainsFunc([]string{"_key", "-key", "_pass", "_pwd"}, ends)
	}
}

// nameBefore returns the name that ends before text[i], perhaps in quotes and with
// spaces between.
func nameBefore(text string, i int) string {
	end := len(strings.TrimRight(text[:i], ` "'\`))
	if i-end > 3 {
		return ""
	}
	from := end
	for from > 0 && end-from < 80 && nameByte(text[from-1]) {
		from--
	}
	return text[from:end]
}

func nameByte(c byte) bool { return isAlnum(c) || c == '_' || c == '-' || c == '.' }

// wordBefore returns the letters before text[i].
func wordBefore(text string, i int) string {
	from := i
	for from > 0 && i-from < 10 && isLetter(text[from-1]) {
		from--
	}
	return text[from:i]
}

// value hides the value after text[at], which is = or :, unless it is part of a sentence
// or of code.
func (s *spans) value(text, name string, at int) {
	from := at + 1
	for from < len(text) && from-at < 4 && strings.IndexByte(" \t=>", text[from]) >= 0 {
		from++
	}
	v := setting{name: name, spaced: from > at+1, sentence: from > at+1 && text[at] == ':', query: isQuery(text, at-len(name))}
	quote := quoteAt(text[from:])
	from += len(quote)
	if scheme := schemeLength(text[from:], name); scheme > 0 {
		from += scheme
		v.spaced, v.sentence = false, false
	}
	to := valueEnd(text, from, quote)
	v.value, v.quoted = text[from:to], quote != ""
	v.query = v.query || v.quoted && name == "auth"
	if v.secret() {
		s.add(from, to)
	}
}

// quoteAt returns the quote that text begins with, also as it is in JSON within JSON.
func quoteAt(text string) string {
	for _, quote := range []string{`\"`, `"`, "'", "`"} {
		if strings.HasPrefix(text, quote) {
			return quote
		}
	}
	return ""
}

// isQuery reports whether a name that begins at i is that of a parameter in a URL.
func isQuery(text string, i int) bool { return i > 0 && (text[i-1] == '?' || text[i-1] == '&') }

// schemeLength returns the length of "Bearer " and the like before a credential.
func schemeLength(value, name string) int {
	word, _, more := strings.Cut(value, " ")
	known := strings.EqualFold(word, "bearer") || strings.EqualFold(word, "basic") || strings.EqualFold(word, "token")
	if more && len(word) <= 12 && isLetters(word) && (known || strings.HasSuffix(strings.ToLower(name), "authorization")) {
		return len(word) + 1
	}
	return 0
}

// valueEnd returns the end of a value: that of its quotes, or of its word.
func valueEnd(text string, from int, quote string) int {
	stops := " \t\r\n\"',;&|<>)]}\\"
	if quote != "" {
		stops = quote + "\n\\"
	}
	if end := strings.IndexAny(text[from:], stops); end >= 0 {
		return from + end
	}
	return len(text)
}

// setting is a name with its value in a text.
type setting struct {
	name, value              string
	quoted, sentence, spaced bool
	query                    bool // it is a parameter of a URL
}

// secret reports whether the value is one. A type, a variable or a call in code is not,
// nor is a word of a sentence such as "API_TOKEN: not set".
func (v setting) secret() bool {
	if len(v.value) < 2 || isPlaceholder(v.value) || !v.quoted && v.isCode() {
		return false
	}
	switch {
	case !Secret(v.name):
		return v.isSecretKey()
	case isLetters(strings.TrimRight(v.value, ".!?")):
		return v.isSecretWord()
	case v.quoted || isPassword(v.name):
		return !isIdentifier(v.value) || !Secret(v.value)
	case hasDigit(v.value):
		return true
	default:
		return !v.spaced && !isIdentifier(strings.ReplaceAll(v.value, ".", "_"))
	}
}

// isSecretKey reports whether the value of something called key, which says little, is a
// secret.
func (v setting) isSecretKey() bool {
	return len(v.value) >= 16 && hasDigit(v.value) && (v.query || looksSecret(v.value))
}

// isSecretWord reports whether a value of letters only is a secret.
func (v setting) isSecretWord() bool {
	switch {
	case v.sentence && !v.quoted, isPlainValue(v.value):
		return false
	case v.quoted || isPassword(v.name):
		return !Secret(v.value)
	default:
		return v.isVariable() || len(v.value) >= 16 && hasBothCases(v.value) && !wordLike(v.value)
	}
}

// isCode reports whether a value is an expression, a size, or a line and column.
func (v setting) isCode() bool {
	return strings.ContainsAny(v.value, "()[]{}<>") || v.value[0] == '$' || strings.Trim(v.value, "0123456789:.") == "" && len(v.value) < 10
}

// isVariable reports whether it is a variable of the environment: NAME=value.
func (v setting) isVariable() bool { return !v.spaced && strings.ToUpper(v.name) == v.name }

func isPassword(name string) bool {
	plain := strings.ToLower(name)
	return strings.HasSuffix(plain, "password") || strings.HasSuffix(plain, "passwd") || strings.HasSuffix(plain, "passphrase")
}

// isPlaceholder reports what stands for a secret: "${TOKEN}", "<token>", "xxxx", "…".
func isPlaceholder(value string) bool {
	return strings.Trim(value, "xX*.…-_") == "" || strings.HasPrefix(value, "${") || strings.HasPrefix(value, "{{") || strings.HasPrefix(value, "<") || strings.HasPrefix(value, Hidden[:4])
}

// isPlainValue reports words that are never a secret.
func isPlainValue(value string) bool {
	switch strings.ToLower(value) {
	case "bearer", "basic", "string", "str", "text", "number", "int", "bool", "any", "true", "false", "null", "none", "nil", "undefined", "required", "optional", "missing", "invalid", "unset", "self", "this":
		return true
	}
	return false
}

// credential hides what follows "Bearer " or "Basic ".
func (s *spans) credential(text string, from int) {
	to := from
	for to < len(text) && (wordByte[text[to]] || text[to] == '~') {
		to++
	}
	if word := text[from:to]; len(word) >= 8 && (hasDigit(word) || len(word) >= 20 && !isLetters(word)) {
		s.add(from, to)
	}
}

// urlPassword hides the password of a URL whose host begins at from.
func (s *spans) urlPassword(text string, from int) {
	end := from
	for end < len(text) && strings.IndexByte("/?# \t\r\n\"'<>", text[end]) < 0 {
		end++
	}
	user := text[from:end]
	at := strings.LastIndexByte(user, '@')
	if at < 0 {
		return
	}
	colon := strings.IndexByte(user[:at], ':')
	switch {
	case colon < 0 && at >= shortestWord: // a token in place of the user
		s.add(from, from+at)
	case colon >= 0 && !isPlaceholder(user[colon+1:at]):
		s.add(from+colon+1, from+at)
		if colon >= shortestWord {
			s.add(from, from+colon)
		}
	}
}

func isIdentifier(word string) bool {
	for i := range len(word) {
		if !isAlnum(word[i]) && word[i] != '_' {
			return false
		}
	}
	return word != "" && !isDigit(word[0])
}
