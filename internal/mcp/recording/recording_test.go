package recording

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/wire"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "calc.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func player(t *testing.T, exchanges string) *Player {
	t.Helper()
	p, err := NewPlayer(write(t, `{"luanette_recording":1,`+exchanges+`}`))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }

// call is the answer to a tools/call: the result's JSON, or the error's message.
func call(p *Player, params string) string {
	result, failure := p.Answer(wire.MethodToolsCall, raw(params))
	if failure != nil {
		return failure.Message
	}
	return string(encode(decode(result)))
}

func TestAnswersWhatWasRecorded(t *testing.T) {
	t.Parallel()
	p := player(t, `"exchanges":[
		{"method":"tools/call","params":{"name":"double","arguments":{"n":4,"deep":{"list":[1,"a",null]}}},"result":{"content":[],"n":8}},
		{"method":"tools/call","params":{"name":"fail"},"error":{"code":-32000,"message":"broken","data":{"why":1}}},
		{"method":"resources/read","params":{"uri":"file:///a"},"result":{"contents":[]}},
		{"method":"tools/list","result":{"tools":[{"name":"double"}]}}]`)
	for _, params := range []string{
		`{"name":"double","arguments":{"deep":{"list":[1.0,"a",null]},"n":4.0}}`, // order and form of numbers do not matter
		`{"name":"double","arguments":{"n":4,"deep":{"list":[1,"a",null]}},"_meta":{"progressToken":7}}`,
	} {
		if got := call(p, params); got != `{"content":[],"n":8}` {
			t.Errorf("%s was answered with %s", params, got)
		}
	}
	_, failure := p.Answer(wire.MethodToolsCall, raw(`{"name":"fail","arguments":{}}`))
	if failure == nil || failure.Code != -32000 || failure.Message != "broken" || string(failure.Data) != `{"why":1}` {
		t.Errorf("the recorded error came as %+v", failure)
	}
	for method, want := range map[string]string{
		wire.MethodToolsList: `{"tools":[{"name":"double"}]}`, wire.MethodPromptsList: `{"prompts":[]}`, wire.MethodPing: `{}`,
		wire.MethodResourceTemplates: `{"resourceTemplates":[]}`, wire.MethodResourcesList: `{"resources":[]}`,
	} {
		if result, failure := p.Answer(method, nil); failure != nil || string(result) != want {
			t.Errorf("%s was answered with %s, %v", method, result, failure)
		}
	}
	result, _ := p.Answer(wire.MethodInitialize, raw(`{"protocolVersion":"2025-06-18"}`))
	want := `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"calc.json","version":"recorded"}}`
	if string(result) != want {
		t.Errorf("initialize was answered with\n%s, want\n%s", result, want)
	}
}

