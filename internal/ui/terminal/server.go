package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/serverapi"
	"github.com/luanette/luanette/internal/base/sse"
)

// revision is the MCP revision without sessions, so that the server may restart between
// two calls.
const revision = "2026-07-28"

// server is a client of a running server: tools at /mcp, events at /api/v1/events.
type server struct {
	serverapi.API
	version string // of this program
}

func newServer(o Options) (*server, error) {
	api, err := serverapi.Connect(o.Server, serverapi.Access{Key: o.Key, CAFile: o.CAFile})
	return &server{api, o.Version}, err
}

// address is the server's address.
func (s *server) address() plain { return clean(s.Base) }

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
	return s.SendInto(ctx, http.MethodGet, path, nil, into)
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
	r, err := serverapi.NewRequest(ctx, http.MethodPost, s.Base+"/mcp", map[string]any{
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
	for header, value := range map[string]string{
		"Accept":               "application/json, text/event-stream",
		"MCP-Protocol-Version": revision, "Mcp-Method": "tools/call", "Mcp-Name": name,
	} {
		r.Header.Set(header, value)
	}
	response, err := s.Do(r)
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
	path := "/api/v1/events?after=" + url.QueryEscape(after)
	if !follow {
		path += "&follow=false"
	}
	response, err := s.Open(ctx, http.MethodGet, path, nil)
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
	activityList
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
var allLists = setOf(serverList, jobList, approvalList, nodeList, settingList, callReport, toolList, traceList, activityList)

// pauses are the ticks between two loads of lists that are large and change with each
// call.
var pauses = map[list]int{callReport: 10, traceList: 4, activityList: 2}

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
		return setOf(jobList, traceList, activityList)
	case "approval":
		return setOf(approvalList, jobList, activityList)
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
	activityList: loadActivity,
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
