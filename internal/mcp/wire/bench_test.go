package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// The messages of a relayed call: a request of a modern client, the answer of a modern
// server, and a large answer.
const (
	question = `{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"src/main.go",` +
		`"lines":[1,200],"follow":false,"note":"the part about \"limits\", please"},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"some-client","version":"1.4.2"},` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"roots":{"listChanged":true}},"progressToken":7,` +
		`"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}}`
	answer = `{"jsonrpc":"2.0","id":4711,"result":{"resultType":"complete","content":[{"type":"text","text":"package main\n\nfunc main() {}\n"}],` +
		`"structuredContent":{"path":"src/main.go","size":9007199254740993,"lines":3},` +
		`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"some-server","version":"0.9"}}}}`
)

func large() string {
	rows := strings.Repeat(`{"id":9007199254740993,"name":"some name","tags":["a","b"],"ratio":-0.25e3,"open":true,"note":null},`, 500)
	text := strings.Repeat(`A line of some length, as \"files\" have them.\n`, 1000)
	return `{"jsonrpc":"2.0","id":4711,"result":{"resultType":"complete","content":[{"type":"text","text":"` + text +
		`"}],"structuredContent":{"rows":[` + rows[:len(rows)-1] + `]},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}}`
}

// each runs a benchmark on every message.
func each(b *testing.B, do func(b *testing.B, text []byte)) {
	b.Helper()
	for _, m := range []struct{ name, text string }{{"question", question}, {"answer", answer}, {"large", large()}} {
		b.Run(m.name, func(b *testing.B) {
			b.SetBytes(int64(len(m.text)))
			b.ReportAllocs()
			do(b, []byte(m.text))
		})
	}
}

// body is what a message carries: its params or its result.
func body(b *testing.B, text []byte) json.RawMessage {
	b.Helper()
	m, err := wire.Parse(text)
	if err != nil {
		b.Fatal(err)
	}
	if m.Params != nil {
		return m.Params
	}
	return m.Result
}

func BenchmarkParse(b *testing.B) {
	each(b, func(b *testing.B, text []byte) {
		for b.Loop() {
			if _, err := wire.Parse(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkPick(b *testing.B) {
	keys := []string{"_meta", "requestState", "inputResponses", "name"}
	each(b, func(b *testing.B, text []byte) {
		object := body(b, text)
		var found [4]json.RawMessage
		for b.Loop() {
			if rawjson.Pick(object, keys, found[:]); found[0] == nil {
				b.Fatal("no _meta")
			}
		}
	})
}

func BenchmarkToLegacy(b *testing.B) {
	each(b, func(b *testing.B, text []byte) {
		result := body(b, text)
		for b.Loop() {
			if got := wire.ToLegacy(result); len(got) >= len(result) {
				b.Fatal("nothing taken out")
			}
		}
	})
}

// Relays append the members of a request or a result to another object.
func BenchmarkAppendMembers(b *testing.B) {
	out := make([]byte, 0, 1<<20)
	each(b, func(b *testing.B, text []byte) {
		object := body(b, text)
		for b.Loop() {
			out = rawjson.AppendMembers(out[:0], object, func(key []byte) bool { return string(key) == "_meta" })
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	out := make([]byte, 0, 1<<20)
	each(b, func(b *testing.B, text []byte) {
		m, err := wire.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			out = m.Append(out[:0])
		}
	})
}

func BenchmarkGetBool(b *testing.B) {
	each(b, func(b *testing.B, text []byte) {
		object := body(b, text)
		for b.Loop() {
			if rawjson.GetBool(object, "isError") {
				b.Fatal("an error")
			}
		}
	})
}
