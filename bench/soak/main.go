// Command soak runs a real server under load for a while, and fails when its memory,
// goroutines or open files grow:
//
//	soak -minutes 30 bin/luanette
//
// By default 200 clients and 30 upstreams, some of which restart now and then, call
// tools, run Lua and JavaScript, start jobs, chat, and open and close sessions. After the
// first five minutes nothing may grow by more than 10 %.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// options of a run.
type options struct {
	binary             string
	length, warmup     time.Duration
	clients, upstreams int
	rate               int // actions a second, of all clients
}

func main() {
	minutes := flag.Float64("minutes", 30, "how long")
	o := options{}
	flag.IntVar(&o.clients, "clients", 200, "how many clients")
	flag.IntVar(&o.upstreams, "upstreams", 30, "how many upstreams")
	flag.IntVar(&o.rate, "rate", 100, "actions a second, of all clients together")
	flag.DurationVar(&o.warmup, "warmup", 5*time.Minute, "until values are compared")
	flag.Parse()
	if o.length = time.Duration(*minutes * float64(time.Minute)); flag.NArg() != 1 || o.length < o.warmup+2*window {
		fmt.Fprintf(os.Stderr, "usage: soak [flags] BINARY; it takes at least %v\n", o.warmup+2*window)
		os.Exit(2)
	}
	o.binary = flag.Arg(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	s, err := startServers(ctx, o)
	defer s.stop()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.length)
	defer cancel()
	load := newLoad(s, o)
	var all sync.WaitGroup
	for n := range o.clients {
		all.Go(func() { load.client(ctx, n) })
	}
	all.Go(func() { s.restartSome(ctx) })
	readings := watch(ctx, s.url, load.report)
	cancel()
	all.Wait()
	fmt.Println(load.report())
	if err := load.check(); err != nil {
		return err
	}
	return compare(readings, o.warmup)
}

// load is what the clients do, and how it went.
type load struct {
	url   string
	pause time.Duration // of one client between two actions
	ups   int

	mu           sync.Mutex
	done, failed map[string]int
	reasons      map[string]string // the last failure of each action
}

func newLoad(s *servers, o options) *load {
	return &load{
		url: s.url, ups: o.upstreams, pause: time.Duration(o.clients) * time.Second / time.Duration(o.rate),
		done: map[string]int{}, failed: map[string]int{}, reasons: map[string]string{},
	}
}

// action is one thing that clients do, and how often.
type action struct {
	name   string
	weight int
	do     func(l *load, ctx context.Context, n int) error
}

var actions = []action{
	{"call", 60, (*load).callTool},
	{"lua", 10, (*load).lua},
	{"javascript", 5, (*load).javaScript},
	{"job", 5, (*load).job},
	{"chat", 10, (*load).chat},
	{"session", 10, (*load).session},
}

// client acts until ctx ends. Each has one connection, so that their number is always the
// same.
func (l *load) client(ctx context.Context, n int) {
	transport := &http.Transport{MaxConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	ctx = context.WithValue(ctx, clientKey{}, &http.Client{Timeout: 2 * time.Minute, Transport: transport})
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(float64(l.pause) * (0.5 + rand.Float64()))):
		}
		a := pick()
		err := a.do(l, ctx, n)
		if ctx.Err() != nil {
			return
		}
		l.note(a.name, err)
	}
}

// clientKey is the context key of a client's http.Client.
type clientKey struct{}

func pick() action {
	at := rand.IntN(100)
	for _, a := range actions {
		if at -= a.weight; at < 0 {
			return a
		}
	}
	return actions[0]
}

func (l *load) note(name string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done[name]++
	if err != nil {
		l.failed[name]++
		l.reasons[name] = err.Error()
	}
}

// report says what was done so far.
func (l *load) report() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var text strings.Builder
	for _, a := range actions {
		fmt.Fprintf(&text, "%s %d (%d failed) ", a.name, l.done[a.name], l.failed[a.name])
	}
	return text.String()
}

