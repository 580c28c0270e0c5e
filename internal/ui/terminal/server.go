package terminal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/base/sse"
)

// revision is the MCP revision without sessions, so that the server may restart between
// two calls.
const revision = "2026-07-28"

// server is a client of a running server: tools at /mcp, events at /api/v1/events.
type server struct {
	base    *url.URL
	key     secret.Text
	version string // of this program
	client  *http.Client
}

func newServer(o Options) (*server, error) {
	address := o.Server
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fault.New(fault.InvalidParams, "%q is not the address of a server", address).WithHint("for example http://127.0.0.1:8081")
	}
	base.Path, base.RawQuery, base.Fragment = strings.TrimSuffix(strings.TrimSuffix(base.Path, "/"), "/mcp"), "", ""
	client, err := certpool.Client(o.CAFile)
	if err != nil {
		return nil, err
	}
	return &server{base: base, key: o.Key, version: o.Version, client: client}, nil
}

// address is the server's address without a password.
func (s *server) address() plain { return clean(s.base.Redacted()) }

// do sends a request. A status of 400 or above is an error.
func (s *server) do(r *http.Request) (*http.Response, error) {
	if !s.key.IsZero() {
		r.Header.Set("Authorization", "Bearer "+s.key.Reveal())
	}
	response, err := s.client.Do(r)
	if err != nil {
		var about *url.Error
		if errors.As(err, &about) {
			err = about.Err // the message below has the address
		}
		return nil, fault.Wrap(fault.Unavailable, err, "reach %s", s.base.Redacted()).
			WithHint("%s", cmp.Or(certpool.Hint(err), "start it with `luanette serve`, or give the address of a running one: --server URL"))
	}
	if response.StatusCode >= http.StatusBadRequest {
		defer func() { _ = response.Body.Close() }()
		return nil, statusError(response)
	}
	return response, nil
}

// statusError converts an error response.
func statusError(response *http.Response) error {
	raw, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10)) // without a body the status remains
	var body struct{ Message, Hint string }
	text := "the server answered " + response.Status
	if json.Unmarshal(raw, &body) == nil && body.Message != "" {
		text = body.Message
	}
	switch response.StatusCode {
	case http.StatusUnauthorized:
		return fault.New(fault.NeedsAuth, "the server requires a key").WithHint("give one with --key, or in LUANETTE_KEY")
	case http.StatusNotFound:
		return fault.New(fault.NotFound, "%s", text)
	case http.StatusForbidden:
		return fault.New(fault.Denied, "%s", text).WithHint("%s", cmp.Or(body.Hint, "give another key with --key, or in LUANETTE_KEY"))
	}
	if response.StatusCode < http.StatusInternalServerError {
		return fault.New(fault.InvalidParams, "%s", text).WithHint("%s", body.Hint)
	}
	return fault.New(fault.Unavailable, "%s", text).WithHint("%s", body.Hint)
}

// ignoreMissing ignores that a route does not exist or that the key may not use it.
func ignoreMissing(err error) error {
	switch fault.CodeOf(err) {
	case fault.NotFound, fault.Denied:
		return nil
	}
	return err
}

// get requests a path of the server's HTTP API.
func (s *server) get(ctx context.Context, path string, into any) error {
	return s.request(ctx, http.MethodGet, path, nil, into)
}

// request sends a request to the server's HTTP API, with a JSON body unless it is nil.
func (s *server) request(ctx context.Context, method, path string, body, into any) error {
	at, query, _ := strings.Cut(path, "?")
	address := s.base.JoinPath(at)
	address.RawQuery = query
	var content io.Reader = http.NoBody
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return fault.Wrap(fault.Internal, err, "request %s", path)
		}
		content = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, address.String(), content)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "request %s", path)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := s.do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	return decodeBody(response.Body, path, into)
}

// decodeBody decodes a response, unless into is nil.
func decodeBody(from io.Reader, path string, into any) error {
	raw, err := io.ReadAll(io.LimitReader(from, sse.MaxEvent))
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "read the response of %s", path)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fault.Wrap(fault.Upstream, err, "read the response of %s", path)
	}
	return nil
}

