// Package calls is shared by the benchmarks of servers: clients that call tools, an
// upstream with an echo tool, and the configuration of policy, pins and audit log.
package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/access/owner"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// The eras of the protocol that a client may use.
const (
	Legacy = "legacy" // with sessions
	Modern = "modern" // stateless
)

// Caller is one client with its connection and, in the sessions era, its session.
type Caller struct {
	HTTP   *http.Client
	url    string
	header http.Header
	body   string
}

const (
	initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`
	echoArgs   = `{"message":"hello","n":9007199254740993}`
	modernMeta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
)

func body(tool, args, meta string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s%s}}`, tool, args, meta)
}

// New connects a client of an era to url. It calls an echo tool of that name.
func New(ctx context.Context, url, era, tool string) (*Caller, error) {
	c := &Caller{
		HTTP:   &http.Client{Transport: &http.Transport{}},
		url:    url,
		header: http.Header{"Content-Type": {wire.ContentJSON}, "Accept": {wire.ContentJSON + ", " + wire.ContentEvent}},
		body:   body(tool, echoArgs, ""),
	}
	if era == Modern {
		c.body = body(tool, echoArgs, modernMeta)
		c.header.Set(wire.HeaderRevision, wire.NewestModern)
		c.header.Set(wire.HeaderMethod, wire.MethodToolsCall)
		c.header.Set(wire.HeaderName, tool)
		return c, nil
	}
	answer, _, err := c.post(ctx, c.header, initialize)
	if err != nil {
		return nil, err
	}
	c.header.Set(wire.HeaderSession, answer.Get(wire.HeaderSession))
	c.header.Set(wire.HeaderRevision, wire.NewestLegacy)
	return c, nil
}

func (c *Caller) post(ctx context.Context, header http.Header, body string) (http.Header, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	r.Header = header
	answer, err := c.HTTP.Do(r)
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

// Call calls the echo tool.
func (c *Caller) Call(ctx context.Context) error {
	_, text, err := c.post(ctx, c.header, c.body)
	if err == nil && !strings.Contains(string(text), "9007199254740993") {
		err = fmt.Errorf("wrong answer: %s", text)
	}
	return err
}

// Ask calls another tool, in the stateless era, and returns the whole answer.
func (c *Caller) Ask(ctx context.Context, tool, args string) ([]byte, error) {
	header := c.header.Clone()
	header.Set(wire.HeaderName, tool)
	_, text, err := c.post(ctx, header, body(tool, args, modernMeta))
	return text, err
}

// Listen opens the session's stream and leaves it open until ctx is done.
func (c *Caller) Listen(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return err
	}
	r.Header = c.header.Clone()
	r.Header.Set("Accept", wire.ContentEvent)
	answer, err := c.HTTP.Do(r)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = answer.Body.Close() })
	return nil
}

// Callers are clients that call at the same time.
type Callers []*Caller

// Connect connects clients as New does. The caller closes them, also after an error.
func Connect(ctx context.Context, url, era, tool string, clients int) (all Callers, err error) {
	for range clients {
		c, err := New(ctx, url, era, tool)
		if err != nil {
			return all, err
		}
		all = append(all, c)
	}
	return all, nil
}

// Call calls for a while and returns how long each call took, the quickest first.
func (all Callers) Call(ctx context.Context, length time.Duration) ([]time.Duration, error) {
	return During(length, len(all), func(i int) error { return all[i].Call(ctx) })
}

// Close closes the connections.
func (all Callers) Close() {
	for _, c := range all {
		c.HTTP.CloseIdleConnections()
	}
}

// During has clients repeat something for a while and returns how long each time took,
// the quickest first.
func During(length time.Duration, clients int, do func(client int) error) ([]time.Duration, error) {
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		all   []time.Duration
		wrong error
	)
	end := time.Now().Add(length)
	for i := range clients {
		group.Go(func() {
			times, err := until(end, func() error { return do(i) })
			mu.Lock()
			defer mu.Unlock()
			all, wrong = append(all, times...), errors.Join(wrong, err)
		})
	}
	group.Wait()
	slices.Sort(all)
	return all, wrong
}

func until(end time.Time, do func() error) (times []time.Duration, err error) {
	for begin := time.Now(); begin.Before(end); begin = time.Now() {
		if err := do(); err != nil {
			return times, err
		}
		times = append(times, time.Since(begin))
	}
	return times, nil
}

// Quantile is the time within which q percent were done.
func Quantile(sorted []time.Duration, q int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)-1)*q/100].Round(10 * time.Microsecond)
}

// FreeAddress is an address on which no program listens at the moment.
func FreeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// Checks are settings of policy, pins, labels and audit log, all "on" or all "off". The
// empty key is the default configuration.
var Checks = map[string]string{
	"off": "[audit]\nenabled = false\n",
	"on": `trust = "pin"
[[policy]]
key = "guest*"
tool = "*"
do = "read_only"
[[policy]]
tool = "*.erase"
do = "deny"
[accepts]
http = ["secret"]
[upstreams.labelled]
url = "http://127.0.0.1:1/mcp"
labels = ["secret"]
[audit]
enabled = true
`,
}

// Approve approves the tools of an upstream that await review at the server, as soon as
// there are some, as the owner of its data folder.
func Approve(ctx context.Context, url, data, upstream string) error {
	own, err := owner.Read(data)
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		body := strings.NewReader(fmt.Sprintf(`{"upstream":%q,"flagged":true}`, upstream))
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/v1/pins/approve", body)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+own.Reveal())
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		if try > 100 {
			return fmt.Errorf("no tools of %s await review", upstream)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Counts is a flag: how many of something there are, one time after the other.
type Counts []int

func (c *Counts) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(*c), " ", ","), "[]")
}

// Set reads numbers such as 1,16,64.
func (c *Counts) Set(list string) error {
	*c = nil
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return errors.New("want numbers above 0, such as 1,16,64")
		}
		*c = append(*c, n)
	}
	return nil
}

// Echo is a server of a tool that returns its arguments, in both eras.
func Echo() *hub.Hub {
	return hub.New(hub.Options{Name: "echo", Version: "1", Tools: &echo{[]tool.Info{
		{Ref: tool.Ref{Name: "echo"}, Description: "Returns its arguments", Input: json.RawMessage(`{"type":"object"}`)},
	}}})
}

type echo struct{ infos []tool.Info }

func (e *echo) Tools(context.Context) ([]tool.Info, error) { return e.infos, nil }

func (e *echo) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	return tool.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"hello"}],"structuredContent":` + string(call.Args) + `}`)}, nil
}
