package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// rawServer answers each method with the given text as its result.
type rawServer map[string]func(params json.RawMessage) string

func (s rawServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "no", http.StatusMethodNotAllowed)
		return
	}
	body, _ := io.ReadAll(r.Body)
	m, err := wire.Parse(body)
	if err != nil || !m.IsRequest() {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", wire.ContentJSON)
	result := `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`
	if answer := s[m.Method]; answer != nil {
		result = answer(m.Params)
	} else if m.Method != wire.MethodInitialize {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
		return
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func startRaw(t *testing.T, s rawServer, change func(*upstreamtest.Server)) *upstreamtest.Harness {
	t.Helper()
	srv := httpServer(t, func() http.Handler { return s }, upstream.Spec{})
	if change != nil {
		change(&srv)
	}
	return upstreamtest.Start(t, srv)
}

const good = `{"name":"good","inputSchema":{"type":"object"}}`

func TestHostileListsLeaveTheGoodToolsUsable(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"properties":{"a":`, 300) + `{}` + strings.Repeat(`}}`, 300)
	for name, c := range map[string]struct {
		tools   string
		reports string
	}{
		"no schema":          {`[` + good + `,{"name":"x"}]`, "no input schema"},
		"schema of a string": {`[` + good + `,{"name":"x","inputSchema":"object"}]`, "not an object"},
		"another type":       {`[` + good + `,{"name":"x","inputSchema":{"type":"array"}}]`, "of type"},
		"list of types":      {`[` + good + `,{"name":"x","inputSchema":{"type":["object"]}}]`, "of type"},
		"no name":            {`[` + good + `,{"inputSchema":{"type":"object"}}]`, "no usable name"},
		"name with newlines": {`[` + good + `,{"name":"a\nb","inputSchema":{"type":"object"}}]`, "no usable name"},
		"duplicates":         {`[` + good + `,` + good + `]`, "defined twice"},
		"nulls":              {`[` + good + `,null,7,"x",[]]`, "not an object"},
		"very deep":          {`[` + good + `,{"name":"x","inputSchema":{"type":"object","x":` + deep + `}}]`, "deep"},
		"huge number":        {`[` + good + `,{"name":"x","inputSchema":{"type":"object","properties":{"n":{"type":"number","maximum":1e400}}}}]`, ""},
		"number as the name": {`[` + good + `,{"name":7,"inputSchema":{"type":"object"}}]`, "no usable name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startRaw(t, rawServer{
				wire.MethodToolsList: func(json.RawMessage) string { return `{"tools":` + c.tools + `}` },
				wire.MethodToolsCall: func(json.RawMessage) string { return `{"content":[]}` },
			}, nil)
			h.Text(t, "good", nil)
			st, _ := h.Manager.Status("test")
			if report := strings.Join(st.Dropped, "\n"); c.reports == "" != (report == "") || !strings.Contains(report, c.reports) {
				t.Errorf("reported %q, want %q", report, c.reports)
			}
			if trouble := strings.Join(st.Trouble, "\n"); !strings.Contains(trouble, c.reports) || c.reports != "" && !strings.HasPrefix(trouble, "left out: ") {
				t.Errorf("trouble = %q", trouble)
			}
		})
	}
}

func TestEndlessAndGiantLists(t *testing.T) {
	t.Parallel()
	page := 0
	for name, c := range map[string]struct {
		list    func(params json.RawMessage) string
		reports string
		atLeast int
	}{
		"endless pages": {func(json.RawMessage) string {
			page++
			return fmt.Sprintf(`{"tools":[{"name":"t%d","inputSchema":{"type":"object"}}],"nextCursor":"%d"}`, page, page)
		}, "pages", 1000},
		"the same page for ever": {func(json.RawMessage) string {
			return `{"tools":[` + good + `],"nextCursor":"again"}`
		}, "repeats itself", 1},
		"too many tools": {func(json.RawMessage) string {
			var b strings.Builder
			for i := range 10_050 {
				fmt.Fprintf(&b, `,{"name":"t%d","inputSchema":{"type":"object"}}`, i)
			}
			return `{"tools":[` + b.String()[1:] + `]}`
		}, "more than 10000 tools", 10_000},
		"no list at all": {func(json.RawMessage) string { return `{"tools":{}}` }, "no list of tools", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startRaw(t, rawServer{wire.MethodToolsList: c.list}, nil)
			infos, _ := h.Manager.Tools(t.Context())
			st, _ := h.Manager.Status("test")
			if len(infos) < c.atLeast || len(infos) > 10_000 || !strings.Contains(strings.Join(st.Dropped, "\n"), c.reports) {
				t.Errorf("%d tools, reported %.300q", len(infos), st.Dropped)
			}
			if !strings.Contains(strings.Join(st.Trouble, "\n"), c.reports) {
				t.Errorf("trouble = %.300q", st.Trouble)
			}
		})
	}
}

func TestManyInvalidDefinitionsAreSummarized(t *testing.T) {
	t.Parallel()
	h := startRaw(t, rawServer{wire.MethodToolsList: func(json.RawMessage) string {
		return `{"tools":[` + good + strings.Repeat(`,{"name":"x"}`, 100) + `]}`
	}}, nil)
	st, _ := h.Manager.Status("test")
	if len(st.Trouble) != 4 || st.Trouble[3] != "left out: 97 more definitions" {
		t.Errorf("trouble = %q", st.Trouble)
	}
}

func TestResultsKeepWhatTheServerSent(t *testing.T) {
	t.Parallel()
	sent := `{"zeta":1,"content":[{"type":"hologram","beam":[1e400]},{"type":"text","text":"é \u00e9"}],` +
		`"structuredContent":{"b":9007199254740993,"a":1.0},"vendor":{"x":null},"_meta":{"vendor/k":1,"io.modelcontextprotocol/serverInfo":{"name":"x"}}}`
	want := strings.Replace(sent, `,"io.modelcontextprotocol/serverInfo":{"name":"x"}`, ``, 1)
	h := startRaw(t, rawServer{
		wire.MethodToolsList: func(json.RawMessage) string { return `{"tools":[` + good + `]}` },
		wire.MethodToolsCall: func(json.RawMessage) string { return sent },
	}, nil)
	result, err := h.Manager.Call(t.Context(), tool.Call{Ref: ref("good")})
	if err != nil || string(result.Raw) != want {
		t.Errorf("result = %s\nwant     %s\n%v", result.Raw, want, err)
	}
	infos, _ := h.Manager.Tools(t.Context())
	if string(infos[0].Raw) != good {
		t.Errorf("definition = %s", infos[0].Raw)
	}
}

func TestArgumentsReachTheServerAsTheyAre(t *testing.T) {
	t.Parallel()
	var got json.RawMessage
	h := startRaw(t, rawServer{
		wire.MethodToolsList: func(json.RawMessage) string { return `{"tools":[` + good + `]}` },
		wire.MethodToolsCall: func(params json.RawMessage) string { got = params; return `{"content":[]}` },
	}, nil)
	args := json.RawMessage(`{"z":9007199254740993,"a":1e400,"é":"<&>"}`)
	meta := json.RawMessage(`{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","io.modelcontextprotocol/x":1}`)
	if _, err := h.Manager.Call(t.Context(), tool.Call{Ref: ref("good"), Args: args, Meta: meta}); err != nil {
		t.Fatal(err)
	}
	if sent, _ := rawjson.Get(got, "arguments"); string(sent) != string(args) {
		t.Errorf("arguments = %s", sent)
	}
	if m := wire.Meta(got); !strings.Contains(string(m), `"traceparent":"00-4bf9`) || strings.Contains(string(m), wire.ProtocolPrefix) {
		t.Errorf("meta = %s", m)
	}
}

func TestNonsenseResultsAreErrors(t *testing.T) {
	t.Parallel()
	for _, result := range []string{`7`, `null`, `[]`, `{"resultType":"task","taskId":"x"}`, `{"resultType":"input_required"}`} {
		h := startRaw(t, rawServer{
			wire.MethodToolsList: func(json.RawMessage) string { return `{"tools":[` + good + `]}` },
			wire.MethodToolsCall: func(json.RawMessage) string { return result },
		}, func(srv *upstreamtest.Server) {
			srv.Spec.MaxTime, srv.Spec.Timeout = duration.Duration(time.Second), duration.Duration(time.Second)
		})
		if got, err := h.Manager.Call(t.Context(), tool.Call{Ref: ref("good")}); err == nil {
			t.Errorf("%s passed as %s", result, got.Raw)
		}
	}
}

func TestOversizedResultIsALimitError(t *testing.T) {
	t.Parallel()
	huge := rawServer{
		wire.MethodToolsList: func(json.RawMessage) string { return `{"tools":[` + good + `]}` },
		wire.MethodToolsCall: func(json.RawMessage) string {
			return `{"content":[{"type":"text","text":"` + strings.Repeat("x", 50<<20) + `"}]}`
		},
	}
	servers := map[string]func(t *testing.T) (upstreamtest.Server, string){
		"http": func(t *testing.T) (upstreamtest.Server, string) {
			return httpServer(t, func() http.Handler { return huge }, upstream.Spec{}), "good"
		},
		"child": func(t *testing.T) (upstreamtest.Server, string) { return stdioServer(t, stdioSpec(t, "huge")), "echo" },
	}
	for name, newServerUnderTest := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, which := newServerUnderTest(t)
			h := upstreamtest.Start(t, srv)
			_, err := h.Manager.Call(t.Context(), tool.Call{Ref: ref(which)})
			if fault.CodeOf(err) != fault.Limit || fault.HintOf(err) == "" {
				t.Errorf("50 MB ended with %v", err)
			}
			if st, _ := h.Manager.Status("test"); st.State != upstream.StateConnected {
				t.Errorf("afterwards it is %s", st.State)
			}
		})
	}
}