func TestUnknownCallShowsTheNearest(t *testing.T) {
	t.Parallel()
	p := player(t, `"exchanges":[
		{"method":"tools/call","params":{"name":"issue","arguments":{"title":"a","labels":["x"],"number":12345678901234567}},"result":{}},
		{"method":"tools/call","params":{"name":"issue","arguments":{"title":"b","labels":["x"],"number":1}},"result":{}}]`)
	for params, want := range map[string]string{
		`{"name":"issue","arguments":{"title":"b","labels":["x","y"],"number":1}}`:                          `calc.json has no answer to tools/call issue with {"labels":["x","y"],"number":1,"title":"b"}; the nearest recorded one has {"labels":["x"],"number":1,"title":"b"}: arguments.labels is ["x","y"] (recorded: ["x"])`,
		`{"name":"issue","arguments":{"title":"a","labels":["x"],"number":12345678901234568,"draft":true}}`: `arguments.number is 12345678901234568 (recorded: 12345678901234567); arguments.draft is true (recorded: missing)`,
		`{"name":"issue","arguments":{"labels":["x"],"number":1}}`:                                          `arguments.title is missing (recorded: "b")`,
		`{"name":"isue"}`: `calc.json has no answer to tools/call isue; recorded: issue`,
	} {
		if got := call(p, params); !strings.Contains(got, want) {
			t.Errorf("%s was answered with\n%s, want\n%s", params, got, want)
		}
	}
	_, failure := p.Answer(wire.MethodPromptsGet, raw(`{"name":"hello"}`))
	if failure == nil || failure.Message != "calc.json has no answer to prompts/get hello; no prompts/get is recorded" {
		t.Errorf("the answer is %v", failure)
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	p := player(t, `"match":{"arguments.request_id":"ignore","arguments.items.*.id":"any"},"exchanges":[
		{"method":"tools/call","params":{"name":"a","arguments":{"items":[{"id":1,"n":2}],"request_id":"r"}},"result":{"is":"items"}},
		{"method":"tools/call","params":{"name":"a","arguments":{"title":"x"}},"match":{"arguments.title":"/^Weekly [0-9]+$/"},"result":{"is":"title"}},
		{"method":"tools/call","params":{"name":"a","arguments":{"n":5}},"match":{"arguments.n":"/^[1-9]$/"},"result":{"is":"digit"}},
		{"method":"tools/call","params":{"name":"b"},"match":{"arguments":"ignore"},"result":{"is":"b"}}]`)
	for params, want := range map[string]string{
		`{"name":"a","arguments":{"items":[{"id":99,"n":2}]}}`:                                     `{"is":"items"}`,
		`{"name":"a","arguments":{"items":[{"id":null,"n":2}],"request_id":{"other":1}}}`:          `{"is":"items"}`,
		`{"name":"a","arguments":{"items":[{"n":2}]}}`:                                             `arguments.items.0.id is missing (a rule requires it)`,
		`{"name":"a","arguments":{"title":"Weekly 46"}}`:                                           `{"is":"title"}`,
		`{"name":"a","arguments":{"title":"Weekly report"}}`:                                       `arguments.title is "Weekly report" (the rule is /^Weekly [0-9]+$/)`,
		`{"name":"a","arguments":{"n":7}}`:                                                         `{"is":"digit"}`,
		`{"name":"b"}`:                                                                             `{"is":"b"}`,
		`{"name":"b","arguments":{"anything":["at","all"]}}`:                                       `{"is":"b"}`,
		`{"name":"b","arguments":{},"other":true}`:                                                 `other is true (recorded: missing)`,
		`{"name":"a","arguments":{"items":[{"id":1,"n":2},{"id":2,"n":2}]}}`:                       `arguments.items is [{"id":1,"n":2},{"id":2,"n":2}]`,
		`{"name":"a","arguments":{"items":{"0":{"id":1,"n":2}},"request_id":"arrays are arrays"}}`: `arguments.items is {"0"`,
	} {
		if got := call(p, params); !strings.Contains(got, want) {
			t.Errorf("%s was answered with %s, want %s", params, got, want)
		}
	}
}

// The same request may have several answers, which come in order; a more general exchange
// behind them is not used up by it.
func TestAnswersComeInOrder(t *testing.T) {
	t.Parallel()
	p := player(t, `"exchanges":[
		{"method":"tools/call","params":{"name":"poll","arguments":{"id":1}},"result":{"is":"pending"}},
		{"method":"tools/call","params":{"name":"poll","arguments":{"id":1.0}},"result":{"is":"other"}},
		{"method":"tools/call","params":{"arguments":{"id":1},"name":"poll"},"result":{"is":"done"}},
		{"method":"tools/call","params":{"name":"poll"},"match":{"arguments":"ignore"},"result":{"is":"general"}}]`)
	for i, want := range []string{"pending", "done", "done", "done"} {
		if got := call(p, `{"name":"poll","arguments":{"id":1}}`); got != `{"is":"`+want+`"}` {
			t.Errorf("answer %d is %s, want %s", i+1, got, want)
		}
	}
	if got := call(p, `{"name":"poll","arguments":{"id":2}}`); got != `{"is":"general"}` {
		t.Errorf("the general answer is %s", got)
	}
}

func TestWrongFilesSayWhere(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"luanette_recording":1,` + "\n\n" + `"exchanges":[}`: "calc.json:3: invalid character",
		`{"exchanges":[]}`: "luanette_recording is 0, not 1",
		`{"luanette_recording":1,"exchanges":[{"method":"tools/call","params":{"name":"a"}}]}`:                  "exchange 1 (tools/call a): it needs either result or error",
		`{"luanette_recording":1,"exchanges":[{"result":{}}]}`:                                                  "exchange 1 (): it has no method",
		`{"luanette_recording":1,"exchanges":[{"method":"x","result":{},"match":{"a":"sometimes"}}]}`:           `match "a": "sometimes" is neither`,
		`{"luanette_recording":1,"match":{"a":"/(/"},"exchanges":[]}`:                                           "missing closing )",
		`{"luanette_recording":1,"exchanges":[{"method":"x","result":{},"mach":{}}]}`:                           `unknown field "mach"`,
		`{"luanette_recording":1,` + "\n" + `"exchanges":[{"method":5}]}`:                                       "calc.json:2:",
		`{"luanette_recording":1,"exchanges":[{"method":"x","result":{},"error":{"code":1,"message":"both"}}]}`: "either result or error",
	} {
		_, err := Load(write(t, text))
		if err == nil || !strings.Contains(err.Error(), want) || fault.CodeOf(err) != fault.Config {
			t.Errorf("%s: got error %v, want %s", text, err, want)
		}
	}
	_, err := Load(filepath.Join(t.TempDir(), "none.json"))
	if err == nil || !strings.Contains(fault.HintOf(err), "luanette record") {
		t.Errorf("the hint for a missing file is %q", fault.HintOf(err))
	}
}
