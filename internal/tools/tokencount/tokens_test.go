package tokencount_test

import (
	"testing"

	"github.com/luanette/luanette/internal/tools/tokencount"
)

// counted are texts with how many tokens the public vocabulary o200k makes of them.
var counted = []struct {
	text  string
	o200k int
}{
	{"", 0},
	{"Read a text file from disk and return what is in it.", 13},
	{`{"name":"read_file","description":"Read a file.","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}`, 33},
	{"export function sumOfSquares(values: number[]): number {\n  return values.reduce((a, b) => a + b * b, 0);\n}\n", 31},
	{"The quick brown fox jumps over the lazy dog, 1234567 times.", 16},
	{"internationalization and misunderstandings", 5},
}

// menu are definitions as clients list them. What we promise about menus holds only if the
// estimate is not below the count.
var menu = []struct {
	definition string
	o200k      int
}{
	{`{"name":"call_tool","description":"Call any tool by its name and return its result. The arguments are checked first; errors say what is wrong.","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"as search_tools gives it, such as namespace.tool"},"arguments":{"type":"object","description":"as its input schema says"}},"required":["name"],"additionalProperties":false}}`, 85},
	{"{\"name\":\"execute_code\",\"description\":\"Run JavaScript, TypeScript or Lua that calls many tools. A tool is `await mcp.namespace.tool({name: value})`, in Lua `mcp.namespace.tool{name = value}`. tools.search and tools.describe work inside. Await independent calls with Promise.all; return only what you need. No network, no imports; 5 s and 64 MiB.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"code\":{\"type\":\"string\",\"description\":\"the result is what it returns, or its last expression\",\"maxLength\":100000},\"language\":{\"type\":\"string\",\"description\":\"default javascript\",\"enum\":[\"javascript\",\"lua\"]},\"session_id\":{\"type\":\"string\",\"description\":\"its variables persist\",\"maxLength\":64},\"timeout_ms\":{\"type\":\"integer\",\"description\":\"default 5000\",\"minimum\":1,\"maximum\":600000}},\"required\":[\"code\"],\"additionalProperties\":false}}", 189},
	{`{"name":"get_tool_definitions","description":"Complete definitions of tools: schemas of arguments and results, or declarations to write code by.","inputSchema":{"type":"object","properties":{"names":{"type":"array","items":{"type":"string"},"description":"as search_tools gives them","minItems":1,"maxItems":100},"format":{"type":"string","description":"default json","enum":["json","typescript","lua"]}},"required":["names"],"additionalProperties":false},"annotations":{"readOnlyHint":true}}`, 107},
	{`{"name":"search_tools","description":"Find tools of all servers, and our own for jobs, sessions and more, by what they do. Returns names, arguments and short descriptions, best first.","inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"what the tool should do; empty lists what there is","maxLength":1000},"namespace":{"type":"string","description":"only this server or family"},"limit":{"type":"integer","description":"default 10","minimum":1,"maximum":100}},"required":["query"],"additionalProperties":false},"annotations":{"readOnlyHint":true}}`, 129},
}

func TestEstimateOfAMenuIsNotTooLow(t *testing.T) {
	t.Parallel()
	for _, c := range menu {
		if got := tokencount.Estimate(c.definition); got < c.o200k || got > c.o200k*115/100 {
			t.Errorf("%d for %.40s, counted %d", got, c.definition, c.o200k)
		}
	}
}

func TestEstimateIsNear(t *testing.T) {
	t.Parallel()
	for _, c := range counted {
		got := tokencount.Estimate(c.text)
		if low, high := c.o200k*90/100, c.o200k*120/100+2; got < low || got > high {
			t.Errorf("%d for %q, counted %d", got, c.text, c.o200k)
		}
	}
}

func FuzzEstimate(f *testing.F) {
	f.Add("héllo 天気\n\xff\t  {}")
	f.Fuzz(func(t *testing.T, text string) {
		if n := tokencount.Estimate(text); n > len(text) || n == 0 && text != "" {
			t.Errorf("%d for %d bytes", n, len(text))
		}
	})
}
