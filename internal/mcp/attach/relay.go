package attach

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// Relay connects an MCP client on a pair of pipes with a server. If the server ends, the
// calls that it did not answer fail, and the relay attaches to the next one.
type Relay struct {
	// Find returns the server to attach to. It is called again after the server ended.
	Find func(ctx context.Context) (Server, error)
	Want Want
	// Log is told when the server ended and when another was found.
	Log func(message string)

	attached bool
}

// Attached reports whether Run found a server. Otherwise it has read nothing.
func (r *Relay) Attached() bool { return r.attached }

// Times of a lost connection.
const (
	retryInterval = 100 * time.Millisecond
	firstTries    = 3
	retryTimeout  = 15 * time.Second // after which calls of the client fail at once
)

// relaying is a relay that runs.
type relaying struct {
	*Relay
	*conversation
	lines   chan []byte   // of the client
	ended   chan struct{} // closed when the client's input has ended
	pipe    *pipe         // nil while there is no server
	lost    chan struct{} // closed when pipe has ended
	retries int
}

// Run relays messages until in or ctx ends. It returns an error if there is no server at the
// beginning; nothing was read from in then.
func (r *Relay) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	run := &relaying{Relay: r, conversation: newConversation(out), lines: make(chan []byte), ended: make(chan struct{})}
	err := run.connect(ctx)
	for try := 1; try < firstTries && err != nil && !errors.Is(err, ErrNone); try++ {
		err = run.connect(ctx) // the server may have ended after it was found
	}
	if err != nil {
		return err
	}
	r.attached = true
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go run.read(ctx, in) // a read of a terminal cannot be ended; the process ends soon
	return run.loop(ctx)
}