// call calls a tool and decodes its result into into, unless that is nil.
func (s *server) call(ctx context.Context, name string, args, into any) error {
	result, err := s.result(ctx, name, args)
	if err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(result.StructuredContent, into); err != nil {
		return fault.Wrap(fault.Upstream, err, "read the response of %s", name)
	}
	return nil
}

// toolResult is the result of a tool.
type toolResult struct {
	IsError           bool
	StructuredContent json.RawMessage
	Content           []struct{ Type, Text, MimeType string }
}

// result calls a tool. A tool error is an error.
func (s *server) result(ctx context.Context, name string, args any) (result toolResult, err error) {
	if args == nil {
		args = struct{}{}
	}
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": name, "arguments": args, "_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion":    revision,
			"io.modelcontextprotocol/clientInfo":         map[string]string{"name": "luanette-hud", "version": s.version},
			"io.modelcontextprotocol/clientCapabilities": struct{}{},
			"luanette/full": true,
		}},
	})
	if err != nil {
		return result, fault.Wrap(fault.Internal, err, "encode a call of %s", name)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base.JoinPath("mcp").String(), bytes.NewReader(body))
	if err != nil {
		return result, fault.Wrap(fault.Internal, err, "encode a call of %s", name)
	}
	for header, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": revision, "Mcp-Method": "tools/call", "Mcp-Name": name,
	} {
		r.Header.Set(header, value)
	}
	response, err := s.do(r)
	if err != nil {
		return result, err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := responseMessage(response)
	if err != nil {
		return result, fault.Wrap(fault.Unavailable, err, "read the response of %s", name)
	}
	return decodeResult(name, raw)
}

// responseMessage returns the JSON-RPC response; it skips notifications.
func responseMessage(response *http.Response) ([]byte, error) {
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		return io.ReadAll(io.LimitReader(response.Body, sse.MaxEvent))
	}
	for events := sse.NewReader(response.Body, 0); ; {
		e, err := events.Next()
		if err != nil {
			return nil, err
		}
		if _, isResponse := rawjson.Get(e.Data, "id"); isResponse {
			return e.Data, nil
		}
	}
}

// decodeResult decodes a tool's result.
func decodeResult(name string, raw []byte) (toolResult, error) {
	var response struct {
		Error  *struct{ Message string }
		Result toolResult
	}
	if err := json.Unmarshal(raw, &response); err != nil {
		return toolResult{}, fault.Wrap(fault.Upstream, err, "read the response of %s", name)
	}
	switch result := response.Result; {
	case response.Error != nil:
		return result, fault.New(fault.Upstream, "%s", response.Error.Message)
	case result.IsError && len(result.Content) > 0:
		return result, fault.New(fault.Upstream, "%s", result.Content[0].Text)
	case result.IsError:
		return result, fault.New(fault.Upstream, "%s failed", name)
	default:
		return result, nil
	}
}

// events opens the event stream after the event with an id, or with all buffered
// events for "all".
func (s *server) events(ctx context.Context, after string, follow bool) (io.ReadCloser, error) {
	at := s.base.JoinPath("api/v1/events")
	at.RawQuery = "after=" + url.QueryEscape(after)
	if !follow {
		at.RawQuery += "&follow=false"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "request events")
	}
	r.Header.Set("Accept", "text/event-stream")
	response, err := s.do(r)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// list is something that is loaded from the server as a whole.
type list int

const (
	serverList list = iota
	jobList
	approvalList
	nodeList
	settingList
	callReport
	toolList
	traceList
	listCount
)

// lists is a set of them.
type lists [listCount]bool

func setOf(members ...list) (s lists) {
	for _, l := range members {
		s[l] = true
	}
	return s
}

func (s *lists) add(other lists) {
	for l, in := range other {
		s[l] = s[l] || in
	}
}

