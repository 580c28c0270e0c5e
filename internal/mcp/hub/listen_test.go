package hub_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

func (c *client) listen(id, filter string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{"notifications":` + filter + `,"_meta":{` + c.modernMeta() + `}}}`
}

func TestListenSendsRequestedNotifications(t *testing.T) {
	t.Parallel()
	c := new(changes)
	opts := options(t, tools{})
	opts.Changes = c.watch
	_, url := serve(t, opts)
	cl := &client{t: t, url: url + "/mcp", modern: true}
	stream := events(t, cl.post(t.Context(), cl.listen("7", `{"promptsListChanged":true,"resourceSubscriptions":["test://a","test://a"],"unreceivedOf":true}`)))
	if ack := next(t, stream); ack.Method != wire.NoteListenAcknowledged ||
		string(ack.Params) != `{"notifications":{"promptsListChanged":true,"resourceSubscriptions":["test://a"]},"_meta":{"io.modelcontextprotocol/subscriptionId":7}}` {
		t.Errorf("acknowledged %s %s", ack.Method, ack.Params)
	}
	c.tell(wire.NoteResourceUpdated, json.RawMessage(`{"uri":"test://b"}`))
	c.tell(wire.NoteMessage, json.RawMessage(`{"level":"error","data":1}`))
	c.tell(wire.NoteResourceUpdated, json.RawMessage(`{"uri":"test://a","_meta":{"x":1}}`))
	if m := next(t, stream); m.Method != wire.NoteResourceUpdated ||
		string(m.Params) != `{"uri":"test://a","_meta":{"x":1,"io.modelcontextprotocol/subscriptionId":7}}` {
		t.Errorf("received %s %s", m.Method, m.Params)
	}
}

// removable is an upstream that can be removed.
type removable struct {
	upstreams
	removed atomic.Bool
}

func (r *removable) Has(string) bool { return !r.removed.Load() }

// TestListenEndsWithItsUpstream checks that the stream of an upstream that was removed ends,
// although nobody asks for the upstream any more.
func TestListenEndsWithItsUpstream(t *testing.T) {
	t.Parallel()
	opts := options(t, tools{})
	up := &removable{upstreams: upstreams{"up": &scripted{}}}
	opts.Upstreams, opts.Limits.Idle = up, 20*time.Millisecond
	_, url := serve(t, opts)
	cl := &client{t: t, url: url + "/mcp/up", modern: true}
	stream := events(t, cl.post(t.Context(), cl.listen("7", `{"toolsListChanged":true}`)))
	if ack := next(t, stream); ack.Method != wire.NoteListenAcknowledged {
		t.Fatalf("received %s %s", ack.Method, ack.Params)
	}
	up.removed.Store(true)
	if m := next(t, stream); !strings.Contains(string(m.Result), "subscriptionId") {
		t.Errorf("received %s %s %v", m.Method, m.Result, m.Error)
	}
}

func TestListenNeedsAFilterAndAStream(t *testing.T) {
	t.Parallel()
	_, url := serve(t, options(t, tools{}))
	c := &client{t: t, url: url + "/mcp", modern: true}
	if m := answer(t, c.post(t.Context(), c.listen("1", "null"))); m.Error == nil || m.Error.Code != wire.CodeInvalidParams {
		t.Errorf("no filter: %v", m.Error)
	}
	r := c.request(t.Context(), http.MethodPost, c.listen("2", "{}"))
	r.Header.Set("Accept", "application/json")
	response, err := httpjsontest.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if m := answer(t, response); m.Error == nil || m.Error.Code != wire.CodeInvalidRequest {
		t.Errorf("no stream: %v", m.Error)
	}
}

// Changes that are announced together become one notification, and only real changes are
// passed on.
func TestOnlyRealChangesAreNotified(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := new(changes)
		source := newSwitch(tools{"echo": echo})
		h := hub.New(hub.Options{Name: "t", Version: "1", Tools: source, Changes: c.watch})
		in, say := io.Pipe()
		hear, out := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- h.ServeStdio(t.Context(), in, out); out.Close() }()
		received := make(chan string, 100)
		go func() {
			defer close(received)
			buf := make([]byte, 1<<16)
			for {
				n, err := hear.Read(buf)
				if err != nil {
					return
				}
				received <- string(buf[:n])
			}
		}()
		cl := &client{t: t, modern: true}
		io.WriteString(say, cl.listen("1", `{"toolsListChanged":true}`)+"\n")
		if ack := <-received; !strings.Contains(ack, "acknowledged") {
			t.Fatalf("first came %s", ack)
		}
		for range 4 {
			c.tell(wire.NoteToolsChanged, nil) // nothing changed
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for i := range 4 {
			source.set(strings.Repeat("x", i+1), echo)
			c.tell(wire.NoteToolsChanged, nil)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		say.Close()
		if err := <-ended; err != nil {
			t.Errorf("stdio: %v", err)
		}
		var rest []string
		for line := range received {
			if strings.Contains(line, wire.NoteToolsChanged) {
				rest = append(rest, line)
			}
		}
		if len(rest) != 1 {
			t.Errorf("notified %d times of one change: %v", len(rest), rest)
		}
		h.Close(t.Context())
	})
}

func TestLegacySessionIsNotifiedOnItsStream(t *testing.T) {
	t.Parallel()
	c := new(changes)
	opts := options(t, tools{})
	opts.Changes = c.watch
	_, url := serve(t, opts)
	cl := &client{t: t, url: url + "/mcp"}
	cl.initialize(wire.NewestLegacy)
	cl.post(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"test://a"}}`).Body.Close()
	c.tell(wire.NoteResourceUpdated, json.RawMessage(`{"uri":"test://a"}`)) // before the client reads
	open := func() *sse.Reader {
		r, err := httpjsontest.Client.Do(cl.request(t.Context(), http.MethodGet, ""))
		if err != nil {
			t.Fatal(err)
		}
		return events(t, r)
	}
	first := open()
	if m := next(t, first); m.Method != wire.NoteResourceUpdated {
		t.Errorf("the stored notification is %s", m.Method)
	}
	second := open() // takes over
	for {
		if _, err := first.Next(); err != nil {
			break
		}
	}
	c.tell(wire.NoteResourceUpdated, json.RawMessage(`{"uri":"test://a"}`))
	if m := next(t, second); m.Method != wire.NoteResourceUpdated {
		t.Errorf("on the new connection: %s", m.Method)
	}
	cl.post(t.Context(), `{"jsonrpc":"2.0","id":2,"method":"resources/unsubscribe","params":{"uri":"test://a"}}`).Body.Close()
	c.tell(wire.NoteResourceUpdated, json.RawMessage(`{"uri":"test://a"}`))
	c.tell(wire.NoteElicitationComplete, json.RawMessage(`{"elicitationId":"e"}`))
	if m := next(t, second); m.Method != wire.NoteElicitationComplete {
		t.Errorf("after unsubscribing: %s", m.Method)
	}
}
