package script

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
)

// ambient is the description of the documentation's example, extended.
const ambient = `
function describe()
    return {
        name = "generate_ambient",
        description = "Generate ambient MIDI with Orpheus",
        params = {
            style = { type = "string", required = false, default = "ambient", description = "mood" },
            bars = { type = "number", required = true, min = 1, max = 64 },
            notes = { type = "array", items = "integer" },
            key = { type = "string", enum = { "C", "G" } },
            extra = { type = "table" },
            whatever = {},
        },
        returns = "Job ID for Orpheus generation",
        annotations = { read_only = true, open_world = false },
        tags = { "style:ambient" },
    }
end
function main(params) return params end`

func TestDescribe(t *testing.T) {
	t.Parallel()
	d, err := newRunner(t, nil).Describe(t.Context(), Request{Source: ambient, Name: "a.lua"})
	if err != nil {
		t.Fatal(err)
	}
	if !d.Defined || d.Name != "generate_ambient" || d.Returns != "Job ID for Orpheus generation" || len(d.Warnings) != 0 ||
		d.Hints != (tool.Hints{ReadOnly: true, ClosedWorld: true}) || len(d.Tags) != 1 {
		t.Errorf("Describe = %+v", d)
	}
	const want = `{"type":"object","properties":{` +
		`"style":{"type":"string","description":"mood (default: \"ambient\")"},` +
		`"bars":{"type":"number","minimum":1,"maximum":64},` +
		`"notes":{"type":"array","items":{"type":"integer"}},` +
		`"key":{"type":"string","enum":["C","G"]},` +
		`"extra":{"type":"object"},` +
		`"whatever":{"type":["string","number","boolean","object","array"]}},` +
		`"required":["bars"],"additionalProperties":false}`
	if got := string(d.Schema()); got != want {
		t.Errorf("Schema\n got %s\nwant %s", got, want)
	}
	const table = `{"style":{"type":"string","required":false,"default":"ambient","description":"mood"},"bars":{"type":"number","required":true}`
	if got := string(d.Table()); !strings.HasPrefix(got, table) {
		t.Errorf("Table = %s", got)
	}
}

func TestDescribeForms(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	for source, want := range map[string]string{
		"function main() end":                           `{"type":"object","properties":{},"required":[]}`,
		"-- describe is not there\nfunction main() end": `{"type":"object","properties":{},"required":[]}`,
		"function describe() return {} end":             `{"type":"object","properties":{},"required":[]}`,
		"function describe() return {params={}} end":    `{"type":"object","properties":{},"required":[],"additionalProperties":false}`,
		"function describe() return {params={n='int', l={default={1}}}} end": `{"type":"object","properties":{"n":{"type":"integer"},` +
			`"l":{"type":"array","description":"(default: [1])","items":{"type":["string","number","boolean","object","array"]}}},"required":[],"additionalProperties":false}`,
		"function describe() return {params={{name='b',type='bool'},{name='a',type='string',required=true}}} end": `{"type":"object","properties":{"b":{"type":"boolean"},"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`,
	} {
		d, err := r.Describe(t.Context(), Request{Source: source})
		if err != nil || string(d.Schema()) != want {
			t.Errorf("%s\n got %s, %v\nwant %s", source, d.Schema(), err, want)
		}
	}
}

