package audit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestPreview(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 1000)
	for name, c := range map[string]struct{ raw, has, lacks string }{
		"small":            {`{"path":"a.md","n":[1,2.50,null,true]}`, `{"path":"a.md","n":[1,2.50,null,true]}`, "…"},
		"secret key":       {`{"api_key":"abcd","list":[{"token":"efgh"}]}`, `"api_key":"[redacted]","list":[{"token":"[redacted]"}]`, "efgh"},
		"secret in text":   {`{"text":"use sk-0123456789abcdef0123 now"}`, "[redacted]", "0123456789abcdef"},
		"long text":        {`{"code":"` + long + `","n":1}`, `"code":"word word`, "\n"},
		"long list":        {`[` + strings.Repeat(`{"id":1234567,"name":"somebody"},`, 900) + `{}]`, `[{"id":1234567`, "(…"},
		"torn text":        {`{"code":"` + strings.Repeat(`say \"hi\" \u00e9 `, 9000) + `"}`, `"code":"say \"hi\" é`, "\x00"},
		"torn with secret": {`{"code":"` + strings.Repeat("ok ", 5280) + "ghp_" + strings.Repeat("a1B2", 500) + `"}`, "ok ok", "ghp_"},
		"picture":          {`{"data":"` + strings.Repeat("AAAA", 300) + `"}`, "(1200 bytes)", "AAAA"},
		"secret object":    {`{"credentials":{"user":"a","list":["}"]},"n":1}`, `{"credentials":"[redacted]","n":1}`, "user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := string(preview(json.RawMessage(c.raw)))
			if !json.Valid([]byte(got)) || len(got) > longestPreview+200 {
				t.Errorf("%d bytes, not JSON: %s", len(got), got)
			}
			if !strings.Contains(got, c.has) || strings.Contains(got, c.lacks) {
				t.Errorf("got %s\nwant %q and not %q", got, c.has, c.lacks)
			}
		})
	}
}

func TestPreviewOfResults(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"content":[{"type":"text","text":"{\"n\":1}"}]}`:                     `{"n":1}`,
		`{"content":[{"type":"text","text":"hello"}]}`:                         `"hello"`,
		`{"content":[{"type":"text","text":"x"}],"structuredContent":{"b":1}}`: `{"b":1}`,
		`{"content":[{"type":"image","data":"AA","mimeType":"image/png"}]}`:    `[{"type":"image","data":"AA","mimeType":"image/png"}]`,
		`{"content":[]}`: ``, ``: ``,
	} {
		if got := string(previewOf(json.RawMessage(raw))); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

// FuzzPreview checks that previews are JSON, whatever they are made of.
func FuzzPreview(f *testing.F) {
	f.Add([]byte(`{"a":[1,"x`))
	f.Add([]byte(`{"a":"\u00`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if got := preview(raw); len(got) > 0 && !json.Valid(got) {
			t.Errorf("%q: %s", raw, got)
		}
	})
}

func BenchmarkPreview(b *testing.B) {
	for _, n := range []int{1, 30, 300} {
		raw := json.RawMessage(`{"content":[{"type":"text","text":"ok"}],"structuredContent":{"issues":[` + strings.Repeat(`{"id":1234,"title":"An issue about this"},`, n) + `{}]}}`)
		b.Run(fmt.Sprint(len(raw)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				previewOf(raw)
			}
		})
	}
}