func TestGarbageOnStandardOutputIsSkippedAndReported(t *testing.T) {
	t.Parallel()
	h := upstreamtest.Open(t, stdioServer(t, stdioSpec(t, "garbage")))
	e := h.Await(t, "upstream.garbage").Data.(upstream.Garbage)
	if !strings.Contains(e.Excerpt, "Listening on port") {
		t.Errorf("reported %q", e.Excerpt)
	}
	if text := h.Echo(t, "through"); text != "through" {
		t.Errorf("echo said %q", text)
	}
}

func TestFloodOfMessagesIsHandled(t *testing.T) {
	t.Parallel()
	srv := stdioServer(t, stdioSpec(t, "chatters"))
	h := upstreamtest.Start(t, srv)
	last := -1.0
	caller := &tool.Caller{
		Progress: func(p tool.Progress) {
			if p.Progress <= last {
				t.Errorf("progress went from %v to %v", last, p.Progress)
			}
			last = p.Progress
		},
		Ask: func(ctx context.Context, _ []tool.Question) ([]json.RawMessage, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}
	result, err := h.Manager.Call(t.Context(), tool.Call{Ref: ref("echo"), Args: json.RawMessage(`{"text":"received"}`), Caller: caller})
	if view, _ := result.View(); err != nil || view.Text() != "received" || last != 6 {
		t.Errorf("result = %s, %v, progress %v", result.Raw, err, last)
	}
}
