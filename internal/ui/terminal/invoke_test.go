package terminal_test

import (
	"errors"
	"strings"
	"testing"
)

// TestCallsOfTools calls tools by command, with arguments as pairs and as JSON, at the
// smallest size.
func TestCallsOfTools(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t).withHistory()
	s.answer("get_tool_definitions", func(args string) any {
		if !strings.Contains(args, "files.read_file") {
			return map[string]any{"tools": []any{}}
		}
		return map[string]any{"tools": []any{map[string]any{"name": "files.read_file", "input_schema": map[string]any{
			"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string"}, "head": map[string]any{"type": "integer"}}, "required": []any{"path"},
		}}}}
	})
	s.answer("call_tool", map[string]any{"lines": 3})
	p := s.open(60, 20)
	p.waitFor("─ Servers 3 ")
	p.types(":call files.re")
	p.waitFor(":call files.re▏  files.read_file")
	p.types("\t ")
	p.waitFor(":call files.read_file ▏  path=")
	p.types("path=\"a b\" head=2\r")
	p.waitFor("─ Overview › call of files.read_file ")
	p.waitFor("\"lines\": 3")
	p.waitUntil("the call", func(string) bool {
		return s.wasCalled(`call_tool {"arguments":{"head":2,"path":"a b"},"name":"files.read_file"}`)
	})
	p.types("e")
	p.waitFor(":call files.read_file ▏")
	p.types("{\"path\":\"c\"}\r")
	p.waitUntil("the call with JSON", func(string) bool {
		return s.wasCalled(`call_tool {"arguments":{"path":"c"},"name":"files.read_file"}`)
	})
	for _, tt := range []struct{ command, sees string }{
		{":call\r", "which one? for example :call SERVER.TOOL key=value"},
		{":call files.read_file head=2\r", "path is required: add path=VALUE"},
		{":call files.read_file {\"path\":\r", "the arguments are not JSON"},
		{":call files.read_file path='x\r", "a quote is not closed"},
		{":call no.such\r", "there is no tool no.such"},
	} {
		p.types(tt.command)
		p.waitFor(tt.sees)
	}
	s.answer("call_tool", errors.New("no such file"))
	p.types(":call files.read_file path=x\r")
	p.waitFor("no such file")
	p.types(":call files.read_file path=" + strings.Repeat("long/", 20))
	p.waitFor("long/long/▏") // the end stays in sight
}

func TestJobsAreStarted(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t).withHistory()
	s.answer("script_search", map[string]any{"scripts": []any{
		map[string]any{"hash": "0123456789abcdef", "name": "other"}, map[string]any{"hash": "fedcba9876543210", "name": "report"},
	}})
	s.answer("lua_describe", map[string]any{"input_schema": map[string]any{"properties": map[string]any{"days": map[string]any{"type": "integer"}}, "required": []any{"days"}}})
	s.answer("lua_execute", map[string]any{"job_id": "job-2"})
	s.answer("job_status", map[string]any{"job_id": "job-2", "status": "running"})
	s.answer("job_journal", map[string]any{"steps": []any{}})
	s.answer("job_logs", map[string]any{"lines": []any{map[string]any{"text": "day 1"}}})
	p := s.open(60, 20)
	p.waitFor("─ Servers 3 ")
	p.types(":run report\r")
	p.waitFor("days is required: add days=VALUE")
	p.types(":run report days=7\r")
	p.waitFor("─ Overview › report ")
	p.waitFor("day 1")
	if !s.wasCalled(`lua_execute {"params":{"days":7},"script_hash":"fedcba9876543210"}`) {
		t.Error("the script was not started with its parameter")
	}
	p.types(":run 0123456789abcdef days=1\r")
	p.waitUntil("the job by its hash", func(string) bool {
		return s.wasCalled(`lua_execute {"params":{"days":1},"script_hash":"0123456789abcdef"}`)
	})
	p.types(":run missing\r")
	p.waitFor("there is no stored script missing")
	p.types(":run\r")
	p.waitFor("which one? for example :run NAME")
}
