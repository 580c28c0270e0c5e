package script

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/scripting/js/jstest"
	"github.com/luanette/luanette/internal/scripting/script/scripttest"
)

// newRunner returns a runner with a few in-process tools.
func newRunner(t testing.TB, change func(*Options)) *Runner {
	t.Helper()
	o := Options{
		Tools:      calcTools{},
		Events:     event.New(event.BusOptions{}),
		Log:        slog.New(slog.DiscardHandler),
		Tracer:     tracenoop.NewTracerProvider().Tracer(""),
		Meter:      noop.NewMeterProvider().Meter(""),
		Clock:      clock.Real(),
		TempDir:    t.TempDir(),
		Random:     func() uint64 { return 7 },
		JavaScript: javaScript(),
	}
	if change != nil {
		change(&o)
	}
	return NewRunner(o)
}

// Stand-ins that tests of other packages use, too.
type (
	calcTools       = scripttest.Calc
	toolbox         = scripttest.Toolbox
	handler         = scripttest.Handler
	upstreamManager = scripttest.Upstreams
)

// javaScript is one engine for all tests: compiling it is the expensive part.
var javaScript = sync.OnceValue(func() *JavaScriptEngine {
	e, err := NewJavaScript(JavaScriptOptions{CacheDir: jstest.Cache()})
	if err != nil {
		panic(err)
	}
	return e
})

func TestValues(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	for _, c := range []struct{ code, want string }{
		{"return 2 + 2", "4"},
		{"2 + 2", "4"},
		{" return\n3", "3"},
		{"do_it == nil", "true"},
		{"doIt == nil", "true"},
		{"if2 == nil", "true"},
		{"function() end ~= nil", "true"},
		{"do local x = 1 end", "null"},
		{"local x = 1", "null"},
		{"return 1, nil, 'a'", `[1,null,"a"]`},
		{"return {a = 1, b = {1, 2}}", `{"a":1,"b":[1,2]}`},
		{"return mcp.calc.double{n = 21}.n", "42"},
		{"return mcp.calc.double{n = 1}", `{"list":[],"n":2}`},
		{"return mcp.nowhere", "null"},
		{"return mcp.calc.nothing == nil", "true"},
		{"return pcall(mcp.calc.fail, {})", `[false,{"code":"upstream_error","message":"calc.fail: internal_error: the abacus is broken"}]`},
		{"return json.decode('{\"a\":[],\"b\":null,\"c\":9007199254740993}')", `{"a":[],"b":null,"c":9007199254740993}`},
		{"return json.encode({1, 2, {x = json.null}})", `"[1,2,{\"x\":null}]"`},
		{"return json.encode(json.array{})", `"[]"`},
		{"return table.is_array{1,2}, table.is_array{a=1}", "[true,false]"},
		{"return repr{b = {1, 2}, a = 'x'}", `"{\n  a = \"x\",\n  b = {1, 2}\n}"`},
		{"return reduce(map(filter({1,2,3,4}, function(x) return x % 2 == 0 end), function(x) return x * x end), function(a, b) return a + b end)", "20"},
		{"return type(os.time()), os.date('!%Y', 0), os.getenv('HOME'), os.execute", `["number","1970",null,null]`},
		{"return dofile, loadfile, package, debug, io.popen, os.remove", "[null,null,null,null,null,null]"},
		{"return require('json') == json, require 'midi' == midi, require('io') == io, require('string') == string, (pcall(require, 'mcp.fs'))", "[true,true,true,true,false]"},
		{"local p = temp.path('a.txt') local f = io.open(p, 'w') f:write('one\\n', 2) f:close() local n = 0 for l in io.lines(p) do n = n + #l end return n, temp.list()[1]", `[4,"a.txt"]`},
		{"return io.open('/etc/passwd') == nil", "true"},
		{"local t = clock.now() clock.advance(1000) return clock.now() - t >= 1000", "true"},
	} {
		got, err := r.Run(t.Context(), Request{Source: c.code})
		if err != nil {
			t.Errorf("%s\n%v", c.code, err)
		} else if string(got.Result) != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.code, got.Result, c.want)
		}
	}
}

func TestOutputIsKeptWhenAScriptFails(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	got, err := r.Run(t.Context(), Request{Source: "print('a', {1})\neprint('b')\nlog.warn('c')\nerror('d')"})
	if err == nil {
		t.Fatal("no error")
	}
	var said []string
	for _, line := range got.Output {
		said = append(said, line.Stream+line.Level+":"+line.Text)
	}
	if strings.Join(said, "|") != "stdout:a\t{1}|stderr:b|logwarn:c" {
		t.Errorf("output = %q", said)
	}
}

func TestABusyScriptStops(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	_, err := r.Run(t.Context(), Request{Source: "while true do pcall(function() while true do end end) end", Limits: Limits{Time: 20 * time.Millisecond}})
	var failure *Error
	if !errors.As(err, &failure) || failure.Kind != Timeout {
		t.Errorf("err = %v", err)
	}
	_, err = r.Run(t.Context(), Request{Source: "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end", Limits: Limits{Memory: 8 << 20}})
	if !errors.As(err, &failure) || failure.Kind != OutOfMemory {
		t.Errorf("err = %v", err)
	}
}