// check fails if more than a twentieth of anything failed: upstreams that restart break
// some calls.
func (l *load) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, a := range actions {
		if l.done[a.name] == 0 || l.failed[a.name]*20 > l.done[a.name] {
			errs = append(errs, fmt.Errorf("%s: %d of %d failed: %s", a.name, l.failed[a.name], l.done[a.name], l.reasons[a.name]))
		}
	}
	return errors.Join(errs...)
}

func (l *load) upstream() string { return fmt.Sprintf("up%d", rand.IntN(l.ups)) }

func (l *load) callTool(ctx context.Context, n int) error {
	_, err := l.own(ctx, l.upstream()+".echo", fmt.Sprintf(`{"text":"hello from %d"}`, n))
	return err
}

func (l *load) lua(ctx context.Context, _ int) error {
	code := fmt.Sprintf("local a = mcp.%s.echo{text='a'} local b = mcp.%s.echo{text='b'} local t = {} for i = 1, 1000 do t[i] = i .. 'x' end return #t", l.upstream(), l.upstream())
	_, err := l.own(ctx, "lua_eval", fmt.Sprintf(`{"code":%q}`, code))
	return err
}

func (l *load) javaScript(ctx context.Context, _ int) error {
	code := fmt.Sprintf("return await mcp.%s.echo({text: 'x'.repeat(100)})", l.upstream())
	_, err := l.own(ctx, "execute_code", fmt.Sprintf(`{"code":%q}`, code))
	return err
}

var (
	hash  = regexp.MustCompile(`[0-9a-f]{64}`)
	jobID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}`)
)

func (l *load) job(ctx context.Context, _ int) error {
	stored, err := l.own(ctx, "script_store", fmt.Sprintf(`{"content":"function main() return mcp.up%d.echo{text='job'} end"}`, rand.IntN(min(l.ups, 5))))
	if err != nil {
		return err
	}
	begun, err := l.own(ctx, "lua_execute", `{"script_hash":"`+hash.FindString(stored)+`"}`)
	if err != nil {
		return err
	}
	_, err = l.own(ctx, "job_poll", `{"job_ids":["`+jobID.FindString(begun)+`"],"timeout_ms":60000}`)
	return err
}

func (l *load) chat(ctx context.Context, n int) error {
	text, err := l.post(ctx, "/api/v1/chat/stream", nil, fmt.Sprintf(`{"client_id":"soak","user_id":"user%d","message":"hello"}`, n))
	if err == nil && !strings.Contains(text, `"type":"complete"`) {
		return errors.New(text)
	}
	return err
}

// session opens a session, lists the tools and ends it.
func (l *load) session(ctx context.Context, _ int) error {
	header := http.Header{}
	answer, err := l.send(ctx, http.MethodPost, "/mcp", header, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}`)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	header.Set("Mcp-Session-Id", answer.Header.Get("Mcp-Session-Id"))
	if _, err := l.post(ctx, "/mcp", header, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		return err
	}
	if _, err := l.post(ctx, "/mcp", header, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); err != nil {
		return err
	}
	answer, err = l.send(ctx, http.MethodDelete, "/mcp", header, "")
	if err == nil {
		_ = answer.Body.Close()
	}
	return err
}

// own calls a tool through call_tool, by the stateless revision.
func (l *load) own(ctx context.Context, name, args string) (string, error) {
	header := http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"call_tool"}}
	text, err := l.post(ctx, "/mcp", header, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool","arguments":{"name":"`+name+`","arguments":`+args+`},`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"soak","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if err == nil && (strings.Contains(text, `"isError":true`) || !strings.Contains(text, `"result"`)) {
		return text, errors.New(text)
	}
	return text, err
}

func (l *load) post(ctx context.Context, path string, header http.Header, body string) (string, error) {
	answer, err := l.send(ctx, http.MethodPost, path, header, body)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= http.StatusBadRequest {
		return "", fmt.Errorf("%s: %s", answer.Status, text)
	}
	return string(text), err
}

func (l *load) send(ctx context.Context, method, path string, header http.Header, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, l.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	return ctx.Value(clientKey{}).(*http.Client).Do(r)
}
