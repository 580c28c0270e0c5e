package tool_test

import (
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// view parses raw and fails the test if it cannot.
func view(t *testing.T, raw string) tool.View {
	t.Helper()
	v, err := tool.Result{Raw: json.RawMessage(raw)}.View()
	if err != nil {
		t.Fatalf("View of %s: %v", raw, err)
	}
	return v
}

const (
	hello = `{"type":"text","text":"hello"}`
	world = `{"type":"text","text":"world"}`
	image = `{"type":"image","data":"AAAA","mimeType":"image/png"}`
	alien = `{"type":"hologram","depth":12345678901234567890,"x":{"b":1,"a":2}}`
)

func TestTextAndValue(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ raw, text, value string }{
		"nothing":                {``, "", `null`},
		"no content":             {`{"content":[]}`, "", `null`},
		"a line":                 {`{"content":[` + hello + `]}`, "hello", `"hello"`},
		"two lines":              {`{"content":[` + hello + `,` + world + `]}`, "hello\nworld", `"hello\nworld"`},
		"a JSON object":          {`{"content":[{"type":"text","text":"{\"n\":12345678901234567890}"}]}`, `{"n":12345678901234567890}`, `{"n":12345678901234567890}`},
		"a JSON array":           {`{"content":[{"type":"text","text":"[1, 2]"}]}`, `[1, 2]`, `[1, 2]`},
		"JSON after newlines":    {`{"content":[{"type":"text","text":"\n\n {\"n\":1}\n"}]}`, "\n\n {\"n\":1}\n", `{"n":1}`},
		"an empty text":          {`{"content":[{"type":"text","text":""}]}`, "", `""`},
		"an empty line":          {`{"content":[{"type":"text","text":"\n"}]}`, "\n", `"\n"`},
		"nearly JSON":            {`{"content":[{"type":"text","text":"{not json"}]}`, `{not json`, `"{not json"`},
		"a number stays a text":  {`{"content":[{"type":"text","text":"42"}]}`, `42`, `"42"`},
		"structured wins":        {`{"content":[` + hello + `],"structuredContent":{"b":1,"a":2}}`, "hello", `{"b":1,"a":2}`},
		"structured may be any":  {`{"content":[` + hello + `],"structuredContent":[1]}`, "hello", `[1]`},
		"structured false":       {`{"content":[],"structuredContent":false}`, "", `false`},
		"structured null counts": {`{"content":[` + hello + `],"structuredContent":null}`, "hello", `"hello"`},
		"an image among texts":   {`{"content":[` + hello + `,` + image + `]}`, "hello", `[` + hello + `,` + image + `]`},
		"an unknown kind":        {`{"content":[` + alien + `]}`, "", `[` + alien + `]`},
		"not even an object":     {`{"content":[7]}`, "", `[7]`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := view(t, tt.raw)
			if got := v.Text(); got != tt.text {
				t.Errorf("Text = %q, want %q", got, tt.text)
			}
			if got := string(v.Value()); got != tt.value {
				t.Errorf("Value = %s, want %s", got, tt.value)
			}
		})
	}
}

func TestViewKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	v := view(t, `{"content":[`+alien+`],"isError":true,"_meta":{"z":1,"a":12345678901234567890}}`)
	if got := string(v.Content[0]); got != alien {
		t.Errorf("block %s, want %s", got, alien)
	}
	if got := string(v.Meta); got != `{"z":1,"a":12345678901234567890}` || !v.IsError {
		t.Errorf("meta %s, error %v", got, v.IsError)
	}
}

func TestViewOfInvalidResult(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`[]`, `{"content":7}`, `{`, `"text"`} {
		_, err := tool.Result{Raw: json.RawMessage(raw)}.View()
		if fault.CodeOf(err) != fault.Upstream {
			t.Errorf("View of %s = %v, want upstream_error", raw, err)
		}
	}
}

func TestOutput(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		data any
		want string
	}{
		"text only": {"done", nil, `{"content":[{"text":"done","type":"text"}]}`},
		"with data": {"done", map[string]int{"n": 1}, `{"content":[{"text":"done","type":"text"}],"structuredContent":{"n":1}}`},
		"raw data":  {"", json.RawMessage(`{"b":1,"a":2}`), `{"content":[{"text":"","type":"text"}],"structuredContent":{"b":1,"a":2}}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := tool.Output(tt.text, tt.data)
			if err != nil || string(r.Raw) != tt.want {
				t.Errorf("Output = %s, %v; want %s", r.Raw, err, tt.want)
			}
		})
	}
	if _, err := tool.Output("", func() {}); fault.CodeOf(err) != fault.Internal {
		t.Errorf("Output of a function = %v, want internal_error", err)
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err        error
		text, meta string
	}{
		"plain": {io.EOF, "internal_error: EOF", `{"luanette/error":{"code":"internal_error","message":"EOF"}}`},
		"with a hint": {fault.New(fault.NotFound, "no job 7").WithHint("list them"), "not_found: no job 7\nlist them",
			`{"luanette/error":{"code":"not_found","message":"no job 7","hint":"list them"}}`},
		"wrapped": {fmt.Errorf("poll: %w", fault.New(fault.Timeout, "60 s passed").WithDetails([]int{1})), "timeout: poll: 60 s passed",
			`{"luanette/error":{"code":"timeout","message":"poll: 60 s passed","details":[1]}}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := view(t, string(tool.Failure(tt.err).Raw))
			if !v.IsError || v.Text() != tt.text || string(v.Meta) != tt.meta || v.Structured != nil {
				t.Errorf("got error %v, text %q, meta %s\nwant text %q, meta %s",
					v.IsError, v.Text(), v.Meta, tt.text, tt.meta)
			}
		})
	}
}

// FuzzValue checks that no result of a tool causes a panic, and that scripts always
// get JSON.
func FuzzValue(f *testing.F) {
	for _, raw := range []string{
		``, `null`, `{}`, `{"content":null}`, `{"content":[null]}`, `{"content":[` + hello + `,` + image + `]}`,
		`{"content":[{"type":"text","text":"{}"}]}`, `{"content":[` + alien + `],"structuredContent":1e400}`,
		`{"content":[{"type":"text","text":"\ud800"}]}`,
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := tool.Result{Raw: raw}.View()
		if err != nil {
			return
		}
		if value := v.Value(); !json.Valid(value) {
			t.Errorf("the value of %q is not JSON: %q", raw, value)
		}
	})
}
