package modelspec

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/toolset"
	"github.com/luanette/luanette/internal/tools/toolset/toolsettest"
)

func riff() Spec {
	least, most := 1.0, 30.0
	return Spec{
		URL: "http://127.0.0.1:2020", Description: "Generates a riff.", Result: Audio, Send: map[string]any{"task": "riff"},
		Arguments: map[string]Argument{
			"text":    {Type: "string", Required: true, Min: &least},
			"seconds": {Type: "number", Default: int64(5), Min: &least, Max: &most},
			"style":   {Type: "string", Values: []string{"blues", "punk"}},
			"words":   {Type: "list"},
			"loop":    {Type: "boolean"},
			"bars":    {Type: "integer", Field: "num_bars"},
			"like":    {Type: "audio", Field: "audio"},
		},
	}
}

func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	big, small := 9.0, 1.0
	for want, change := range map[string]func(s *Spec){
		"no http address":         func(s *Spec) { s.URL = "ftp://x" },
		"description has 0 bytes": func(s *Spec) { s.Description = "" },
		"unknown result":          func(s *Spec) { s.Result = "video" },
		"is not a duration":       func(s *Spec) { s.Timeout = "soon" },
		"up to 1h0m0s":            func(s *Spec) { s.Timeout = "100h" },
		"unknown type":            func(s *Spec) { s.Arguments["text"] = Argument{Type: "text"} },
		"this argument":           func(s *Spec) { s.Arguments["tags"] = Argument{Type: "list"} },
		"name of an argument":     func(s *Spec) { s.Arguments["a-b"] = Argument{Type: "list"} },
		"greater than max":        func(s *Spec) { s.Arguments["n"] = Argument{Type: "number", Min: &big, Max: &small} },
		"cannot have values":      func(s *Spec) { s.Arguments["n"] = Argument{Type: "number", Values: []string{"1"}} },
		"out of range":            func(s *Spec) { s.Arguments["n"] = Argument{Type: "number", Max: &small, Default: 3.5} },
		"has no default":          func(s *Spec) { s.Arguments["n"] = Argument{Type: "midi", Default: "x"} },
	} {
		s := riff()
		if err := s.Check("riff"); err != nil {
			t.Fatal(err)
		}
		change(&s)
		if err := s.Check("riff"); err == nil || fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), want) || fault.HintOf(err) == "" {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, name := range []string{"", "Riff", "a.b", "riff generate", strings.Repeat("x", 49), "../x", "a\nb"} {
		if err := riff().Check(name); err == nil {
			t.Errorf("%q is accepted as a name", name)
		}
	}
}

func TestSchemaFollowsTheRules(t *testing.T) {
	t.Parallel()
	type kin struct {
		Tags []string `json:"tags,omitempty" jsonschema:"words"`
	}
	schema, err := riff().Schema(toolset.InputSchema[kin]("riff"))
	if err != nil {
		t.Fatal(err)
	}
	set := toolset.NewSet("x", []toolset.Tool{toolset.DefineSchema(
		tool.Info{Ref: tool.Ref{Name: "riff"}, Title: "Riff", Description: "Makes a riff.", Input: schema}, func(ctx context.Context, _ tool.Call) (kin, error) { return kin{}, ctx.Err() },
	)})
	tools, err := set.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	toolsettest.Check(t, tools[0])
	for _, want := range []string{`"required":["text"]`, `"enum":["blues","punk"]`, `"maximum":30`, `"minLength":1`, `"additionalProperties":false`, `"tags"`, "default 5"} {
		if !strings.Contains(string(schema), want) {
			t.Errorf("no %s in %s", want, schema)
		}
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	s := riff()
	args, err := s.Decode(json.RawMessage(`{"text":"fast","bars":4,"like":"artifact_0123456789ab","tags":["x"],"loop":null}`))
	if err != nil {
		t.Fatal(err)
	}
	request, err := s.Request(args, func(kind, name string) (string, error) { return kind + ":" + name, nil })
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(request)
	if want := `{"audio":"audio:artifact_0123456789ab","num_bars":4,"seconds":5,"task":"riff","text":"fast"}`; err != nil || string(got) != want {
		t.Errorf("request %s, want %s", got, want)
	}
	if names := s.Contents(args); len(names) != 1 || names[0] != "artifact_0123456789ab" {
		t.Errorf("contents %v", names)
	}
	if len(s.Send) != 1 {
		t.Errorf("the description was changed: %v", s.Send)
	}
}

func TestHostileArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{}`, `[]`, `{"text":1}`, `{"text":""}`, `{"text":"x","seconds":"5"}`, `{"text":"x","seconds":1e99}`, `{"text":"x","bars":1.5}`,
		`{"text":"x","style":"polka"}`, `{"text":"x","words":["a",1]}`, `{"text":"x","words":"a"}`, `{"text":"x","loop":"yes"}`, `{"text":"x","like":{}}`,
		`{"text":"` + strings.Repeat("x", maxText+1) + `"}`, `{"text":"x","words":[` + strings.Repeat(`"a",`, 300) + `"a"]}`,
	} {
		if args, err := riff().Decode(json.RawMessage(raw)); fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("%.60s: %v, %v", raw, args, err)
		}
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"http://127.0.0.1:2020": "http://127.0.0.1:2020/predict", "http://127.0.0.1:2020/": "http://127.0.0.1:2020/predict",
		"https://x.test/v1/run?a=1": "https://x.test/v1/run?a=1",
	} {
		if got := (Spec{URL: given}).Address(); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}
