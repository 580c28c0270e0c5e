package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
)

// scrapeBusy returns what Prometheus reads of a server that has done something of
// everything: calls of tools that work and fail, a job, a chat.
func scrapeBusy(t *testing.T) string {
	t.Helper()
	steps, err := llmtest.Parse(`say "good morning"`)
	if err != nil {
		t.Fatal(err)
	}
	model := llmtest.Play(t, steps...)
	file := configtest.WriteFile(t, "[chat]\nbase_url = \""+model.URL+"\"\n[upstreams.far]\nurl = \""+serveTools(t, "far", echoTool{})+"\"\n")
	url, srv := start(t, config.Sources{File: file, Env: config.Environment{"ANTHROPIC_API_KEY": llmtest.Key}, Flags: map[string]string{"backup.every": "1h"}})
	srv.upstreams.Await(t.Context(), "far")
	client := keyClient{t, url, ""}
	for _, call := range []string{
		`"name":"call_tool","arguments":{"name":"far.echo","arguments":{"text":"hi"}}`,
		`"name":"call_tool","arguments":{"name":"far.nothing","arguments":{}}`,
		`"name":"call_tool","arguments":{"name":"lua_eval","arguments":{"code":"error('no')"}}`,
	} {
		client.rpc("/mcp", "tools/call", call)
	}
	own := func(tool, args string) string {
		_, text := client.rpc("/mcp", "tools/call", `"name":"call_tool","arguments":{"name":"`+tool+`","arguments":`+args+`}`)
		return text
	}
	hash := regexp.MustCompile(`[0-9a-f]{64}`).FindString(own("script_store", `{"content":"function main() error('no') end"}`))
	job := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`).FindString(own("lua_execute", `{"script_hash":"`+hash+`"}`))
	if text := own("job_poll", `{"job_ids":["`+job+`"],"timeout_ms":60000}`); !strings.Contains(text, "failed") {
		t.Fatalf("the job %s: %s", job, text)
	}
	requireOutcome(t, srv, own("job_status", `{"job_id":"`+job+`"}`))
	assistant, err := srv.NewAgent()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := assistant.Turn(t.Context(), agent.Request{Client: "terminal", User: "anna", Conversation: "c", Message: "hello"}, func(agent.Event) {}); err != nil {
		t.Fatal(err)
	}
	answer, text := httpjsontest.Read(t, http.MethodGet, url+"/metrics", "")
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", answer.Status, text)
	}
	return text
}

// requireOutcome checks that the trace of a failed job says how it ended.
func requireOutcome(t *testing.T, srv *Server, status string) {
	t.Helper()
	id := regexp.MustCompile(`trace_id\W+([0-9a-f]{32})`).FindStringSubmatch(status)
	if id == nil {
		t.Fatalf("no trace in %s", status)
	}
	found, _ := srv.telemetry.Traces().Get(t.Context(), id[1])
	for _, span := range found.Spans {
		if span.Attributes["job.status"] == "failed" && span.Failed {
			return
		}
	}
	t.Errorf("the trace does not say how the job ended: %+v", found.Spans)
}

// Every metric and label in the dashboard and in the alert rules is one that a server
// really has.
func TestDashboardAndAlertsNameMetrics(t *testing.T) {
	t.Parallel()
	text := scrapeBusy(t)
	names := map[string]bool{"up": true, "luanette_certificate_expiry": true} // Prometheus itself adds the first, a server with HTTPS the second
	for _, found := range regexp.MustCompile(`(?m)^([a-z]\w*)(?:\{([^\n]*)\})? [^ ]+$`).FindAllStringSubmatch(text, -1) {
		names[found[1]] = true
		for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(found[2], -1) {
			names[label[1]] = true
		}
	}
	expressions := slices.Concat(dashboardExpressions(t), alertExpressions(t))
	if len(expressions) < 25 {
		t.Errorf("only %d expressions", len(expressions))
	}
	for _, expr := range expressions {
		for _, name := range namesIn(expr) {
			if !names[name] {
				t.Errorf("%s: there is no %s in\n%s", expr, name, text)
			}
		}
	}
}

// namesIn returns the metrics and labels of an expression: what is neither a function,
// nor a word of the language, nor a text or number.
func namesIn(expr string) (names []string) {
	expr = regexp.MustCompile(`"[^"]*"|\[[^\]]*\]`).ReplaceAllString(expr, "")
	for _, found := range regexp.MustCompile(`([A-Za-z_]\w*)\s*(\(?)`).FindAllStringSubmatch(expr, -1) {
		words := []string{"sum", "by", "on", "or", "and", "unless", "ignoring", "group_left", "max", "min", "count", "avg", "le", "instance", "job", "time"}
		if !slices.Contains(words, found[1]) && found[2] == "" {
			names = append(names, found[1])
		}
	}
	return names
}

func dashboardExpressions(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../../packaging/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		UID    string
		Panels []struct {
			Title, Type string
			GridPos     struct{ H, W, X, Y int }
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil || dashboard.UID == "" {
		t.Fatalf("the dashboard %q: %v", dashboard.UID, err)
	}
	places := map[string]string{}
	for _, panel := range dashboard.Panels {
		if panel.Title == "" || panel.Type != "row" && len(panel.Targets) == 0 || panel.GridPos.X+panel.GridPos.W > 24 {
			t.Errorf("the panel %+v is not complete", panel)
		}
		place := fmt.Sprint(panel.GridPos.X, panel.GridPos.Y)
		if other, taken := places[place]; taken {
			t.Errorf("%s is at the place of %s", panel.Title, other)
		}
		places[place] = panel.Title
		for _, target := range panel.Targets {
			all = append(all, target.Expr)
		}
	}
	return all
}

func alertExpressions(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../../packaging/monitoring/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("the rule %+v is not complete", rule)
			}
			all = append(all, rule.Expr)
		}
	}
	return all
}

// By default only programs on this machine can read the metrics.
func TestMetricsAreOff(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]bool{"127.0.0.1:0": true, "[::1]:0": true, "0.0.0.0:8081": false, ":8081": false} {
		loaded, err := config.Load(config.Sources{Env: config.Environment{"HOME": t.TempDir()}, Flags: map[string]string{"listen": listen}})
		if err != nil {
			t.Fatal(err)
		}
		if got := loaded.ServesMetrics(); got != want {
			t.Errorf("%s: %v", listen, got)
		}
	}
	url, _ := start(t, config.Sources{Flags: map[string]string{"telemetry.metrics": "off"}})
	if answer, text := httpjsontest.Read(t, http.MethodGet, url+"/metrics", ""); answer.StatusCode != http.StatusNotFound {
		t.Errorf("%s: %s", answer.Status, text)
	}
}
