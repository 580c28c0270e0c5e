package recording

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/wire"
)

func hideNothing(text string) string { return text }

func add(t *testing.T, r *Recorder, method, params, result string) {
	t.Helper()
	if err := r.Add(method, raw(params), wire.Message{Result: raw(result)}, hideNothing); err != nil {
		t.Fatal(err)
	}
}

func newRecorder(t *testing.T) (*Recorder, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "server.json")
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return r, path
}

// What was recorded, in either era, is answered again after reading the file anew.
func TestRecordAndPlay(t *testing.T) {
	t.Parallel()
	r, path := newRecorder(t)
	add(t, r, wire.MethodDiscover, `{}`, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"instructions":"be nice","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"peer","version":"2"}}}`)
	add(t, r, wire.MethodToolsList, `{"_meta":{"io.modelcontextprotocol/clientInfo":{}}}`, `{"tools":[{"name":"old"}]}`)
	add(t, r, wire.MethodToolsList, `{}`, `{"resultType":"complete","tools":[{"name":"double","inputSchema":{"type":"object","properties":{"token":{"type":"string"}}}}],"ttlMs":5}`)
	add(t, r, wire.MethodToolsCall, `{"name":"ask","arguments":{"n":4}}`, `{"resultType":"input_required","inputRequests":{}}`)
	add(t, r, wire.MethodToolsCall, `{"name":"ask","arguments":{"n":4},"inputResponses":{"name":{}},"requestState":"s"}`, `{"content":[],"resultType":"complete"}`)
	add(t, r, wire.MethodToolsCall, `{"name":"ask","arguments":{"n":4}}`, `{"content":[]}`) // the same again
	add(t, r, wire.MethodPing, `{}`, `{}`)
	if err := r.Add(wire.MethodToolsCall, raw(`{"name":"fail"}`), wire.Message{Error: wire.Errorf(-32000, "broken")}, hideNothing); err != nil {
		t.Fatal(err)
	}
	if got := r.Count(); got != 3 {
		text, _ := os.ReadFile(path)
		t.Errorf("%d exchanges were stored, want 3:\n%s", got, text)
	}
	p, err := NewPlayer(path)
	if err != nil {
		t.Fatal(err)
	}
	result, _ := p.Answer(wire.MethodInitialize, raw(`{"protocolVersion":"2025-11-25"}`))
	if want := `{"capabilities":{"tools":{"listChanged":true}},"instructions":"be nice","protocolVersion":"2025-11-25","serverInfo":{"name":"peer","version":"2"}}`; string(encode(decode(result))) != want {
		t.Errorf("initialize was answered with\n%s, want\n%s", encode(decode(result)), want)
	}
	list, _ := p.Answer(wire.MethodToolsList, nil)
	if !strings.Contains(string(list), `"double"`) || strings.Contains(string(list), "old") || strings.Contains(string(list), "resultType") || !strings.Contains(string(encode(decode(list))), `"token":{"type":"string"}`) {
		t.Errorf("the list is %s", list)
	}
	if got := call(p, `{"name":"ask","arguments":{"n":4}}`); got != `{"content":[]}` {
		t.Errorf("the call was answered with %s", got)
	}
	if got := call(p, `{"name":"fail","arguments":{}}`); got != "broken" {
		t.Errorf("the failing call was answered with %s", got)
	}
}

// A second recording continues the file, and keeps rules that people wrote into it.
func TestRecordingContinues(t *testing.T) {
	t.Parallel()
	path := write(t, `{"luanette_recording":1,"match":{"arguments.id":"ignore"},"exchanges":[
		{"method":"tools/call","params":{"name":"a"},"match":{"arguments":"ignore"},"result":{"n":1}}]}`)
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	add(t, r, wire.MethodToolsCall, `{"name":"b"}`, `{"n":2}`)
	add(t, r, wire.MethodToolsCall, `{"name":"a"}`, `{"n":1}`)
	stored, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(stored.Exchanges) != 2 || stored.Match["arguments.id"] != "ignore" || stored.Exchanges[0].Match["arguments"] != "ignore" {
		t.Errorf("the file has become %+v", stored)
	}
}

func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	r, path := newRecorder(t)
	const key, known, image = "ghp_0123456789abcdefghijABCDEFGHIJ", "correct-horse-battery", "aGVsbG8gd29ybGQgdGhpcyBpcyBhbiBpbWFnZSAxMjM0NTY3ODk="
	hide := strings.NewReplacer(known, "[redacted]").Replace
	for _, e := range []struct{ params, result string }{
		{`{"name":"login","arguments":{"password":"hunter22","user":"ann","max_tokens":5}}`, `{"content":[{"type":"text","text":"{\"token\": \"` + key + `\"}"}],"structuredContent":{"api_key":"abc","list":[{"cookie":"s=1"}]}}`},
		{`{"name":"echo","arguments":{"text":"use ` + known + ` here"}}`, `{"content":[{"type":"text","text":"` + known + ` and ` + key + `"},{"type":"image","mimeType":"image/png","data":"` + image + `"}]}`},
	} {
		if err := r.Add(wire.MethodToolsCall, raw(e.params), wire.Message{Result: raw(e.result)}, hide); err != nil {
			t.Fatal(err)
		}
	}
	const commit = "da39a3ee5e6b4b0d3255bfef95601890afd80709"
	add(t, r, wire.MethodToolsCall, `{"name":"show","arguments":{"commit":"`+commit+`"}}`, `{"text":"commit `+commit+` has token=`+strings.Repeat("0f", 20)+`"}`)
	failure := wire.Errorf(-1, "bad key %s", key).WithData(map[string]string{"secret": known})
	if err := r.Add(wire.MethodToolsCall, raw(`{"name":"no"}`), wire.Message{Error: failure}, hide); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"hunter22", key, known, `"abc"`, "s=1", "0f0f"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the recording contains %s:\n%s", secret, text)
		}
	}
	for _, kept := range []string{`"ann"`, `"max_tokens": 5`, image, `"commit": "` + commit, `"commit ` + commit} {
		if !strings.Contains(string(text), kept) {
			t.Errorf("the recording lacks %s:\n%s", kept, text)
		}
	}
	// A masked value matches every other, and only there.
	p, err := NewPlayer(path)
	if err != nil {
		t.Fatal(err)
	}
	for params, found := range map[string]bool{
		`{"name":"login","arguments":{"password":"another","user":"ann","max_tokens":5}}`: true,
		`{"name":"login","arguments":{"password":"another","user":"bob","max_tokens":5}}`: false,
		`{"name":"login","arguments":{"user":"ann","max_tokens":5}}`:                      false,
		`{"name":"echo","arguments":{"text":"use correct-horse-battery here"}}`:           true,
		`{"name":"echo","arguments":{"text":"use it there"}}`:                             false,
	} {
		if got := call(p, params); strings.HasPrefix(got, "{") != found {
			t.Errorf("%s was answered with %s", params, got)
		}
	}
}

