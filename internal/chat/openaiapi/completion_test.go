package openaiapi_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/chat/openaiapi"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres runs the tests of what is stored with a database on Postgres.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t, TestClientTools, TestStepsBelongToAPerson)
}

var providers = []string{"anthropic", "openai"}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			f := play(t, provider, `
				system You speak like a pirate.
				system one JSON object
				offer clock__now
				expect what time is it
				say Let me look.
				use clock__now {}
				---
				expect noon
				say It is noon.`)
			got := f.answer(t, `{"model":"luanette","max_tokens":99,"temperature":0.5,"user":"anna","response_format":{"type":"json_object"},"messages":[
				{"role":"system","content":"You speak like a pirate."},
				{"role":"user","content":"hi"},{"role":"assistant","content":"ahoy"},
				{"role":"user","content":[{"type":"text","text":"what time is it"}]}]}`)
			has(t, got, `"object":"chat.completion"`, `"model":"luanette"`, `"finish_reason":"stop"`,
				`"message":{"role":"assistant","content":"Let me look.\nIt is noon."}`, `"tool_calls":1`)
			if !regexp.MustCompile(`"usage":{"prompt_tokens":[1-9]\d*,"completion_tokens":[1-9]`).MatchString(got) {
				t.Errorf("usage: %s", got)
			}
			first := f.model.Requests()[0]
			if len(first.Turns) < 3 || !strings.Contains(string(first.Body), `"max_tokens":99`) {
				t.Errorf("request: %s", first.Body)
			}
		})
	}
}

// calls finds the ids of the calls in an answer.
var calls = regexp.MustCompile(`"id":"(call_[A-Z0-9]+)"`)

const weather = `{"type":"function","function":{"name":"weather","description":"Tells the weather.","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}`

// TestClientTools checks that calls of the client's tools are returned, and that the
// conversation continues with their results and with what the agent did itself.
func TestClientTools(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			f := play(t, provider, `
				offer weather
				offer clock__now
				say Let me look.
				use clock__now {}
				use weather {"city":"Bern"}
				---
				expect noon
				expect sunny
				say Sunny at noon.
				---
				expect thanks
				say Welcome.`)
			ask := `{"role":"user","content":"weather in Bern?"}`
			first := f.answer(t, `{"model":"luanette","tools":[`+weather+`],"messages":[`+ask+`]}`)
			has(t, first, `"finish_reason":"tool_calls"`, `"function":{"name":"weather","arguments":"{\"city\":\"Bern\"}"}`, `"content":"Let me look."`)
			if strings.Contains(first, "clock__now") {
				t.Errorf("the agent's own call is returned: %s", first)
			}
			id := calls.FindStringSubmatch(first)[1]
			ask += `,{"role":"assistant","content":"Let me look.","tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Bern\"}"}}]},
				{"role":"tool","tool_call_id":"` + id + `","content":"sunny"}`
			has(t, f.answer(t, `{"model":"luanette","tools":[`+weather+`],"messages":[`+ask+`]}`), `"Sunny at noon."`, `"finish_reason":"stop"`)
			ask += `,{"role":"assistant","content":"Sunny at noon."},{"role":"user","content":"thanks"}`
			has(t, f.answer(t, `{"model":"luanette","tools":[`+weather+`],"messages":[`+ask+`]}`), `"Welcome."`)
			last := f.model.Requests()[2]
			before := f.model.Requests()[1]
			for i, turn := range before.Turns { // what was sent stays the same, for the provider's cache
				if last.Turns[i] != turn {
					t.Errorf("message %d changed from %v to %v", i, turn, last.Turns[i])
				}
			}
		})
	}
}