// read passes on the lines of the client.
func (r *relaying) read(ctx context.Context, in io.Reader) {
	defer close(r.ended)
	reader := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := reader.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			select {
			case r.lines <- line:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// loop handles the client's lines and the end of the connection.
func (r *relaying) loop(ctx context.Context) error {
	retry := time.NewTimer(retryInterval)
	defer retry.Stop()
	for {
		lines, lost := r.lines, r.lost
		if r.pipe == nil {
			lost = nil
			if r.retrying() {
				lines = nil // they wait for the server
			}
		}
		select {
		case <-ctx.Done():
			r.disconnect()
			return nil
		case line := <-lines:
			r.fromClient(ctx, line)
		case <-r.ended:
			return r.finish(ctx)
		case <-lost:
			r.disconnect()
			r.Log("the server ended; waiting for it to return")
			r.retries = 0
			retry.Reset(retryInterval)
		case <-retry.C:
			if r.retry(ctx) {
				retry.Reset(retryInterval)
			}
		}
	}
}

// retrying reports whether the client's calls wait for the server to return.
func (r *relaying) retrying() bool { return r.retries < int(retryTimeout/retryInterval) }

// retry tries to attach again and reports whether to do so once more.
func (r *relaying) retry(ctx context.Context) (again bool) {
	if r.pipe != nil {
		return false
	}
	r.retries++
	return r.connect(ctx) != nil && r.retrying()
}

// connect attaches to a server and repeats what the next one must know.
func (r *relaying) connect(ctx context.Context) error {
	server, err := r.Find(ctx)
	if err != nil {
		return err
	}
	pipe, err := server.open(ctx, r.Want)
	if err != nil {
		return err
	}
	again := r.begin()
	lost := make(chan struct{})
	r.pipe, r.lost = pipe, lost
	go func() {
		defer close(lost)
		for {
			line, err := pipe.in.ReadBytes('\n')
			if line = bytes.TrimSpace(line); len(line) > 0 && r.fromServer(line) != nil {
				return // the client does not read any more
			}
			if err != nil {
				return
			}
		}
	}()
	for _, line := range again {
		r.send(line)
	}
	if len(again) > 0 {
		r.Log("attached to the server again")
		r.announceChanges()
	}
	return nil
}

// send sends a line to the server. If that fails, the end of the pipe is noticed by its
// reader.
func (r *relaying) send(line []byte) {
	_, _ = r.pipe.Write(append(line, '\n'))
}

// fromClient handles one message of the client.
func (r *relaying) fromClient(ctx context.Context, line []byte) {
	m, err := wire.Parse(line)
	if r.pipe == nil && r.connect(ctx) != nil {
		if err == nil && m.IsRequest() {
			r.answer(m.ID, fault.New(fault.Unavailable, "the luanette server is not running").
				WithHint("start it with `luanette serve`; the session continues then"))
		}
		return
	}
	if err == nil {
		if line = r.sent(m, line); line == nil {
			return
		}
	}
	r.send(line) // what cannot be parsed is for the server to refuse
}

// disconnect closes the pipe, and ends what the server can no longer end.
func (r *relaying) disconnect() {
	if r.pipe == nil {
		return
	}
	_ = r.pipe.Close() // it may be closed already
	<-r.lost
	r.pipe = nil
	r.abandon(fault.New(fault.Unavailable, "the luanette server ended during the call, its outcome is unknown").
		WithHint("find out whether it took effect before you repeat it"))
}

// finish waits for the answers to what was asked, after the client's last message. The
// server cancels what is left when the connection ends.
func (r *relaying) finish(ctx context.Context) error {
	if r.pipe == nil {
		return nil
	}
	for r.awaitsAnswers() {
		select {
		case <-r.answered:
			continue
		case <-r.lost:
		case <-ctx.Done():
		}
		break
	}
	r.disconnect()
	return nil
}

// conversation is what a relay must know of the messages that it passes on: which requests
// are open, and what a client of the sessions era agreed with its server, so that it can be
// repeated to the next one.
type conversation struct {
	answered chan struct{} // gets a value when a request of the client was answered

	mu         sync.Mutex
	out        io.Writer
	server     int                // the number of the server, from 1
	open       map[wire.ID]opened // requests of the client
	asked      map[wire.ID]bool   // requests of the server, by the ids that the client sees
	initialize []byte             // accepted; nil for clients of the stateless era
	level      []byte             // the last logging/setLevel
	watched    map[string][]byte  // resources/subscribe by URI
}

// opened is a request of the client that is not answered yet.
type opened struct {
	method string
	line   []byte
}

func newConversation(out io.Writer) *conversation {
	return &conversation{answered: make(chan struct{}, 1), out: out, open: map[wire.ID]opened{}, asked: map[wire.ID]bool{}, watched: map[string][]byte{}}
}

// ownID is the id of a request that the relay repeats; its answer is not for the client.
const ownID = "luanette-attach-"

// begin starts the conversation with the next server and returns what to repeat to it.
func (c *conversation) begin() (again [][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server++
	if c.initialize == nil {
		return nil
	}
	repeat := func(line []byte) {
		id := json.RawMessage(wire.TextID(ownID + strconv.Itoa(len(again))))
		again = append(again, rawjson.Set(slices.Clone(line), "id", id))
	}
	repeat(c.initialize)
	again = append(again, []byte(`{"jsonrpc":"2.0","method":"`+wire.NoteInitialized+`"}`))
	if c.level != nil {
		repeat(c.level)
	}
	for _, uri := range slices.Sorted(maps.Keys(c.watched)) {
		repeat(c.watched[uri])
	}
	return again
}

// sent notes a message of the client and returns the line for the server; nil if it is not
// for this server.
func (c *conversation) sent(m wire.Message, line []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case m.IsRequest():
		c.open[m.ID] = opened{m.Method, line}
	case m.IsResponse():
		if !c.asked[m.ID] {
			return nil // an answer for a server that ended
		}
		delete(c.asked, m.ID)
		return c.restoreID(m.ID, line)
	case m.Method == wire.NoteCancelled:
		delete(c.open, cancelledID(m)) // it is not answered
	}
	return line
}

// cancelledID returns the id of the request that a notification cancels.
func cancelledID(m wire.Message) wire.ID {
	id, _ := rawjson.Get(m.Params, "requestId")
	return wire.ID(id)
}

// fromServer handles one message of the server.
func (c *conversation) fromServer(line []byte) error {
	m, err := wire.Parse(line)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
	case m.IsRequest():
		id := c.clientID(m.ID)
		c.asked[id] = true
		if id != m.ID {
			line = rawjson.Set(line, "id", json.RawMessage(id))
		}
	case m.IsResponse():
		if strings.HasPrefix(string(m.ID), `"`+ownID) {
			return nil
		}
		if m.Error == nil {
			c.accepted(c.open[m.ID])
		}
		delete(c.open, m.ID)
		defer c.noteAnswer()
	case m.Method == wire.NoteCancelled:
		line = c.cancelled(m, line)
	}
	return c.write(line)
}

func (c *conversation) noteAnswer() {
	select {
	case c.answered <- struct{}{}:
	default:
	}
}

// awaitsAnswers reports whether a request of the client will be answered. Subscriptions end
// only with the connection.
func (c *conversation) awaitsAnswers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, request := range c.open {
		if request.method != wire.MethodListen {
			return true
		}
	}
	return false
}

