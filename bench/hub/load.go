package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/wire"
)

// process is a server that this program started from itself.
type process struct {
	url  string // where it tells what it has spent
	mcp  string // where it is called
	stop func()
}

// start runs the program in a role and waits until it serves.
func start(ctx context.Context, role string, args ...string) (*process, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{"-role", role, "-listen", address}, args...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{url: "http://" + address, mcp: "http://" + address, stop: func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}}
	for ctx.Err() == nil {
		if _, err := p.usage(ctx); err == nil {
			return p, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return p, ctx.Err()
}

// freeAddress is one on which nobody listens just now.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func (p *process) usage(ctx context.Context) (usage, error) { return p.ask(ctx, "/usage") }

func (p *process) ask(ctx context.Context, path string) (u usage, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		return u, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return u, err
	}
	defer answer.Body.Close()
	return u, json.NewDecoder(answer.Body).Decode(&u)
}

// caller is one client with its connection and, in the older era, its session.
type caller struct {
	http   *http.Client
	url    string
	header http.Header
	body   string
}

const (
	initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`
	callBegin  = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello","n":9007199254740993}`
	modernMeta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
)

func newCaller(ctx context.Context, url, era string) (*caller, error) {
	c := &caller{
		http:   &http.Client{Transport: &http.Transport{}},
		url:    url,
		header: http.Header{"Content-Type": {wire.ContentJSON}, "Accept": {wire.ContentJSON + ", " + wire.ContentEvent}},
		body:   callBegin + "}}",
	}
	if era == "modern" {
		c.body = callBegin + modernMeta + "}}"
		c.header.Set(wire.HeaderRevision, wire.NewestModern)
		c.header.Set(wire.HeaderMethod, wire.MethodToolsCall)
		c.header.Set(wire.HeaderName, "echo")
		return c, nil
	}
	answer, _, err := c.post(ctx, initialize)
	if err != nil {
		return nil, err
	}
	c.header.Set(wire.HeaderSession, answer.Get(wire.HeaderSession))
	c.header.Set(wire.HeaderRevision, wire.NewestLegacy)
	return c, nil
}

func (c *caller) post(ctx context.Context, body string) (http.Header, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	r.Header = c.header
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", answer.StatusCode, text)
	}
	return answer.Header, text, err
}

func (c *caller) call(ctx context.Context) error {
	_, text, err := c.post(ctx, c.body)
	if err == nil && !strings.Contains(string(text), "9007199254740993") {
		err = fmt.Errorf("wrong answer: %s", text)
	}
	return err
}

// call lets clients call for a while and returns how long each call took.
func call(ctx context.Context, url, era string, clients int, length time.Duration) ([]time.Duration, error) {
	callers := make([]*caller, clients)
	for i := range callers {
		var err error
		if callers[i], err = newCaller(ctx, url, era); err != nil {
			return nil, err
		}
		defer callers[i].http.CloseIdleConnections()
	}
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		all   []time.Duration
		wrong error
	)
	end := time.Now().Add(length)
	for _, c := range callers {
		group.Go(func() {
			times, err := c.until(ctx, end)
			mu.Lock()
			defer mu.Unlock()
			all, wrong = append(all, times...), errors.Join(wrong, err)
		})
	}
	group.Wait()
	slices.Sort(all)
	return all, wrong
}

func (c *caller) until(ctx context.Context, end time.Time) (times []time.Duration, err error) {
	for begin := time.Now(); begin.Before(end); begin = time.Now() {
		if err := c.call(ctx); err != nil {
			return times, err
		}
		times = append(times, time.Since(begin))
	}
	return times, nil
}

// quantile is how long q of a hundred calls took at most.
func quantile(sorted []time.Duration, q int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)-1)*q/100].Round(10 * time.Microsecond)
}

// weighed is how many sessions are opened to be weighed.
const weighed = 1000

// weighSessions tells what sessions hold: idle ones, and ones with a stream open.
func weighSessions(ctx context.Context, server *process) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	before, err := server.ask(ctx, "/usage?collect")
	if err != nil {
		return err
	}
	var callers []*caller
	for range weighed {
		c, err := newCaller(ctx, server.mcp+"/mcp", "legacy")
		if err != nil {
			return err
		}
		c.http.CloseIdleConnections()
		callers = append(callers, c)
	}
	idle, err := server.ask(ctx, "/usage?collect")
	if err != nil {
		return err
	}
	for _, c := range callers {
		if err := c.listen(ctx); err != nil {
			return err
		}
	}
	open, err := server.ask(ctx, "/usage?collect")
	if err != nil {
		return err
	}
	each := func(u usage) string {
		return fmt.Sprintf("%.1f KB heap and %.1f KB stack", float64(u.Heap-before.Heap)/weighed/1000, float64(u.Stacks-min(u.Stacks, before.Stacks))/weighed/1000)
	}
	_, err = fmt.Printf("\n%d sessions: %s each; with an open stream %s each\n", weighed, each(idle), each(open))
	return err
}

// listen opens the session's stream and leaves it open until ctx is done.
func (c *caller) listen(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return err
	}
	r.Header = c.header.Clone()
	r.Header.Set("Accept", wire.ContentEvent)
	answer, err := c.http.Do(r)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = answer.Body.Close() })
	return nil
}
