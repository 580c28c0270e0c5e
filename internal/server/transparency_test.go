package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// probed is a server of one era whose definitions and results have what a relay easily loses.
type probed struct {
	name string
	era  wire.Era

	mu  sync.Mutex
	saw string // the last request
}

const (
	probedIcon  = `"icons":[{"src":"https://example.com/i.png","sizes":["16x16"]}]`
	probedNotes = `"annotations":{"audience":["user"],"priority":0.5}`
	probedMeta  = `"_meta":{"example.com/r":12345678901234567890}`
)

// answers are the results by method; NAME is the server's name.
var answers = map[string]string{
	wire.MethodToolsList: `{"tools":[{"name":"echo","title":"Echo","description":"Says it again.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"title":"E"},` +
		probedIcon + `,"futureDefinition":{"x":12345678901234567890},` + probedMeta + `}]}`,
	wire.MethodToolsCall: `{"content":[{"type":"text","text":"hi",` + probedNotes + `},{"type":"resource_link","uri":"NAME-linked://1","name":"one"},{"type":"hologram","depth":12345678901234567890}],` +
		`"structuredContent":{"n":9007199254740993,"z":1,"a":1.0},"futureResult":{"x":1},` + probedMeta + `}`,
	wire.MethodResourcesList:     `{"resources":[{"uri":"NAME://1","name":"one","title":"One","size":12345678901,` + probedIcon + `,` + probedNotes + `,"future":1,` + probedMeta + `}]}`,
	wire.MethodResourceTemplates: `{"resourceTemplates":[{"uriTemplate":"NAME://t/{id}","name":"t","title":"T","future":1,` + probedIcon + `}]}`,
	wire.MethodResourcesRead:     `{"contents":[{"uri":"NAME-linked://1","mimeType":"text/plain","text":"linked","future":1,"_meta":{"ui":{"csp":{"connectDomains":["https://example.com"]}}}}],` + probedMeta + `}`,
	wire.MethodPromptsList:       `{"prompts":[{"name":"greet","title":"Greet","arguments":[{"name":"who","required":true,"future":1}],"future":1,` + probedIcon + `}]}`,
	wire.MethodPromptsGet:        `{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"hi",` + probedNotes + `}}],"future":1,` + probedMeta + `}`,
	wire.MethodComplete:          `{"completion":{"values":["a","b"],"total":200,"hasMore":true,"future":1}}`,
	"future/method":              `{"future":12345678901234567890}`,
	wire.MethodPing:              `{}`,
}

const probedCapabilities = `"capabilities":{"tools":{},"resources":{},"prompts":{},"completions":{},"experimental":{"e":{"x":1}},"extensions":{"example.com/x":{"y":1}}}`

func (p *probed) answer(m wire.Message) (string, error) {
	switch {
	case m.Method == wire.MethodInitialize && p.era == wire.Legacy:
		return `{"protocolVersion":"` + wire.NewestLegacy + `",` + probedCapabilities + `,"serverInfo":{"name":"probed","version":"1"}}`, nil
	case m.Method == wire.MethodDiscover && p.era == wire.Modern:
		return `{"supportedVersions":["` + wire.NewestModern + `"],` + probedCapabilities + `}`, nil
	case bytes.Contains(m.Params, []byte(`"refuse"`)):
		return "", wire.Errorf(-32077, "refused").WithData(map[string]any{"why": "asked to"})
	}
	if text, ok := answers[m.Method]; ok {
		return strings.ReplaceAll(text, "NAME", p.name), nil
	}
	return "", wire.Errorf(wire.CodeMethodNotFound, "no %s", m.Method)
}

func (p *probed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	m, wrong := wire.Parse(body)
	switch {
	case r.Method != http.MethodPost || err != nil || wrong != nil:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case !m.IsRequest():
		w.WriteHeader(http.StatusAccepted)
		return
	}
	p.mu.Lock()
	p.saw = string(body)
	p.mu.Unlock()
	text, refusal := p.answer(m)
	w.Header().Set("Content-Type", "application/json")
	out := wire.Answer(m.ID, []byte(text), refusal)
	_, _ = w.Write(out.Append(nil))
}

// probeCase is one thing that must not be lost on the way. TOOL, PROMPT and NAME in params
// are the names there.
type probeCase struct {
	what, method, params string
	want                 []string // in the answer
	saw                  string   // in what the server was sent
	lost                 func(path string, client, server wire.Era) string
}

// onlyModern is why a server with sessions does not learn what one client of several declares.
func onlyModern(_ string, _, server wire.Era) string {
	if server == wire.Modern {
		return ""
	}
	return "a server with sessions learns capabilities once, for all clients: those that we relay"
}

