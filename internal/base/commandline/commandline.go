// Package commandline reads what people type on one line: words as shells split them, and
// arguments as key=value.
package commandline

import (
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
)

var (
	word        = lazyregexp.New(`(?s)(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+`)
	plainWord   = lazyregexp.New(`^[^\s'"\\]+$`)
	quotedPart  = lazyregexp.New(`(?s)\\(.)|'([^']*)'|"((?:[^"\\]|\\.)*)"`)
	escapedChar = lazyregexp.New(`(?s)\\(.)`)
)

// Split splits a line at spaces, as shells do: quotes keep a word together, a backslash
// makes the next character an ordinary one. Nothing is expanded. ok is false if a quote is
// not closed.
func Split(line string) (words []string, ok bool) {
	if strings.TrimSpace(word().ReplaceAllString(line, "")) != "" {
		return nil, false
	}
	for _, part := range word().FindAllString(line, -1) {
		words = append(words, quotedPart().ReplaceAllStringFunc(part, unquote))
	}
	return words, true
}

// unquote returns what a quoted part of a word stands for.
func unquote(part string) string {
	if part[0] == '\'' {
		return part[1 : len(part)-1]
	}
	return escapedChar().ReplaceAllString(strings.TrimSuffix(strings.TrimPrefix(part, `"`), `"`), "$1")
}

// Join is the inverse of Split.
func Join(words []string) string {
	quoted := make([]string, len(words))
	for i, one := range words {
		if quoted[i] = one; !plainWord().MatchString(one) {
			quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(one) + `"`
		}
	}
	return strings.Join(quoted, " ")
}

// Pair parses key=value by the argument's type in its schema, and key:=JSON as JSON.
func Pair(pair string, typeOf func(key string) string) (key string, value json.RawMessage, err error) {
	key, text, ok := strings.Cut(pair, "=")
	if !ok || key == "" {
		return "", nil, fault.New(fault.InvalidParams, "argument %q", pair).WithHint("write key=value, or key:=JSON")
	}
	if bare, raw := strings.CutSuffix(key, ":"); raw {
		if !json.Valid([]byte(text)) {
			return "", nil, fault.New(fault.InvalidParams, "argument %s: %q is not JSON", bare, text)
		}
		return bare, json.RawMessage(text), nil
	}
	kind, valid := typeOf(key), json.Valid([]byte(text))
	switch {
	case kind != "" && kind != "string" && valid:
		return key, json.RawMessage(text), nil
	case kind == "object" || kind == "array":
		return "", nil, fault.New(fault.InvalidParams, "argument %s: %q is not JSON", key, text).WithHint("it is an %s: write it as JSON", kind)
	}
	value, err = json.Marshal(text)
	return key, value, err
}