// cancelled notes that the server cancelled a request, of its own or a subscription of the
// client. c.mu is held.
func (c *conversation) cancelled(m wire.Message, line []byte) []byte {
	delete(c.open, cancelledID(m))
	id := c.clientID(cancelledID(m))
	if !c.asked[id] {
		return line
	}
	delete(c.asked, id)
	m.Params = rawjson.Set(slices.Clone(m.Params), "requestId", json.RawMessage(id))
	return m.Append(nil)
}

// accepted notes what a request that succeeded changed. c.mu is held.
func (c *conversation) accepted(request opened) {
	switch request.method {
	case wire.MethodInitialize:
		c.initialize = request.line
	case wire.MethodSetLevel:
		c.level = request.line
	case wire.MethodSubscribe:
		c.watched[uriOf(request.line)] = request.line
	case wire.MethodUnsubscribe:
		delete(c.watched, uriOf(request.line))
	}
}

func uriOf(line []byte) string {
	params, _ := rawjson.Get(line, "params")
	uri, _ := rawjson.GetText(params, "uri")
	return uri
}

// clientID returns the id under which the client sees a request of the server. Servers count
// from 1, so those after the first get ids of their own.
func (c *conversation) clientID(id wire.ID) wire.ID {
	if c.server == 1 {
		return id
	}
	return wire.TextID(fmt.Sprintf("%s%d-%s", ownID, c.server, id))
}

// restoreID is the reverse of clientID.
func (c *conversation) restoreID(id wire.ID, line []byte) []byte {
	text, _ := rawjson.Text(json.RawMessage(id))
	original, changed := strings.CutPrefix(text, fmt.Sprintf("%s%d-", ownID, c.server))
	if !changed {
		return line
	}
	return rawjson.Set(line, "id", json.RawMessage(original))
}

// abandon answers the open requests of the client with an error, and cancels those that the
// server sent.
func (c *conversation) abandon(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(c.open)) {
		answer := wire.Answer(id, nil, why)
		_ = c.write(answer.Append(nil)) // a client that does not read ends the relay anyway
	}
	for _, id := range slices.Sorted(maps.Keys(c.asked)) {
		params := json.RawMessage(`{"requestId":` + string(id) + `,"reason":"the server ended"}`)
		cancelled := wire.Message{Method: wire.NoteCancelled, Params: params}
		_ = c.write(cancelled.Append(nil))
	}
	clear(c.open)
	clear(c.asked)
}

// answer answers a request of the client that reaches no server.
func (c *conversation) answer(id wire.ID, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := wire.Answer(id, nil, why)
	_ = c.write(answer.Append(nil))
}

// announceChanges tells the client to list everything again: the next server may have other
// tools.
func (c *conversation) announceChanges() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, method := range []string{wire.NoteToolsChanged, wire.NoteResourcesChanged, wire.NotePromptsChanged} {
		changed := wire.Message{Method: method}
		_ = c.write(changed.Append(nil))
	}
}

// write writes one message to the client. c.mu is held.
func (c *conversation) write(line []byte) error {
	_, err := c.out.Write(append(line, '\n'))
	return err
}