var probeCases = []probeCase{
	{what: "whole numbers above 2^53 in arguments", method: wire.MethodToolsCall, params: `{"name":"TOOL","arguments":{"n":9007199254740993}}`, saw: `"n":9007199254740993`},
	{what: "whole numbers above 2^53 in results, and the order of members", method: wire.MethodToolsCall, params: `{"name":"TOOL"}`, want: []string{`"structuredContent":{"n":9007199254740993,"z":1,"a":1.0}`}},
	{what: "`_meta` of requests", method: wire.MethodToolsCall, params: `{"name":"TOOL","_meta":{"example.com/k":{"a":1}}}`, saw: `"example.com/k":{"a":1}`},
	{what: "`_meta` of results", method: wire.MethodToolsCall, params: `{"name":"TOOL"}`, want: []string{`"example.com/r":12345678901234567890`}},
	{what: "annotations of content", method: wire.MethodToolsCall, params: `{"name":"TOOL"}`, want: []string{probedNotes}},
	{what: "kinds of content and members of the future", method: wire.MethodToolsCall, params: `{"name":"TOOL"}`, want: []string{`{"type":"hologram","depth":12345678901234567890}`, `"futureResult":{"x":1}`}},
	{what: "links, and what they lead to", method: wire.MethodResourcesRead, params: `{"uri":"NAME-linked://1"}`, want: []string{`"uri":"NAME-linked://1"`, `"text":"linked"`, `"csp":{"connectDomains":["https://example.com"]}`}},
	{what: "a server's own error, with its code and data", method: wire.MethodToolsCall, params: `{"name":"TOOL","arguments":{"refuse":"refuse"}}`, want: []string{"-32077", "refused", "asked to"}},
	{what: "definitions of tools: title, icons, annotations, `_meta`, the future", method: wire.MethodToolsList, params: `{}`, want: []string{`"title":"Echo"`, probedIcon, `"annotations":{"readOnlyHint":true,"title":"E"}`, probedMeta, `"futureDefinition":{"x":12345678901234567890}`}},
	{what: "resources: title, icons, size, annotations, `_meta`", method: wire.MethodResourcesList, params: `{}`, want: []string{`"uri":"NAME://1","name":"one","title":"One","size":12345678901,` + probedIcon + `,` + probedNotes + `,"future":1,` + probedMeta}},
	{what: "templates of resources", method: wire.MethodResourceTemplates, params: `{}`, want: []string{`{"uriTemplate":"NAME://t/{id}","name":"t","title":"T","future":1,` + probedIcon + `}`}},
	{what: "prompts: title, arguments, icons", method: wire.MethodPromptsList, params: `{}`, want: []string{`"title":"Greet","arguments":[{"name":"who","required":true,"future":1}],"future":1,` + probedIcon}},
	{what: "messages of prompts", method: wire.MethodPromptsGet, params: `{"name":"PROMPT","arguments":{"who":"a"}}`, want: []string{probedNotes, `"future":1`}, saw: `"who":"a"`},
	{what: "completions, with the values of other arguments", method: wire.MethodComplete, params: `{"ref":{"type":"ref/prompt","name":"PROMPT"},"argument":{"name":"who","value":""},"context":{"arguments":{"b":"1"}}}`,
		want: []string{`"completion":{"values":["a","b"],"total":200,"hasMore":true,"future":1}`}, saw: `"context":{"arguments":{"b":"1"}}`},
	{what: "extensions that a client declares", method: wire.MethodToolsCall, params: `{"name":"TOOL"}`, saw: `"example.com/x":{"deep":1}`, lost: onlyModern},
	{what: "experimental capabilities of a client", method: wire.MethodToolsCall, params: `{"name":"TOOL"}`, saw: `"experimental":{"e":{"deep":1}}`, lost: onlyModern},
	{what: "methods of the future", method: "future/method", params: `{"a":1}`, want: []string{`"future":12345678901234567890`}, lost: func(path string, _, _ wire.Era) string {
		if path == "/mcp" {
			return "a method that names no server has none to go to: it is refused with -32601, as the specification says"
		}
		return ""
	}},
}

