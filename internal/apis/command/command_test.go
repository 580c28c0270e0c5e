package command

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/sandbox/launch"
)

func TestMain(m *testing.M) {
	clocktest.SetParallel()
	goleak.VerifyTestMain(clocktest.Settled(m))
}

// line is a command line; a text in brackets is an optional group, whose words are
// separated by spaces.
func line(words ...string) (args []api.Argument) {
	for _, word := range words {
		inner, ok := strings.CutPrefix(word, "[")
		if ok {
			args = append(args, api.Argument{Texts: strings.Fields(strings.TrimSuffix(inner, "]")), Optional: true})
			continue
		}
		args = append(args, api.Argument{Texts: []string{word}})
	}
	return args
}

func TestExpand(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args   []api.Argument
		dash   []string
		values string
		want   []string // nil: it is refused
	}{
		{line("git", "log", "-n", "{{n}}"), nil, `{"n":5}`, []string{"log", "-n", "5"}},
		{line("git", "log", "-n", "{{ n }}"), nil, `{}`, nil},
		{line("git", "log", "-n", "{{n}}"), nil, `{"n":-5}`, nil},
		{line("git", "log", "-n", "{{n}}"), []string{"n"}, `{"n":-5}`, []string{"log", "-n", "-5"}},
		{line("grep", "--", "{{what}}", "{{files...}}"), nil, `{"what":"-r","files":["-a","b c"]}`, []string{"--", "-r", "-a", "b c"}},
		{line("ls", "{{files...}}"), nil, `{"files":["a","--all"]}`, nil},
		{line("ls", "{{files...}}"), nil, `{}`, []string{}},
		{line("ls", "{{files...}}"), nil, `{"files":"one"}`, []string{"one"}},
		{line("x", "--name={{name}}"), nil, `{"name":"--y; $(rm -rf /)"}`, []string{"--name=--y; $(rm -rf /)"}},
		{line("x", "{{a}}-y"), nil, `{"a":""}`, nil},
		{line("x", "{{a}}{{b}}"), nil, `{"a":"","b":"-z"}`, nil},
		{line("x", "[--author {{author}}]", "[{{?all}} --all]"), nil, `{"author":"ada"}`, []string{"--author", "ada"}},
		{line("x", "[--author {{author}}]", "[{{?all}} --all]"), nil, `{"author":null,"all":true}`, []string{"--all"}},
		{line("x", "[--author {{author}}]", "[{{?all}} --all]"), nil, `{"all":false}`, []string{}},
		{line("x", "[-- {{a}}]", "{{b}}"), nil, `{"b":"-c"}`, nil},
		{line("x", "[-- {{a}}]", "{{b}}"), nil, `{"a":"1","b":"-c"}`, []string{"--", "1", "-c"}},
		{line("x", "{{a}}"), nil, `{"a":"zero\u0000byte"}`, nil},
		{line("x", "{{a}}"), nil, `{"a":{"b":1}}`, nil},
		{line("x", "{{a}}"), nil, `{"a":true}`, []string{"true"}},
		{line("x", ""), nil, `{}`, []string{""}},
	} {
		parsed, err := parse(api.CommandTool{Args: test.args, Dash: test.dash})
		if err != nil {
			t.Errorf("%v: %v", test.args, err)
			continue
		}
		got, err := parsed.expand(json.RawMessage(test.values))
		switch {
		case test.want == nil && fault.CodeOf(err) != fault.InvalidParams:
			t.Errorf("%v with %s: %q, %v", test.args, test.values, got, err)
		case test.want != nil && (err != nil || !slices.Equal(got, test.want)):
			t.Errorf("%v with %s: %q, %v; want %q", test.args, test.values, got, err, test.want)
		}
	}
}

func TestInvalidTemplates(t *testing.T) {
	t.Parallel()
	for _, c := range []api.CommandTool{
		{Args: line("{{program}}")},
		{Args: line("x", "{{1}}")},
		{Args: line("x", "{{a")},
		{Args: line("x", "a{{b...}}")},
		{Args: line("x", "{{?a}}")},
		{Args: line("x", "{{a}}"), Params: json.RawMessage(`{"b":{"type":"string"}}`)},
	} {
		if err := Check(c); fault.CodeOf(err) != fault.Config {
			t.Errorf("%v: %v", c.Args, err)
		}
	}
}

// No value that begins with a dash becomes an argument of its own unless it may.
func FuzzDash(f *testing.F) {
	f.Add("-x", "y")
	f.Add("", "--all")
	parsed, err := parse(api.CommandTool{Args: line("x", "{{a}}", "{{a}}{{b}}", "[{{b}}-{{a}}]")})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		values, err := json.Marshal(map[string]string{"a": a, "b": b})
		if err != nil {
			t.Fatal(err)
		}
		args, err := parsed.expand(values)
		for _, arg := range args {
			if strings.HasPrefix(arg, "-") {
				t.Errorf("%q and %q became %q (%v)", a, b, args, err)
			}
		}
	})
}

func open(t *testing.T, all map[string]api.CommandTool) api.API {
	t.Helper()
	return openWith(t, nil, all)
}

