package toolset

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

type manyKinds struct {
	Text   string            `json:"text" jsonschema:"some text"`
	Big    uint64            `json:"big,omitempty"`
	When   time.Time         `json:"when,omitzero"`
	Maybe  *bool             `json:"maybe,omitempty"`
	List   []string          `json:"list,omitempty" max:"3"`
	Map    map[string]int    `json:"map,omitempty"`
	Any    JSON              `json:"any,omitempty"`
	Object Object            `json:"object"`
	Nested struct{ N int8 }  `json:"nested"`
	Deep   []map[string]bool `json:"deep,omitempty"`
	Choice string            `json:"choice,omitempty" enum:"a,b"`
	Rate   float64           `json:"rate,omitempty" min:"0.5" max:"2"`
}

func TestSchemasAreStrict(t *testing.T) {
	t.Parallel()
	want := `{"type":"object","properties":{` +
		`"text":{"type":"string","description":"some text"},` +
		`"big":{"type":"integer"},` +
		`"when":{"type":"string"},` +
		`"maybe":{"type":"boolean"},` +
		`"list":{"type":"array","maxItems":3,"items":{"type":"string"}},` +
		`"map":{"type":"object","additionalProperties":{"type":"integer"}},` +
		`"any":{"type":["object","array","string","number","boolean","null"]},` +
		`"object":{"type":"object"},` +
		`"nested":{"type":"object","properties":{"N":{"type":"integer"}},"required":["N"],"additionalProperties":false},` +
		`"deep":{"type":"array","items":{"type":"object","additionalProperties":{"type":"boolean"}}},` +
		`"choice":{"type":"string","enum":["a","b"]},` +
		`"rate":{"type":"number","minimum":0.5,"maximum":2}},` +
		`"required":["text","object","nested"],"additionalProperties":false}`
	var got, wanted any
	if err := json.Unmarshal(InputSchema[manyKinds]("x"), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	g, _ := json.Marshal(got)
	w, _ := json.Marshal(wanted)
	if string(g) != string(w) {
		t.Errorf("got  %s\nwant %s", g, w)
	}
	if out := string(derive("x", reflect.TypeFor[manyKinds](), false)); strings.Contains(out, `"additionalProperties":false`) {
		t.Errorf("output schema is closed: %s", out)
	}
	if got := string(InputSchema[struct{}]("x")); got != `{"type":"object","additionalProperties":false,"properties":{},"required":[]}` {
		t.Errorf("schema of nothing: %s", got)
	}
}

// embedded is embedded in the structs of the test.
type embedded struct {
	Size uint `json:"size,omitempty" max:"9"`
}

type allBounds struct {
	embedded
	Name  string    `json:"name" jsonschema:"<b> & \"quoted\"" min:"1" max:"9"`
	Pair  [2]uint16 `json:"pair" jsonschema:"of ports"`
	Lists []struct {
		Some []string `json:"some,omitempty" min:"1" max:"1e2" jsonschema:"of many"`
	} `json:"lists" jsonschema:"of lists"`
	Small map[string]int8   `json:"small" jsonschema:"by name"`
	Whole map[string]uint64 `json:"whole,omitzero"`
	None  *struct{}         `json:"none"`
	Empty struct{ n int }   `json:"empty"`
	Not   string            `json:"-"`
	Plain bool
}

func TestSchemasDescribeEveryField(t *testing.T) {
	t.Parallel()
	want := `{"type":"object","properties":{` +
		`"size":{"type":"integer","maximum":9},` +
		`"name":{"type":"string","description":"\u003cb\u003e \u0026 \"quoted\"","minLength":1,"maxLength":9},` +
		`"pair":{"type":"array","items":{"type":"integer","minimum":0,"maximum":65535},"description":"of ports","minItems":2,"maxItems":2},` +
		`"lists":{"type":"array","items":{"type":"object","properties":{` +
		`"some":{"type":"array","items":{"type":"string"},"description":"of many","minItems":1,"maxItems":100}}},"description":"of lists"},` +
		`"small":{"type":"object","description":"by name","additionalProperties":{"type":"integer","minimum":-128,"maximum":127}},` +
		`"whole":{"type":"object","additionalProperties":{"type":"integer","minimum":0}},` +
		`"none":{"type":"object"},` +
		`"empty":{"type":"object","properties":{}},` +
		`"Plain":{"type":"boolean"}},` +
		`"required":["name","pair","lists","small","none","empty","Plain"]}`
	if got := string(derive("x", reflect.TypeFor[allBounds](), false)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

type endless struct {
	Again []endless `json:"again"`
}

func TestInvalidTypesPanic(t *testing.T) {
	t.Parallel()
	for name, mistake := range map[string]func(){
		"any":       func() { InputSchema[struct{ V any }]("x") },
		"channel":   func() { InputSchema[struct{ C chan int }]("x") },
		"endless":   func() { InputSchema[endless]("x") },
		"odd keys":  func() { InputSchema[struct{ M map[int]bool }]("x") },
		"no struct": func() { InputSchema[[]string]("x") },
		"bad bound": func() {
			InputSchema[struct {
				N int `json:"N" min:"few"`
			}]("x")
		},
		"undescribed": func() { describe(texts, "no_such_tool", tool.Hints{}) },
		"twice":       func() { d := []Tool{probe(nil)}; NewSet("", d, d) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			mistake()
		})
	}
}

var texts = fstest.MapFS{"mcp_status.md": {Data: []byte("# Status\n\nTells.")}}

type echoed struct {
	N int `json:"n"`
}

func probe(do func(in echoed) (echoed, error)) Tool {
	return Define(texts, "mcp_status", tool.Hints{}, func(_ context.Context, _ tool.Call, in echoed) (echoed, error) { return do(in) })
}

func TestResults(t *testing.T) {
	t.Parallel()
	double := NewSet("", []Tool{probe(func(in echoed) (echoed, error) { return echoed{2 * in.N}, nil })})
	call := tool.Call{Ref: tool.Ref{Name: "mcp_status"}, Args: json.RawMessage(`{"n":21}`)}
	result, err := double.Call(t.Context(), call)
	if want := `{"content":[{"text":"{\"n\":42}","type":"text"}],"structuredContent":{"n":42}}`; err != nil || string(result.Raw) != want {
		t.Errorf("result %s, %v", result.Raw, err)
	}
	call.Args = json.RawMessage(`{"n":"21"}`)
	if result, err := double.Call(t.Context(), call); err != nil || !strings.Contains(string(result.Raw), "42") {
		t.Errorf("a number as text: %s, %v", result.Raw, err)
	}
	call.Args = json.RawMessage(`{"n":[]}`)
	if _, err := double.Call(t.Context(), call); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("a wrong argument: %v", err)
	}
	if _, err := double.Call(t.Context(), tool.Call{Ref: tool.Ref{Name: "mcp_statu"}}); fault.HintOf(err) != "did you mean mcp_status?" {
		t.Errorf("an unknown tool: %v, %q", err, fault.HintOf(err))
	}
}

// Clients validate structured content with the output schema even when the tool
// failed, so a failure has none: its text and _meta say everything.
func TestFailuresHaveNoStructuredContent(t *testing.T) {
	t.Parallel()
	broken := probe(func(echoed) (echoed, error) {
		return echoed{}, fault.Wrap(fault.Conflict, errors.New("taken"), "create entry").WithHint("try another one")
	})
	result, err := broken.run(t.Context(), tool.Call{})
	if err != nil {
		t.Fatal(err)
	}
	view, _ := result.View()
	if !view.IsError || view.Structured != nil || view.Text() != "conflict: create entry: taken\ntry another one" {
		t.Errorf("result %s", result.Raw)
	}
	if want := `{"luanette/error":{"code":"conflict","message":"create entry: taken","hint":"try another one"}}`; string(view.Meta) != want {
		t.Errorf("_meta %s, want %s", view.Meta, want)
	}
}

func TestRepair(t *testing.T) {
	t.Parallel()
	schema := InputSchema[struct {
		Text   string   `json:"text"`
		N      int      `json:"n,omitempty"`
		Rate   float64  `json:"rate,omitempty"`
		On     bool     `json:"on,omitempty"`
		Names  []string `json:"names,omitempty"`
		Object Object   `json:"object,omitempty"`
		Code   string   `json:"code,omitempty"`
	}]("x")
	for args, want := range map[string]string{
		`{"text":"x","n":"12"}`:                `{"text":"x","n":12}`,
		`{"text":"x","n":"-3"}`:                `{"text":"x","n":-3}`,
		`{"text":"x","n":"1.5"}`:               ``,
		`{"text":"x","n":"0x10"}`:              ``,
		`{"text":"x","n":"007"}`:               ``,
		`{"text":"x","rate":"1.5e3"}`:          `{"text":"x","rate":1.5e3}`,
		`{"text":"x","rate":"NaN"}`:            ``,
		`{"text":"x","on":"true"}`:             `{"text":"x","on":true}`,
		`{"text":"x","on":"yes"}`:              ``,
		`{"text":"x","names":"a.b"}`:           `{"text":"x","names":["a.b"]}`,
		`{"text":"x","names":"[\"a\",\"b\"]"}`: `{"text":"x","names":["a","b"]}`,
		`{"text":"x","object":"{\"k\": [1]}"}`: `{"text":"x","object":{"k": [1]}}`,
		`{"text":"x","object":"[1]"}`:          ``,
		`{"text":"x","n":null,"names":null}`:   `{"text":"x"}`,
		`{"text":"x","object":null}`:           `{"text":"x"}`,
		`{"text":12345678901234567890}`:        `{"text":"12345678901234567890"}`,
		`{"text":"{\"not\":\"an object\"}"}`:   ``,
		`{"text":null}`:                        ``,
		`{"text":"x","other":"12"}`:            ``,
		`{"text":"x","code":5}`:                ``,
		`{"text":"x","code":null}`:             `{"text":"x"}`,
		`{"text":"x"}`:                         ``,
		`[1]`:                                  ``,
		`{"text":`:                             ``,
	} {
		got, ok := Repair(schema, json.RawMessage(args))
		if ok != (want != "") || ok && string(got) != want {
			t.Errorf("Repair(%s) = %s, %v, want %s", args, got, ok, want)
		}
	}
}

// TestRepairFollowsReferences checks that arguments are repaired whose schema is a reference.
func TestRepairFollowsReferences(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"properties":{"book":{"$ref":"#/$defs/Book"},"loop":{"$ref":"#/properties/loop"},"far":{"$ref":"http://x/y"}},
		"$defs":{"Book":{"$ref":"#/$defs/Thing"},"Thing":{"type":"object"}}}`)
	got, ok := Repair(schema, json.RawMessage(`{"book":"{\"title\":\"X\"}","loop":"{}","far":"{}"}`))
	if want := `{"book":{"title":"X"},"loop":"{}","far":"{}"}`; !ok || string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestSetOfANamespace(t *testing.T) {
	t.Parallel()
	set := NewSet("music", []Tool{probe(func(in echoed) (echoed, error) { return in, nil })})
	tools, err := set.Tools(t.Context())
	if err != nil || len(tools) != 1 || tools[0].String() != "music.mcp_status" {
		t.Errorf("tools %v, %v", tools, err)
	}
	if _, err := set.Call(t.Context(), tool.Call{Ref: tools[0].Ref, Args: json.RawMessage(`{"n":1}`)}); err != nil {
		t.Error(err)
	}
	if _, err := set.Call(t.Context(), tool.Call{Ref: tool.Ref{Name: "mcp_status"}}); fault.CodeOf(err) != fault.ToolNotFound {
		t.Errorf("called without its namespace: %v", err)
	}
}
