package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

func TestParseKinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text                        string
		request, note, response     bool
		id                          wire.ID
		method, params, result, err string
	}{
		{text: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`, request: true, id: "1", method: "tools/call", params: `{"name":"x"}`},
		{text: ` {"method":"ping" , "id":"a","jsonrpc":"2.0"} `, request: true, id: `"a"`, method: "ping"},
		{text: `{"jsonrpc":"2.0","method":"notifications/progress","params":null}`, note: true, method: "notifications/progress"},
		{text: `{"jsonrpc":"2.0","id":7,"result":{"big":9007199254740993}}`, response: true, id: "7", result: `{"big":9007199254740993}`},
		{text: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no","data":[1]}}`, response: true, id: "null", err: `no (code -32600)`},
		{text: `{"jsonrpc":"2.0","id":7.0,"result":{},"error":null}`, response: true, id: "7", result: `{}`},
		{text: `{"jsonrpc":"2.0","id":7e0,"result":null,"error":{"code":1,"message":"no"}}`, response: true, id: "7", err: "no (code 1)"},
		{text: `{"jsonrpc":"2.0","id":7,"result":null}`, response: true, id: "7", result: `null`},
		{text: `{"jsonrpc":"2.0","id":1.5,"result":{}}`, response: true, id: "1.5", result: `{}`},
		{text: `{"jsonrpc":"2.0","id":"\u0061","meth\u006fd":"ping"}`, request: true, id: `"a"`, method: "ping"},
		{text: `{"jsonrpc":"2.0","id":1,"METHOD":"x","Params":[],"method":"y"}`, request: true, id: "1", method: "y"},
	} {
		m, err := wire.Parse([]byte(c.text))
		if err != nil {
			t.Errorf("Parse(%s): %v", c.text, err)
			continue
		}
		if m.IsRequest() != c.request || m.IsNotification() != c.note || m.IsResponse() != c.response {
			t.Errorf("Parse(%s) is of another kind: %+v", c.text, m)
		}
		if m.ID != c.id || m.Method != c.method || string(m.Params) != c.params || string(m.Result) != c.result {
			t.Errorf("Parse(%s) = %+v", c.text, m)
		}
		if (m.Error == nil) != (c.err == "") || m.Error != nil && m.Error.Error() != c.err {
			t.Errorf("Parse(%s) error = %v, want %q", c.text, m.Error, c.err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	deep := `{"jsonrpc":"2.0","id":1,"result":` + strings.Repeat("[", rawjson.MaxDepth) + strings.Repeat("]", rawjson.MaxDepth) + `}`
	for _, c := range []struct {
		text string
		code int64
		id   wire.ID
	}{
		{``, wire.CodeParse, ""},
		{`{`, wire.CodeParse, ""},
		{`"x"`, wire.CodeParse, ""},
		{`{"jsonrpc":"2.0","id":1,"method":"x"} {}`, wire.CodeParse, ""},
		{`{"jsonrpc":"2.0","id":01,"method":"x"}`, wire.CodeParse, ""},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\nb\"}", wire.CodeParse, ""},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", wire.CodeParse, ""},
		{deep, wire.CodeParse, ""},
		{`[{"jsonrpc":"2.0","id":1,"method":"x"}]`, wire.CodeInvalidRequest, ""},
		{`{"id":3,"method":"x"}`, wire.CodeInvalidRequest, "3"},
		{`{"jsonrpc":"1.0","id":3,"method":"x"}`, wire.CodeInvalidRequest, "3"},
		{`{"jsonrpc":"2.0","id":3,"method":"x","method":"y"}`, wire.CodeInvalidRequest, "3"},
		{`{"jsonrpc":"2.0","id":{},"method":"x"}`, wire.CodeInvalidRequest, ""},
		{`{"jsonrpc":"2.0","id":null,"method":"x"}`, wire.CodeInvalidRequest, "null"},
		{`{"jsonrpc":"2.0","id":3,"method":7}`, wire.CodeInvalidRequest, "3"},
		{`{"jsonrpc":"2.0","id":3,"method":""}`, wire.CodeInvalidRequest, "3"},
		{`{"jsonrpc":"2.0","id":3,"method":"x","params":[1]}`, wire.CodeInvalidRequest, "3"},
		{`{"jsonrpc":"2.0","id":3,"method":"x","result":{}}`, wire.CodeInvalidRequest, "3"},
		{`{"jsonrpc":"2.0","id":3}`, wire.CodeInvalidRequest, "3"},
		{`{"jsonrpc":"2.0","id":3,"result":{},"error":{}}`, wire.CodeInvalidRequest, "3"},
		{`{"jsonrpc":"2.0","result":{}}`, wire.CodeInvalidRequest, ""},
	} {
		m, err := wire.Parse([]byte(c.text))
		var e *wire.Error
		if !errors.As(err, &e) || e.Code != c.code {
			t.Errorf("Parse(%.60s) = %v, want code %d", c.text, err, c.code)
		}
		if m.ID != c.id {
			t.Errorf("Parse(%.60s) has the id %q, want %q", c.text, m.ID, c.id)
		}
	}
}

func TestAppendKeepsRawPartsOnOneLine(t *testing.T) {
	t.Parallel()
	m := wire.Request("1", "tools/call", json.RawMessage("{\n\t\"z\": 1,\r\n\t\"a\": 9007199254740993, \"t\":\"<&>\\n\"\n}"))
	got := string(m.Append([]byte("before\n")))
	want := "before\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{ 	"z": 1,  	"a": 9007199254740993, "t":"<&>\n" }}`
	if got != want {
		t.Errorf("Append = %q\nwant     %q", got, want)
	}
}

func TestAnswerCarriesErrors(t *testing.T) {
	t.Parallel()
	own := &wire.Error{Code: -32042, Message: "visit", Data: json.RawMessage(`{"elicitations":[]}`)}
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{fault.Wrap(fault.Upstream, own, "call x"), `{"jsonrpc":"2.0","id":1,"error":{"code":-32042,"message":"visit","data":{"elicitations":[]}}}`},
		{fault.New(fault.InvalidParams, "bad %q", "x").WithHint("do"), `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"bad \"x\"","data":{"code":"invalid_params","hint":"do"}}}`},
		{errors.New("boom"), `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"boom","data":{"code":"internal_error"}}}`},
	} {
		m := wire.Answer("1", nil, c.err)
		if got := string(m.Append(nil)); got != c.want {
			t.Errorf("Answer(%v) = %s\nwant %s", c.err, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"n":1e400}}}`,
		`{"jsonrpc":"2.0","id":"\ud800","result":{"a":[true,false,null,-0.5e-3]}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":"x"}}`,
		question, answer, `1`, `tru`, `1,2`, "\"\xff\"", `[{}]`, `{"a":{"b":[{}]}}`, `{"\u006a":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := wire.Parse(data)
		// What may stand in a message is what encoding/json takes for JSON.
		within := slices.Concat([]byte(`{"jsonrpc":"2.0","id":1,"result":[`), data, []byte(`]}`))
		if _, err := wire.Parse(within); (err == nil) != (json.Valid(within) && utf8.Valid(within)) {
			t.Fatalf("%.200q: %v; encoding/json: %v", within, err, json.Valid(within))
		}
		if err != nil {
			var e *wire.Error
			if !errors.As(err, &e) {
				t.Fatalf("error of another type: %v", err)
			}
			return
		}
		line := m.Append(nil)
		if bytes.ContainsAny(line, "\r\n") {
			t.Fatalf("more than one line: %q", line)
		}
		if !json.Valid(line) {
			t.Fatalf("wrote invalid JSON %q from %q", line, data)
		}
		again, err := wire.Parse(line)
		if err != nil {
			t.Fatalf("cannot read what we wrote, %q: %v", line, err)
		}
		if again.ID != m.ID || again.Method != m.Method || (again.Params == nil) != (m.Params == nil) {
			t.Fatalf("%+v became %+v", m, again)
		}
	})
}

// BenchmarkRelay reads a tools/call and writes it with another id, as a relay does.
func BenchmarkRelay(b *testing.B) {
	text := []byte(`{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"src/main.go","lines":[1,200],"note":"` +
		strings.Repeat("some text ", 60) + `"},"_meta":{"progressToken":7,"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}}`)
	out := make([]byte, 0, 4096)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		m, err := wire.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		m.ID = "7"
		out = m.Append(out[:0])
	}
}

func BenchmarkStripProtocol(b *testing.B) {
	result := json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 500) + `"}],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}`)
	b.ReportAllocs()
	for b.Loop() {
		if got := wire.StripProtocol(result); len(got) >= len(result) {
			b.Fatal("nothing stripped")
		}
	}
}
