// Package builtin is how the server offers tools of its own: the menus that clients see,
// results that are too large to be shown, resources, prompts, completions, and the
// instructions that teach a model to use them. The tools are in a folder per family; each
// has its description for models in a Markdown file of its name.
package builtin

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// Count returns a number with its noun: "1 job", "2 jobs".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// BriefLength is how much of a description lists show, in bytes.
const BriefLength = 240

// Brief returns the first paragraph of a description, at most so many bytes.
func Brief(text string, limit int) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n\n")
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= limit {
		return text
	}
	end := limit
	for !utf8.RuneStart(text[end]) {
		end--
	}
	if space := strings.LastIndexByte(text[:end], ' '); space > limit/2 {
		end = space
	}
	return text[:end] + " …"
}

// Shared is how a thing of somebody else is seen.
type Shared struct {
	Owner string          `json:"owner,omitempty" jsonschema:"name of the owner, if it is somebody else's"`
	Level principal.Level `json:"shared,omitempty" jsonschema:"what the owner permits: see, use or edit"`
}

// ScriptError is why a script failed.
type ScriptError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Line    int    `json:"line,omitempty" jsonschema:"of the script"`
	Column  int    `json:"column,omitempty"`
}

// Text returns the message and the hint.
func (e *ScriptError) Text() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + "\nHint: " + e.Hint
}

// LogLine is one line of a script's output.
type LogLine struct {
	Stream string  `json:"stream" jsonschema:"stdout, stderr or log"`
	Level  string  `json:"level,omitempty"`
	Text   string  `json:"text"`
	Time   float64 `json:"time" jsonschema:"seconds since 1970"`
}

// NewScriptError adds the place in the script that the details of a fault name.
func NewScriptError(code fault.Code, message, hint string, details toolset.JSON) *ScriptError {
	e := ScriptError{Code: string(code), Message: message, Hint: hint}
	var at struct{ Line, Column int }
	if json.Unmarshal(details, &at) == nil {
		e.Line, e.Column = at.Line, at.Column
	}
	return &e
}

// LogLines returns the output of a script.
func LogLines(lines []host.OutputLine) []LogLine {
	var views []LogLine
	for _, line := range lines {
		views = append(views, LogLine{line.Stream, line.Level, line.Text, Seconds(line.Time)})
	}
	return views
}

// Seconds returns seconds since 1970, to the millisecond; 0 for no time.
func Seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

// TimeText formats seconds since 1970 for people.
func TimeText(Seconds float64) string {
	return time.UnixMilli(int64(Seconds * 1000)).UTC().Format("2006-01-02 15:04:05 UTC")
}