// TestStepsBelongToAPerson checks that a stored step is not found by another person, whose
// request has only what it says.
func TestStepsBelongToAPerson(t *testing.T) {
	t.Parallel()
	f := play(t, "anthropic", `
		use clock__now {}
		---
		expect noon
		use weather {}
		---
		expect guess
		say ok
		---
		say own`)
	first := f.answer(t, `{"model":"luanette","user":"anna","tools":[`+weather+`],"messages":[{"role":"user","content":"go"}]}`)
	has(t, first, `"content":null`)
	id := calls.FindStringSubmatch(first)[1]
	goOn := `"model":"luanette","messages":[{"role":"user","content":"go"},{"role":"assistant","tool_calls":[{"id":"` + id +
		`","type":"function","function":{"name":"weather","arguments":"{}"}}]},{"role":"tool","tool_call_id":"` + id + `","content":"guess"}]}`
	f.answer(t, `{"user":"bob",`+goOn)
	f.answer(t, `{"user":"anna",`+goOn)
	for i, want := range []bool{false, true} {
		request := f.model.Requests()[2+i]
		if got := strings.Contains(string(request.Body), "noon"); got != want {
			t.Errorf("request %d has the steps: %v\n%s", i, got, request.Body)
		}
	}
	if _, err := f.service.Conversations.Forget(t.Context(), profile.Person{Org: "default", User: "anna"}); err != nil {
		t.Fatal(err)
	}
}

func TestToolChoice(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ provider, choice, want string }{
		{"anthropic", `"auto"`, ""},
		{"anthropic", `"required"`, `"tool_choice":{"type":"any"}`},
		{"anthropic", `{"type":"function","function":{"name":"weather"}}`, `"tool_choice":{"type":"tool","name":"weather"}`},
		{"openai", `"required"`, `"tool_choice":"required"`},
		{"openai", `{"type":"function","function":{"name":"weather"}}`, `"tool_choice":{"function":{"name":"weather"},"type":"function"}`},
	} {
		t.Run(tt.provider+tt.choice, func(t *testing.T) {
			t.Parallel()
			f := play(t, tt.provider, "offer weather\nuse weather {}")
			f.answer(t, `{"model":"luanette","tool_choice":`+tt.choice+`,"tools":[`+weather+`],"messages":[{"role":"user","content":"go"}]}`)
			body := string(f.model.Requests()[0].Body)
			if has(t, body, tt.want); tt.want == "" && strings.Contains(body, "tool_choice") {
				t.Error(body)
			}
		})
	}
	f := play(t, "anthropic", "say ok")
	f.answer(t, `{"model":"luanette","tool_choice":"none","tools":[`+weather+`],"messages":[{"role":"user","content":"go"}]}`)
	if tools := f.model.Requests()[0].Tools; strings.Contains(strings.Join(tools, " "), "weather") {
		t.Errorf("none offers %v", tools)
	}
}

// TestNamesOfTools checks that a client's tool keeps its name beside ours.
func TestNamesOfTools(t *testing.T) {
	t.Parallel()
	f := play(t, "openai", "use clock__now {\"mine\":true}")
	got := f.answer(t, `{"model":"luanette","messages":[{"role":"user","content":"go"}],"tools":[
		{"type":"function","function":{"name":"clock__now"}},{"type":"function","function":{"name":"read_memory"}}]}`)
	has(t, got, `"name":"clock__now"`, `"finish_reason":"tool_calls"`)
	has(t, strings.Join(f.model.Requests()[0].Tools, " "), "clock__now_", "clock__now read_memory")
}