func TestDescribeRefuses(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	for source, want := range map[string]string{
		"function describe( return {} end":                                        "SyntaxError",
		"function main( end":                                                      "SyntaxError",
		"function describe() return 7 end":                                        "describe() must return a table with named fields, it returned number",
		"function describe() end":                                                 "describe() must return a table with named fields, it returned nil",
		"function describe() return {name=7} end":                                 "describe().name must be a string, it is a number",
		"function describe() return {params={a={required='yes'}}} end":            "describe().params.a.required must be a boolean",
		"function describe() return {params={a=7}} end":                           "describe().params.a must be a table such as",
		"function describe() return {params={a={type='number',default='x'}}} end": "describe().params.a.default: should be number but got string",
		"function describe() return {params={{type='number'}}} end":               "describe().params[1] has no name",
		"function describe() return {annotations={read_only='yes'}} end":          "describe().annotations.read_only must be true or false",
		"function describe() error('no') end":                                     "no",
		"function describe() return mcp.calc.double{n=1} end":                     "is not allowed while the script is being described",
		"fs.write('x', 'y') function describe() return {} end":                    "is not allowed while the script is being described",
		"function describe() return {f=print} end":                                "function",

		// Typing errors are errors wherever the script is run, because the check would be lost.
		"function describe() return {param={a='number'}} end":                                   "describe().param is unknown; did you mean 'params'?",
		"function describe() return {params={a={type='number',require=true}}} end":              "describe().params.a.require is unknown; did you mean 'required'?",
		"function describe() return {params={a={type='str'}}} end":                              "describe().params.a: the type 'str' is unknown; did you mean 'string'?",
		"function describe() return {params={a='nubmer'}} end":                                  "describe().params.a: the type 'nubmer' is unknown; did you mean 'number'?",
		"function describe() return {params={a={type='array',items='text'}}} end":               "describe().params.a: the type 'text' is unknown; the types are string,",
		"function describe() return {annotations={readonly=true}} end":                          "describe().annotations.readonly is unknown; did you mean 'read_only'?",
		"function describe() pcall(mcp.calc.double, {n=1}) return {name='a'} end":               "describe() used something that is refused while a script is described, caught the error, and returned no params",
		"function describe() return {params={a={type='array',items='string',default={1}}}} end": "describe().params.a.default: item 1 should be string but got number",
	} {
		_, err := r.Describe(t.Context(), Request{Source: source})
		var failed *Error
		if !errors.As(err, &failed) || !strings.Contains(string(failed.Kind)+": "+failed.Message, want) {
			t.Errorf("%s\n got %v\nwant %s", source, err, want)
		}
	}
}

func TestDescribeWarns(t *testing.T) {
	t.Parallel()
	d, err := newRunner(t, nil).Describe(t.Context(), Request{Source: "function describe() return {author='x', params={a={type='number', unit='dB'}}} end function main() end"})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(d.Warnings, "|"); got != "describe().author is unknown and ignored|describe().params.a.unit is unknown and ignored" {
		t.Errorf("Warnings = %s", got)
	}
}

func TestCheckParams(t *testing.T) {
	t.Parallel()
	d, err := newRunner(t, nil).Describe(t.Context(), Request{Source: ambient})
	if err != nil {
		t.Fatal(err)
	}
	for params, want := range map[string]string{
		`{"bars":4}`:                `{"bars":4,"style":"ambient"}`,
		`{"bars":4.5,"style":null}`: `{"bars":4.5,"style":"ambient"}`,
		`{"bars":4,"style":"x","notes":[1],"extra":[]}`:   `{"bars":4,"style":"x","notes":[1],"extra":[]}`,
		`{"bars":4,"style":"x","notes":{}}`:               `{"bars":4,"style":"x","notes":[]}`,
		`{"bars":4,"style":"x","whatever":{"a":[1]}}`:     `{"bars":4,"style":"x","whatever":{"a":[1]}}`,
		`{"bars":4,"notes":[1,"c"]}`:                      "Parameter validation failed:\n- Parameter 'notes' item 2 should be integer but got string",
		`{"style":"x","bars":9007199254740993,"key":"C"}`: "Parameter validation failed:\n- Parameter 'bars' should be at most 64 but got 9007199254740993",
		``:    "Parameter validation failed:\n- Missing required parameter 'bars'",
		`[]`:  "Parameter validation failed:\n- Missing required parameter 'bars'",
		`[1]`: "Parameter validation failed:\n- Parameters should be a table with named fields but got array",
		`{"bars":"4","notes":7,"key":"H","styl":"x"}`: "Parameter validation failed:\n- Parameter 'bars' should be number but got string\n- Parameter 'notes' should be array but got number\n- Parameter 'key' should be one of \"C\", \"G\" but got \"H\"\n- Unknown parameter 'styl' (did you mean 'style'?)",
	} {
		got, err := d.Check(json.RawMessage(params))
		text := string(got)
		if err != nil {
			text = err.Error()
		}
		if text != want {
			t.Errorf("%s\n got %s\nwant %s", params, text, want)
		}
	}
}

func TestMissingParamsSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	source := "function describe() return {params={x={type='string', required=true, description='the way'}}} end function main(p) return p end"
	_, err := r.Prepare(t.Context(), Request{Source: source, Main: true})
	if err == nil || err.Error() != "Parameter validation failed:\n- Missing required parameter 'x' (the way)" {
		t.Errorf("Prepare: %v", err)
	}
	q, err := r.Prepare(t.Context(), Request{Source: source, Main: true, Params: json.RawMessage(`{"x":"a"}`)})
	if err != nil || string(q.Params) != `{"x":"a"}` {
		t.Errorf("Prepare = %s, %v", q.Params, err)
	}
	_, err = r.Prepare(t.Context(), Request{Source: "function describe() error('x') end", Main: true, Params: json.RawMessage(`{"x":1}`)})
	if err == nil || !strings.Contains(err.Error(), "script:1: x") {
		t.Errorf("Prepare of a script that cannot describe itself: %v", err)
	}
}

// TestTopLevelMayDoWithout checks that the top level may catch a refusal: describe() itself
// did not.
func TestTopLevelMayDoWithout(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"local ok, text = pcall(fs.read, 'a') function describe() return {name='a'} end function main() end",
		"function describe() pcall(fs.read, 'a') return {name='a', params={}} end function main() end",
	} {
		if _, err := newRunner(t, nil).Describe(t.Context(), Request{Source: source}); err != nil {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// usual is what scripts do at their top level.
const usual = `
local h, play = mcp.hootenanny, mcp.hootenanny.play
local ours = mcp.script_store
local started, at, home = os.time(), clock.now(), os.getenv("HOME")
local out = temp.path("out.mid")
local trace = otel.trace_id() .. otel.traceparent()
otel.event("loaded") otel.set_attribute("a", 1) otel.record_metric("m", 1) log.info("x") print("loaded") progress(0.5)
math.randomseed(started)
`

func TestUsualTopLevelIsDescribed(t *testing.T) {
	t.Parallel()
	events := 0
	r := newRunner(t, func(o *Options) { o.Getenv = func(string) (string, bool) { events++; return "", false } })
	source := usual + "function describe() return {params={n={type='number', default=7}}} end function main(p) return p.n end"
	q, err := r.Prepare(t.Context(), Request{Source: source, Main: true})
	if err != nil || string(q.Params) != `{"n":7}` {
		t.Errorf("Prepare = %s, %v", q.Params, err)
	}
	if _, err := r.Prepare(t.Context(), Request{Source: source, Main: true, Params: json.RawMessage(`{"n":"x"}`)}); err == nil {
		t.Error("params of a script with a usual top level are not checked")
	}
	if events != 2 {
		t.Errorf("a description that depends on a variable was made %d times, not 2", events)
	}
}

func TestDescribeIsLimitedByStepsNotTime(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	for _, source := range []string{"function describe() while true do end end", "while true do end function describe() end"} {
		_, err := r.Prepare(t.Context(), Request{Source: source, Main: true})
		var failed *Error
		if !errors.As(err, &failed) || failed.Kind != LimitError || !strings.Contains(failed.Message, "steps") {
			t.Errorf("%s: %v", source, err)
		}
	}
	if d, err := r.Describe(t.Context(), Request{Source: "for i = 1, 1e6 do local s = i .. '' end function describe() return {name='slow'} end"}); err != nil || d.Name != "slow" {
		t.Errorf("Describe = %+v, %v", d, err)
	}
}

func TestDescriptionsAreKept(t *testing.T) {
	t.Parallel()
	var d recent[descriptionKey, Description]
	for i := range generation/descriptionWeight + 1 {
		q := Request{Source: strings.Repeat(" ", i)}
		d.keep(descriptionOf(q), Description{Name: "kept"}, descriptionWeight)
	}
	if one, ok := d.find(descriptionOf(Request{}), descriptionWeight); !ok || one.Name != "kept" {
		t.Error("an older description is lost")
	}
	if _, ok := d.find(descriptionOf(Request{Language: JavaScript}), descriptionWeight); ok {
		t.Error("the language does not count")
	}
}
