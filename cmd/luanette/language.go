package main

import (
	"cmp"
	"path/filepath"
	"strings"

	"github.com/luanette/luanette/internal/scripting/script"
)

// languageFlag is the language of a script.
type languageFlag struct {
	Language string `enum:",lua,javascript" default:"" placeholder:"LANGUAGE" help:"Language of the script: lua or javascript; if omitted, the file's extension decides, otherwise lua."`
}

// of adds the language of a file to the arguments of a tool that runs it.
func (f languageFlag) of(file string, args map[string]any) map[string]any {
	if language := cmp.Or(f.Language, script.LanguageOf(file)); language != "" {
		args["language"] = language
	}
	return args
}

// storedLanguage returns the language of a file to store, which distinguishes
// TypeScript from JavaScript. It returns "" if the extension is unknown.
func storedLanguage(file string) string {
	if ext := strings.ToLower(filepath.Ext(file)); ext == ".ts" || ext == ".mts" {
		return "typescript"
	}
	return script.LanguageOf(file)
}

// openJavaScript reports whether code continues on the next line: a bracket, a
// template or a comment is open.
func openJavaScript(code string) bool {
	var open []byte
	for i := 0; i < len(code); i++ {
		rest := code[i:]
		switch c := code[i]; {
		case strings.HasPrefix(rest, "//"):
			i += max(0, strings.IndexByte(rest+"\n", '\n')-1)
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return true
			}
			i += end + 3
		case c == '"' || c == '\'':
			i += quotedLength(rest, c)
		case c == '`':
			end := quotedLength(rest, c)
			if end >= len(rest)-1 && !strings.HasSuffix(rest[1:], "`") {
				return true
			}
			i += end
		case strings.IndexByte("([{", c) >= 0:
			open = append(open, c)
		case strings.IndexByte(")]}", c) >= 0 && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	return len(open) > 0
}

// quotedLength returns the distance to the closing quote, or to the end of the line or text.
func quotedLength(text string, quote byte) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == quote, text[i] == '\n' && quote != '`':
			return i
		}
	}
	return len(text) - 1
}