func TestOddConversations(t *testing.T) {
	t.Parallel()
	for name, messages := range map[string]string{
		"begins with the assistant": `{"role":"assistant","content":"hello"},{"role":"user","content":"go"}`,
		"an unknown call":           `{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"x","type":"function","function":{"name":"weather","arguments":"{}"}}]},{"role":"tool","tool_call_id":"x","content":"sunny"}`,
		"a call without result":     `{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"x","type":"function","function":{"name":"weather","arguments":""}}]},{"role":"user","content":"never mind"}`,
		"two users in a row":        `{"role":"user","content":"a"},{"role":"user","content":"b"}`,
		"an empty answer":           `{"role":"user","content":"a"},{"role":"assistant","content":""},{"role":"user","content":"b"}`,
		"only instructions before":  `{"role":"developer","content":"be kind"},{"role":"user","content":"b"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, provider := range providers {
				f := play(t, provider, "say ok")
				has(t, f.answer(t, `{"model":"luanette","messages":[`+messages+`]}`), `"ok"`)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	f := playModel(t, "anthropic", llmtest.Start(t, func(llmtest.Request) llmtest.Step { return llmtest.Step{Say: []string{"ok"}} }), openaiapi.Options{Rate: 2},
		apikey.Key{Name: "web", Hash: apikey.HashOf("web-key"), Fixed: true, Rights: apikey.Rights{Scopes: []principal.Scope{principal.Chat}, Org: "acme"}},
		apikey.Key{Name: "mcp", Hash: apikey.HashOf("mcp-key"), Fixed: true, Rights: apikey.Rights{Scopes: []principal.Scope{principal.MCP}}})
	const hello = `"messages":[{"role":"user","content":"hi"}]`
	for _, tt := range []struct {
		name, key, body string
		status          int
		want            string
	}{
		{"no key", "", `{}`, 401, `"type":"invalid_request_error","param":null,"code":"invalid_api_key"`},
		{"a wrong key", "guess", `{}`, 401, `"code":"invalid_api_key"`},
		{"a key without the scope", "mcp-key", `{}`, 403, `"type":"permission_error","param":null,"code":"insufficient_permissions"`},
		{"no JSON", "web-key", `{`, 400, `"type":"invalid_request_error","param":null,"code":null`},
		{"a wrong type", "web-key", `{"model":1}`, 400, `"param":"model"`},
		{"no model", "web-key", `{` + hello + `}`, 400, `"param":"model"`},
		{"an unknown model", "web-key", `{"model":"gpt-5",` + hello + `}`, 404, `"param":"model","code":"model_not_found"`},
		{"an unknown mode", "web-key", `{"model":"luanette:coach",` + hello + `}`, 404, `"code":"model_not_found"`},
		{"no messages", "web-key", `{"model":"luanette"}`, 400, `"param":"messages"`},
		{"two answers", "web-key", `{"model":"luanette","n":2,` + hello + `}`, 400, `"param":"n"`},
		{"functions", "web-key", `{"model":"luanette","functions":[],` + hello + `}`, 400, `"param":"functions"`},
		{"audio", "web-key", `{"model":"luanette","modalities":["audio"],` + hello + `}`, 400, `"param":"modalities"`},
		{"a role", "web-key", `{"model":"luanette","messages":[{"role":"robot","content":"x"}]}`, 400, `"param":"messages[0].role"`},
		{"ends with the assistant", "web-key", `{"model":"luanette","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]}`, 400, `"param":"messages"`},
		{"content", "web-key", `{"model":"luanette","messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`, 400, `"param":"messages"`},
		{"a result without its call", "web-key", `{"model":"luanette","messages":[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"y","content":"z"}]}`, 400, `does not follow the call`},
		{"a tool's type", "web-key", `{"model":"luanette","tools":[{"type":"custom"}],` + hello + `}`, 400, `"param":"tools"`},
		{"a tool's name", "web-key", `{"model":"luanette","tools":[{"type":"function","function":{"name":"a b"}}],` + hello + `}`, 400, `"param":"tools"`},
		{"the same name twice", "web-key", `{"model":"luanette","tools":[` + weather + `,` + weather + `],` + hello + `}`, 400, `"param":"tools"`},
		{"a choice without tools", "web-key", `{"model":"luanette","tool_choice":"required",` + hello + `}`, 400, `"param":"tool_choice"`},
		{"a format", "web-key", `{"model":"luanette","response_format":{"type":"xml"},` + hello + `}`, 400, `"param":"response_format"`},
		{"too large", "web-key", `{"model":"` + strings.Repeat("x", 33<<20) + `"}`, 413, `"code":"request_too_large"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var header []string
			if tt.key != "" {
				header = []string{"Authorization", "Bearer " + tt.key}
			}
			response, body := f.post(t, tt.body, header...)
			if response.StatusCode != tt.status || !strings.HasPrefix(body, `{"error":{"message":"`) {
				t.Errorf("%d %s", response.StatusCode, body)
			}
			has(t, body, tt.want)
		})
	}
	t.Run("another organisation", func(t *testing.T) {
		response, body := f.post(t, `{"model":"luanette",`+hello+`}`, "Authorization", "Bearer web-key", "OpenAI-Organization", "other")
		if response.StatusCode != http.StatusForbidden {
			t.Errorf("%d %s", response.StatusCode, body)
		}
	})
	t.Run("another endpoint", func(t *testing.T) {
		response, body := httpjsontest.Read(t, http.MethodPost, f.url+"/v1/embeddings", "{}")
		if response.StatusCode != http.StatusNotFound {
			t.Errorf("%d %s", response.StatusCode, body)
		}
		has(t, body, `"code":"unknown_url"`)
	})
}

// TestRate checks the limit per person.
func TestRate(t *testing.T) {
	t.Parallel()
	f := playModel(t, "anthropic", llmtest.Start(t, func(llmtest.Request) llmtest.Step { return llmtest.Step{Say: []string{"ok"}} }), openaiapi.Options{Rate: 1})
	const body = `{"model":"luanette","messages":[{"role":"user","content":"hi"}],"user":`
	f.answer(t, body+`"anna"}`)
	response, text := f.post(t, body+`"anna"}`)
	if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	has(t, text, `"code":"rate_limit_exceeded"`)
	f.answer(t, body+`"bob"}`)
}

// TestBudget checks that a person whose budget is used up is refused before the model is
// asked, in a way that libraries do not repeat.
func TestBudget(t *testing.T) {
	t.Parallel()
	f := play(t, "anthropic", "say ok")
	who := agent.Spender{Turn: "earlier", Org: profile.DefaultOrg, User: "anna"}
	if err := f.usage.Spend(t.Context(), who, "m", llm.Usage{Input: dailyTokens}); err != nil {
		t.Fatal(err)
	}
	const body = `{"model":"luanette","messages":[{"role":"user","content":"hi"}],"user":`
	response, text := f.post(t, body+`"anna"}`)
	if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("X-Should-Retry") != "false" || response.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v", response.StatusCode, response.Header)
	}
	has(t, text, `"type":"insufficient_quota","param":null,"code":"insufficient_quota"`, "the budget of anna for today is used up: 1000000 of 1000000 tokens")
	if n := len(f.model.Requests()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
	f.answer(t, body+`"bob"}`)
}

// TestFailedAnswers checks what a client gets if there is no answer, and that libraries do
// not repeat a request for which tools were called.
func TestFailedAnswers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		scenario string
		status   int
		want     string
		retry    string
	}{
		"the model's key":   {"status 401 authentication_error no", 502, `"code":"model_key_refused"`, ""},
		"the model refuses": {"status 400 invalid_request_error no", 502, `"type":"server_error"`, ""},
		"after a call":      {"use clock__now {}\n---\nstatus 401 authentication_error no", 502, `"code":"model_key_refused"`, "false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, stream := range []string{"true", "false"} {
				f := play(t, "anthropic", tt.scenario)
				response, body := f.post(t, `{"model":"luanette","stream":`+stream+`,"messages":[{"role":"user","content":"hi"}]}`)
				if response.StatusCode != tt.status || response.Header.Get("X-Should-Retry") != tt.retry {
					t.Errorf("%d %v %s", response.StatusCode, response.Header, body)
				}
				has(t, body, tt.want)
			}
		})
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	f := play(t, "anthropic", "system Coach people.\nsay ok")
	if err := f.service.Profiles.Modes.Set(t.Context(), "default", profile.Mode{Name: "coach", Prompts: agent.Prompts{"identity": "Coach people."}}); err != nil {
		t.Fatal(err)
	}
	_, list := httpjsontest.Read(t, http.MethodGet, f.url+"/v1/models", "")
	_, same := httpjsontest.Read(t, http.MethodGet, f.url+"/v1/models", "", "Authorization", "Bearer whatever") // no key exists
	if same != list {
		t.Error(same)
	}
	has(t, list, `{"data":[{"id":"luanette","object":"model"`, `{"id":"luanette:coach","object":"model"`, `"object":"list"`)
	_, one := httpjsontest.Read(t, http.MethodGet, f.url+"/v1/models/luanette:coach", "")
	has(t, one, `{"id":"luanette:coach"`)
	if response, body := httpjsontest.Read(t, http.MethodGet, f.url+"/v1/models/gpt-5", ""); response.StatusCode != http.StatusNotFound {
		t.Error(body)
	}
	f.answer(t, `{"model":"luanette:coach","messages":[{"role":"user","content":"hi"}]}`)
}