// try makes the request of a case and says what is missing; "" is nothing.
func (c *probeCase) try(client *eraClient, p *probed) string {
	tool, prompt := "echo", "greet"
	if client.path != "/mcp/"+p.name {
		tool, prompt = p.name+"__echo", p.name+"__greet"
	}
	names := strings.NewReplacer("TOOL", tool, "PROMPT", prompt, "NAME", p.name)
	p.mu.Lock()
	p.saw = ""
	p.mu.Unlock()
	m := client.ask(c.method, names.Replace(c.params))
	answer := string(m.Result)
	if m.Error != nil {
		answer = fmt.Sprint(m.Error.Code, m.Error.Message, string(m.Error.Data))
	}
	for _, want := range c.want {
		if !strings.Contains(answer, names.Replace(want)) {
			return "answered " + answer
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !strings.Contains(p.saw, c.saw) {
		return "the server was sent " + p.saw
	}
	return ""
}

// transparencyTitle begins the part of docs/conformance.md that TestTransparency writes.
const transparencyTitle = "## What is passed on\n"

// TestTransparency runs each case at /mcp and at /mcp/NAME with clients and servers of both eras,
// and checks that docs/conformance.md has the table.
func TestTransparency(t *testing.T) {
	t.Parallel()
	servers := []*probed{{name: "old", era: wire.Legacy}, {name: "new", era: wire.Modern}}
	var file strings.Builder
	for _, p := range servers {
		site := httptest.NewServer(p)
		t.Cleanup(site.Close)
		fmt.Fprintf(&file, "[upstreams.%s]\nurl = %q\n", p.name, site.URL)
	}
	url, srv := start(t, config.Sources{File: configtest.WriteFile(t, file.String())})
	srv.upstreams.AwaitAttempts(t.Context(), clocktest.Timeout)
	srv.catalog.Refresh(t.Context())
	var table strings.Builder
	table.WriteString(transparencyTitle + `
Clients and servers of 2025-11-25 (25) and 2026-07-28 (26), at ` + "`/mcp`" + ` and at ` + "`/mcp/NAME`" + `: "25 → 26" is a client of the former and a server of the latter. A number is the reason below the table. Progress, cancellation, questions to the client, log messages and changes of lists are in the scenarios above.

| | ` + "`/mcp`" + ` 25 → 25 | 25 → 26 | 26 → 25 | 26 → 26 | ` + "`/mcp/NAME`" + ` 25 → 25 | 25 → 26 | 26 → 25 | 26 → 26 |
|---|---|---|---|---|---|---|---|---|
`)
	const caps = `{"extensions":{"example.com/x":{"deep":1}},"experimental":{"e":{"deep":1}}}`
	var clients []*eraClient
	var to []*probed
	for _, atName := range []bool{false, true} {
		for _, era := range []wire.Era{wire.Legacy, wire.Modern} {
			for _, p := range servers {
				path := "/mcp"
				if atName {
					path += "/" + p.name
				}
				client := connectEra(t, url, path, era, caps)
				client.ask(wire.MethodToolsCall, map[bool]string{false: `{"name":"` + p.name + `__echo"}`, true: `{"name":"echo"}`}[atName]) // its result has a link
				clients, to = append(clients, client), append(to, p)
			}
		}
	}
	var reasons []string
	for i := range probeCases {
		c := &probeCases[i]
		table.WriteString("| " + c.what)
		for j, client := range clients {
			lost := ""
			if c.lost != nil {
				lost = c.lost(map[bool]string{true: "/mcp", false: ""}[client.path == "/mcp"], client.era, to[j].era)
			}
			at := *client
			if c.method == wire.MethodToolsList && at.path == "/mcp" {
				at.path, at.session = "/mcp?menu=direct", connectEra(t, url, "/mcp?menu=direct", at.era, caps).session
			}
			missing := c.try(&at, to[j])
			if (missing != "") != (lost != "") {
				t.Errorf("%s at %s, %v → %v: %.600s", c.what, client.path, client.era, to[j].era, missing)
			}
			table.WriteString(" | " + cell(lost, &reasons))
		}
		table.WriteString(" |\n")
	}
	table.WriteString("\n")
	for i, reason := range reasons {
		fmt.Fprintf(&table, "%d. %s\n", i+1, reason)
	}
	checkTransparency(t, table.String())
}

// cell is yes, or the number of a reason.
func cell(lost string, reasons *[]string) string {
	if lost == "" {
		return "yes"
	}
	for i, known := range *reasons {
		if known == lost {
			return fmt.Sprint(i + 1)
		}
	}
	*reasons = append(*reasons, lost)
	return fmt.Sprint(len(*reasons))
}

func checkTransparency(t *testing.T, table string) {
	t.Helper()
	const page = "../../docs/conformance.md"
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := strings.Cut(string(raw), transparencyTitle)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(page, []byte(strings.TrimRight(before, "\n")+"\n\n"+table), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !found || transparencyTitle+after != table {
		t.Errorf("docs/conformance.md does not match; run `make golden`. It should have\n%s", table)
	}
}
