package script

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script/scripttest"
)

func TestMissingFieldsAreExplained(t *testing.T) {
	t.Parallel()
	issue := tool.Ref{Space: "git", Name: "issue"}
	runner := newRunner(t, func(o *Options) {
		o.Tools = toolbox{issue: scripttest.HandlerFor(func(context.Context, struct{}) (any, error) {
			return map[string]any{"title": map[string]any{"text": "x"}, "labels": []string{}}, nil
		})}
		o.Fields = func(_ context.Context, ref tool.Ref) []string {
			if ref != issue {
				return nil
			}
			return []string{"title", "text", "labels", "closed_at"}
		}
	})
	for source, want := range map[string]string{
		"const i = await mcp.git.issue({}); const all = i.labels.length + '" + strings.Repeat("x", 200) + "'; return i.tittle.length": "no field 'tittle' in results of git.issue; did you mean 'title'?",
		"const i = await issue({});\nreturn i.tittle.text":               "no field 'tittle' in results of git.issue; did you mean 'title'?",
		"local i = mcp.git.issue{}\nreturn i.tittle.text":                "no field 'tittle' in results of git.issue; did you mean 'title'?",
		"local i = mcp.git['issue']{}\nreturn 'x' .. i.tilte":            "no field 'tilte' in results of git.issue; did you mean 'title'?",
		"local i = mcp.call('git', 'issue', {})\nreturn i.closed_at + 1": "'closed_at' is not in every result of git.issue",
		"local i = mcp.git.issue{}\nreturn i.zebra.x":                    "fields in results of git.issue: title, text, labels, closed_at",
	} {
		language := Lua
		if strings.HasPrefix(source, "const") {
			language = JavaScript
		}
		_, err := runner.Run(t.Context(), Request{Source: source, Language: language})
		var failed *Error
		if !errors.As(err, &failed) || !slices.ContainsFunc(append(failed.Suggestions, failed.Troubleshooting...), func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("%s\n%v", source, err)
		}
	}
}

func TestMissingFieldIsReadFromMessages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ message, line, want string }{
		{"script:2: attempt to index a nil value (field 'tittle')", "", "tittle"},
		{"attempt to index a nil value (local 'x')", "", ""},
		{"TypeError: cannot read property 'text' of undefined", "  return issue.tittle.text;", "tittle"},
		{"TypeError: cannot read property 'text' of undefined", "  return issue.text;", ""},
		{"TypeError: cannot read property 'length' of undefined", "return a.labels.length + b.tittle.length", "labels tittle"},
		{"Cannot read properties of undefined (reading 'length')", "x = a.b.items.length", "items"},
	} {
		if got := strings.Join(missingFields(tt.message, tt.line), " "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.message, got, tt.want)
		}
	}
}