func TestRecordingIsLimitedAndConcurrent(t *testing.T) {
	t.Parallel()
	r, path := newRecorder(t)
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			for n := range 5 {
				params, _ := json.Marshal(map[string]any{"name": "a", "arguments": map[string]int{"i": i, "n": n}})
				if err := r.Add(wire.MethodToolsCall, params, wire.Message{Result: raw(`{}`)}, hideNothing); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	stored, err := Load(path)
	if err != nil || len(stored.Exchanges) != 40 {
		t.Fatalf("%d exchanges were stored, %v", len(stored.Exchanges), err)
	}
	r.mu.Lock()
	r.size = MaxSize
	r.mu.Unlock()
	err = r.Add(wire.MethodToolsCall, raw(`{"name":"big"}`), wire.Message{Result: raw(`{}`)}, hideNothing)
	if fault.CodeOf(err) != fault.Limit {
		t.Errorf("an answer beyond the limit gave %v", err)
	}
	if r.Count() != 40 {
		t.Error("an answer beyond the limit was stored")
	}
}

func TestSetSharesRecorders(t *testing.T) {
	t.Parallel()
	var set Set
	folder := t.TempDir()
	a, err := set.Open(filepath.Join(folder, "a.json"))
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := set.Open(filepath.Join(folder, "a.json")); again != a {
		t.Error("one file has two recorders")
	}
	if _, err := set.Open(filepath.Join(folder, "none", "b.json")); err == nil {
		t.Error("a file in a folder that does not exist was opened")
	}
}