func openWith(t *testing.T, launcher *launch.Launcher, all map[string]api.CommandTool) api.API {
	t.Helper()
	for name, c := range all {
		c.Env = map[string]string{"PATH": os.Getenv("PATH"), "WHO": "ada"}
		if c.Timeout == 0 {
			c.Timeout = time.Hour
		}
		if c.MaxBytes == 0 {
			c.MaxBytes = DefaultMaxBytes
		}
		all[name] = c
	}
	opened, err := Open(t.Context(), api.Environment{Sandbox: launcher, Settings: api.Settings{Kind: api.Command, Commands: all}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(opened.Close)
	return opened
}

func call(ctx context.Context, a api.API, name, args string) (string, error) {
	raw, err := a.Call(ctx, api.Call{Tool: name, Arguments: json.RawMessage(args), Progress: func(float64, float64, string) {}})
	return string(raw), err
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	listing, err := open(t, map[string]api.CommandTool{
		"log": {
			Description: "Lists commits", Args: line("sh", "-n", "{{n}}", "[--author {{author}}]", "[{{?all}} --all]", "--", "{{paths...}}"),
			Params: json.RawMessage(`{"n":{"type":"integer","default":10}}`), Stdin: "text", Output: api.OutputLines, ReadOnly: true,
		},
		"nothing": {Args: line("no-such-program")},
	}).List(t.Context())
	if err != nil || len(listing.Tools) != 1 || len(listing.LeftOut) != 1 || !strings.HasPrefix(listing.LeftOut[0], "nothing: ") {
		t.Fatalf("%+v %v", listing, err)
	}
	want := `{"name":"log","description":"Lists commits","inputSchema":{"type":"object","properties":{"n":{"type":"integer","default":10},"author":{"type":"string"},"all":{"type":"boolean"},"paths":{"type":"array","items":{"type":"string"}},"text":{"type":"string"}},"required":["text"],"additionalProperties":false},"outputSchema":` + linesSchema + `,"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":true}}`
	if got := string(listing.Tools[0]); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	commands := open(t, map[string]api.CommandTool{
		"text":  {Args: line("printf", "%s|", "{{a}}", "{{b}}"), Params: json.RawMessage(`{"b":{"type":"string","default":"two words"}}`)},
		"lines": {Args: line("printf", "%s\\n", "{{all...}}"), Output: api.OutputLines},
		"json":  {Args: line("printf", "%s", "{{a}}"), Output: api.OutputJSON, MaxBytes: 20},
		"cat":   {Args: line("cat"), Stdin: "text", MaxBytes: 5},
		"fails": {Args: line("sh", "-c", "echo said; echo oops >&2; exit 3")},
		"env":   {Args: line("sh", "-c", "echo $WHO-$HOME")},
	})
	for _, test := range []struct{ name, args, want string }{
		{"text", `{"a":"$HOME; ls"}`, `{"content":[{"text":"$HOME; ls|two words|","type":"text"}]}`},
		{"lines", `{"all":["a","b c"]}`, `{"content":[{"text":"a\nb c\n","type":"text"}],"structuredContent":{"lines":["a","b c"],"truncated":false}}`},
		{"json", `{"a":"{\"n\":1}"}`, `{"content":[{"text":"{\"n\":1}","type":"text"}],"structuredContent":{"n":1}}`},
		{"json", `{"a":"[1]"}`, `{"content":[{"text":"[1]","type":"text"}]}`},
		{"json", `{"a":"{"}`, `{"content":[{"text":"the output is not JSON:\n{","type":"text"}],"isError":true}`},
		{"json", `{"a":"[1,2,3,4,5,6,7,8,9,10]"}`, `{"content":[{"text":"the output is longer than 20 bytes:\n[1,2,3,4,5,6,7,8,9,1","type":"text"}],"isError":true}`},
		{"cat", `{"text":"hello"}`, `{"content":[{"text":"hello","type":"text"}]}`},
		{"cat", `{"text":"hello!"}`, `{"content":[{"text":"hello\n[the output is longer than 5 bytes; the rest was cut off]","type":"text"}]}`},
		{"fails", `{}`, `{"content":[{"text":"sh exited with status 3\noops\n\nsaid","type":"text"}],"isError":true}`},
		{"env", ``, `{"content":[{"text":"ada-\n","type":"text"}]}`},
	} {
		if got, err := call(t.Context(), commands, test.name, test.args); err != nil || got != test.want {
			t.Errorf("%s %s: %s %v\nwant %s", test.name, test.args, got, err, test.want)
		}
	}
	if _, err := call(t.Context(), commands, "other", "{}"); fault.CodeOf(err) != fault.ToolNotFound {
		t.Errorf("another tool: %v", err)
	}
	if _, err := call(t.Context(), commands, "lines", `{"all":["-v"]}`); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("an option as a value: %v", err)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	commands := open(t, map[string]api.CommandTool{"slow": {Args: line("sleep", "100000"), Timeout: time.Millisecond}})
	if _, err := call(t.Context(), commands, "slow", "{}"); fault.CodeOf(err) != fault.Timeout {
		t.Errorf("after its timeout: %v", err)
	}
}

func TestResultIsAToolResult(t *testing.T) {
	t.Parallel()
	raw, err := call(t.Context(), open(t, map[string]api.CommandTool{"a": {Args: line("printf", "x")}}), "a", "{}")
	if err != nil {
		t.Fatal(err)
	}
	if view, err := (tool.Result{Raw: json.RawMessage(raw)}).View(); err != nil || view.Text() != "x" {
		t.Errorf("%+v %v", view, err)
	}
}