// meets reports whether two sets have a member in common.
func (s lists) meets(other lists) bool {
	for l := range s {
		if s[l] && other[l] {
			return true
		}
	}
	return false
}

// always are the lists that are loaded on every page. The others are loaded while a page
// shows them.
var always = setOf(serverList, jobList, approvalList, nodeList, settingList, callReport)

// allLists are all of them.
var allLists = setOf(serverList, jobList, approvalList, nodeList, settingList, callReport, toolList, traceList)

// pauses are the ticks between two loads of lists that are large and change with each
// call.
var pauses = map[list]int{callReport: 10, traceList: 4}

// changedLists returns the lists that events of a type change.
func changedLists(kind plain) lists {
	family, _, _ := strings.Cut(string(kind), ".")
	switch family {
	case "upstream":
		if kind == "upstream.stderr" || kind == "upstream.garbage" {
			return lists{}
		}
		return setOf(serverList, toolList)
	case "catalog":
		return setOf(toolList)
	case "job":
		return setOf(jobList, traceList)
	case "approval":
		return setOf(approvalList, jobList)
	case "tool", "pin": // held, changed, flagged
		return setOf(approvalList)
	case "node":
		return setOf(nodeList)
	case "config":
		return setOf(settingList)
	}
	return lists{}
}

// store puts what was loaded into the state.
type store func(*state)

// loaders load each list.
var loaders = [listCount]func(context.Context, *server, time.Time) (store, error){
	serverList:   loadServers,
	jobList:      loadJobs,
	approvalList: loadApprovals,
	nodeList:     loadNodes,
	settingList:  loadSettings,
	callReport:   loadCallReport,
	toolList:     loadTools,
	traceList:    loadTraces,
}

// loaded is a list that was loaded.
type loaded struct {
	list  list
	store store
	err   error
}

// loading is which lists are outdated and which are being loaded.
type loading struct {
	stale, running lists
	pause          [listCount]int // ticks until a list may be loaded again
}

// tick counts the pauses down.
func (l *loading) tick() {
	for i := range l.pause {
		l.pause[i] = max(l.pause[i]-1, 0)
	}
}

// start returns the outdated lists to load now, and marks them as being loaded.
func (l *loading) start(wanted lists) (now lists) {
	for i := range l.stale {
		if l.stale[i] && wanted[i] && !l.running[i] && l.pause[i] == 0 {
			l.stale[i], l.running[i], now[i] = false, true, true
			l.pause[i] = pauses[list(i)]
		}
	}
	return now
}

// loadStale starts loading the outdated lists that are shown.
func (m *model) loadStale() tea.Cmd {
	if !m.live {
		return nil
	}
	wanted := always
	wanted.add(m.page().needs())
	if m.prompt.isCall() {
		wanted.add(setOf(toolList)) // completion needs it
	}
	var commands []tea.Cmd
	now := m.loading.start(wanted)
	for l, load := range now {
		if !load {
			continue
		}
		commands = append(commands, func() tea.Msg {
			store, err := loaders[l](m.ctx, m.server, m.now())
			return loaded{list(l), store, err}
		})
	}
	if d, ok := m.page().(*document); ok && d.load != nil && d.reload.meets(now) {
		commands = append(commands, m.loadDocument(d))
	}
	return tea.Batch(commands...)
}

// finishLoad stores a list that was loaded. After an error the old list stays.
func (m *model) finishLoad(msg loaded) {
	m.loading.running[msg.list] = false
	if msg.err == nil {
		msg.store(&m.state)
	}
	m.showError(msg.err)
}

// showError shows an error, unless it is a disconnect, which the banner shows, or the
// end of the program.
func (m *model) showError(err error) {
	if err != nil && fault.CodeOf(err) != fault.Unavailable && !errors.Is(err, context.Canceled) {
		m.message = message{advice(err), true}
	}
}

// advice is an error with what to do about it.
func advice(err error) plain {
	text := err.Error()
	if hint := fault.HintOf(err); hint != "" && !strings.Contains(text, hint) {
		text += ": " + hint
	}
	return clean(text)
}
