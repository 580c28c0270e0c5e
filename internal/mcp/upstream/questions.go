package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/apps"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// handleMessage takes requests and notifications of the server. call is the id of
// the request on whose stream the message came, or empty. It must not block,
// because it runs on the goroutine that reads the stream.
func (s *session) handleMessage(call wire.ID, m wire.Message) {
	s.lastReceived.Store(time.Now().UnixNano())
	s.noteUnasked(m)
	if m.IsRequest() {
		select {
		case s.questionSlots <- struct{}{}:
		default:
			return // too many questions at once: this one is not answered
		}
		s.life.run(func(ctx context.Context) {
			defer func() { <-s.questionSlots }()
			s.answerQuestion(ctx, call, m)
		})
		return
	}
	switch m.Method {
	case wire.NoteProgress:
		token, _ := rawjson.Get(m.Params, wire.MetaProgressToken)
		if p := s.inflightOf(wire.ID(token)); p != nil {
			p.handleProgress(m.Params)
		}
	case wire.NoteMessage:
		if p, _ := s.callFor(call, func(c *tool.Caller) bool { return c.Log != nil }); p != nil {
			p.handleLog(m.Params)
			return
		}
		s.connection.notified(m.Method, m.Params)
	case wire.NoteCancelled:
		id, _ := rawjson.Get(m.Params, "requestId")
		s.mu.Lock()
		cancel := s.questions[wire.ID(id)]
		s.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	case wire.NoteListenAcknowledged:
		s.mu.Lock()
		acked := s.acked
		s.mu.Unlock()
		acked()
	default:
		s.connection.notified(m.Method, wire.StripProtocol(m.Params))
	}
}

func (s *session) inflightOf(id wire.ID) *inflight {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending[id]
}

// callFor finds the call that a message of the server belongs to: the one on whose
// stream it came, or, if that is unknown, one of the only client that can handle it.
// If there are several clients it returns no call, and a count above 1.
func (s *session) callFor(id wire.ID, canHandle func(*tool.Caller) bool) (p *inflight, count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != "" {
		if p := s.pending[id]; p != nil && p.caller != nil && canHandle(p.caller) {
			return p, 1
		}
		return nil, 0
	}
	return s.callOfOnlyClient(canHandle)
}

// callOfOnlyClient is a pending call of the only client that can handle it; s.mu is held.
func (s *session) callOfOnlyClient(canHandle func(*tool.Caller) bool) (p *inflight, count int) {
	for _, candidate := range s.pending {
		if candidate.caller == nil || !canHandle(candidate.caller) {
			continue
		}
		same := p != nil && (p.caller == candidate.caller || p.caller.Client != nil && p.caller.Client == candidate.caller.Client)
		if !same {
			count++
		}
		p = candidate
	}
	if count > 1 {
		return nil, count
	}
	return p, count
}

// answerQuestion handles a request of the server and sends the response.
func (s *session) answerQuestion(ctx context.Context, call wire.ID, m wire.Message) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.questions[m.ID] = cancel
	s.mu.Unlock()
	result, err := s.reply(ctx, call, m)
	s.mu.Lock()
	delete(s.questions, m.ID)
	s.mu.Unlock()
	if ctx.Err() != nil || errors.Is(err, errCallOver) {
		return // the server cancelled it, the session ended, or the server knows that the call is over
	}
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	if err := s.transport.Send(ctx, wire.Answer(m.ID, result, err)); err != nil {
		s.connection.log.DebugContext(ctx, "response to a server was not sent", "method", m.Method, "error", err)
	}
}

// reply is the result of a request of the server, which the caller of the call
// that it belongs to gives.
func (s *session) reply(ctx context.Context, call wire.ID, m wire.Message) (json.RawMessage, error) {
	switch m.Method {
	case wire.MethodPing:
		return nil, nil
	case wire.MethodRoots, wire.MethodSample, wire.MethodElicit:
	default:
		return nil, wire.Errorf(wire.CodeMethodNotFound, "no method %q", m.Method)
	}
	question := tool.Question{Method: m.Method, Params: wire.StripProtocol(m.Params)}
	if m.Method == wire.MethodRoots {
		return s.replyRoots(ctx, call, question)
	}
	p, count := s.callFor(call, func(c *tool.Caller) bool { return canAnswer(c, m.Method) })
	related, _ := rawjson.Get(wire.Meta(m.Params), wire.MetaRelatedTask)
	if task, _ := rawjson.GetText(related, "taskId"); task != "" { // the question belongs to that task
		p, count = s.callForTask(task, m.Method), 1
	}
	switch {
	case count > 1:
		return nil, wire.Errorf(wire.CodeInternal, "%s: %d calls are in progress, and the request does not say to which it belongs", m.Method, count)
	case p == nil:
		return declineQuestion(m.Method)
	}
	return p.ask(ctx, question)
}

// callForTask is the request for the result of a task, if its caller can answer the
// question; else nil.
func (s *session) callForTask(task, method string) *inflight {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pending {
		if p.task == task && canAnswer(p.caller, method) {
			return p
		}
	}
	return nil
}

// declineQuestion is the protocol's response of a client that cannot answer.
func declineQuestion(method string) (json.RawMessage, error) {
	if method == wire.MethodElicit {
		return json.RawMessage(`{"action":"cancel"}`), nil
	}
	return nil, wire.Errorf(-1, "the caller of this call cannot be asked")
}

// capabilityOf is the client capability that a question of the server requires.
func capabilityOf(method string) string {
	switch method {
	case wire.MethodElicit:
		return "elicitation"
	case wire.MethodSample:
		return "sampling"
	case wire.MethodRoots:
		return "roots"
	}
	return ""
}

// canAnswer reports whether the caller can be asked that. A caller that declares
// no capabilities but has Ask, such as a script, can be asked everything.
func canAnswer(c *tool.Caller, method string) bool {
	if c == nil || c.Ask == nil {
		return false
	}
	if c.Capabilities == nil {
		return true
	}
	value, ok := rawjson.Get(c.Capabilities, capabilityOf(method))
	return ok && rawjson.IsObject(value)
}

// allCapabilities are those that we relay.
var allCapabilities = withApps(`{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{"listChanged":true}}`)

// ownCapabilities is for requests of our own and of callers who cannot be asked. The lists that we
// fetch have what clients that show Apps are listed.
var ownCapabilities = withApps(`{}`)

func withApps(capabilities string) json.RawMessage {
	return rawjson.Set(json.RawMessage(capabilities), "extensions", rawjson.Set(nil, wire.ExtensionApps, apps.Capability))
}

// declaredFor is what a modern request declares: the caller's capabilities as far as we
// relay them, tasks if it may start one or is about one, and roots if the configuration has some.
func (s *session) declaredFor(r *outcall) json.RawMessage {
	c := r.caller
	declared := capabilitiesOf(c)
	if r.task {
		extensions, _ := rawjson.Get(declared, "extensions")
		declared = rawjson.Set(declared, "extensions", rawjson.Set(extensions, wire.ExtensionTasks, json.RawMessage(`{}`)))
	}
	if canAnswer(c, wire.MethodRoots) || s.connection.configuredRoots() == nil {
		return declared
	}
	return rawjson.Set(declared, "roots", json.RawMessage(`{}`))
}

func capabilitiesOf(c *tool.Caller) json.RawMessage {
	switch {
	case c == nil, c.Capabilities == nil && c.Ask == nil:
		return ownCapabilities
	case c.Capabilities == nil:
		return allCapabilities
	}
	declared := rawjson.DeleteFunc(c.Capabilities, func(key []byte) bool {
		switch string(key) {
		case "elicitation", "sampling", "roots":
			return c.Ask == nil
		}
		return string(key) != "extensions" && string(key) != "experimental"
	})
	if extensions, ok := rawjson.Get(declared, "extensions"); ok { // tasks are between us and the server
		declared = rawjson.Set(declared, "extensions", rawjson.Delete(extensions, wire.ExtensionTasks))
	}
	return declared
}

// errCallOver is why a question is no longer answered.
var errCallOver = errors.New("the call that the question belongs to is over")

// askCaller asks the caller of a request. Meanwhile its timeout is paused.
func askCaller(ctx context.Context, caller *tool.Caller, timeout *callTimeout, questions []tool.Question) ([]json.RawMessage, error) {
	timeout.pause()
	defer timeout.extend()
	replies, err := caller.Ask(ctx, questions)
	if err != nil {
		return nil, fmt.Errorf("ask the caller: %w", err)
	}
	if len(replies) != len(questions) {
		return nil, fmt.Errorf("ask the caller: %d answers to %d questions", len(replies), len(questions))
	}
	return replies, nil
}

// provideInput answers a modern result that asks for input: it returns the params
// of the retry. A server that asks no question wants the request again later.
func (s *session) provideInput(ctx context.Context, timeout *callTimeout, r *outcall, result json.RawMessage) (json.RawMessage, error) {
	questions, err := inputRequests(result)
	if err != nil {
		return nil, err
	}
	params := r.params
	if state, ok := rawjson.Get(result, "requestState"); ok {
		params = rawjson.Set(params, "requestState", state)
	}
	if len(questions) == 0 {
		return params, clock.Real().Sleep(ctx, backoff.Policy{First: 250 * time.Millisecond}.Delay(1))
	}
	responses, err := s.answerAll(ctx, timeout, r.caller, questions)
	if err != nil {
		return nil, err
	}
	return rawjson.Set(params, "inputResponses", responses), nil
}

// answerAll asks the caller what it can answer. Roots that it does not have are those of
// the configuration.
func (s *session) answerAll(ctx context.Context, timeout *callTimeout, caller *tool.Caller, questions []tool.Question) (json.RawMessage, error) {
	responses := json.RawMessage(`{}`)
	open := questions[:0]
	for _, q := range questions {
		switch {
		case canAnswer(caller, q.Method):
			open = append(open, q)
		case q.Method == wire.MethodRoots && s.connection.configuredRoots() != nil:
			responses = rawjson.Set(responses, q.Key, s.connection.configuredRoots())
		default:
			return nil, fmt.Errorf("server needs %s, which the caller does not support", q.Method)
		}
	}
	if len(open) == 0 {
		return responses, nil
	}
	replies, err := askCaller(ctx, caller, timeout, open)
	if err != nil {
		return nil, orCause(ctx, err)
	}
	for i, q := range open {
		responses = rawjson.Set(responses, q.Key, replies[i])
	}
	return responses, nil
}

// maxQuestions is how many questions a server may ask at once.
const maxQuestions = 64

// inputRequests reads the questions of a result in their order.
func inputRequests(result json.RawMessage) ([]tool.Question, error) {
	raw, ok := rawjson.Get(result, "inputRequests")
	if !ok {
		return nil, nil
	}
	if !rawjson.IsObject(raw) {
		return nil, errors.New("inputRequests of the result is not an object")
	}
	var questions []tool.Question
	rawjson.Each(raw, func(key string, value json.RawMessage) bool {
		q := tool.Question{Key: key}
		q.Method, _ = rawjson.GetText(value, "method")
		q.Params, _ = rawjson.Get(value, "params")
		questions = append(questions, q)
		return len(questions) <= maxQuestions
	})
	if len(questions) > maxQuestions {
		return nil, fmt.Errorf("server asks more than %d questions at once", maxQuestions)
	}
	return questions, nil
}

var noRoots = json.RawMessage(`{"roots":[]}`)

// rootsTimeout is how long a client may take to list its roots outside of a call.
const rootsTimeout = 5 * time.Second

// roots are those of the only client that uses the server, or else of the configuration.
func (c *connection) roots(ctx context.Context) json.RawMessage {
	if client := c.clients.only(); client != nil {
		ctx, cancel := context.WithTimeout(ctx, rootsTimeout)
		defer cancel()
		roots, err := client.Roots(ctx)
		if err == nil && rawjson.IsObject(roots) {
			return roots
		}
		c.log.DebugContext(ctx, "roots of the client", "error", err)
	}
	if configured := c.configuredRoots(); configured != nil {
		return configured
	}
	return noRoots
}

// configuredRoots is the answer of the configuration; nil if it has none.
func (c *connection) configuredRoots() json.RawMessage {
	return listRoots(c.spec.Load().Roots)
}

// listRoots is the result of roots/list for paths and file URIs; nil for none.
func listRoots(roots []string) json.RawMessage {
	if len(roots) == 0 {
		return nil
	}
	list := []byte{'['}
	for i, root := range roots {
		if i > 0 {
			list = append(list, ',')
		}
		uri := rootURI(root)
		entry := rawjson.SetText(rawjson.SetText(nil, "uri", uri.String()), "name", path.Base(uri.Path))
		list = append(list, entry...)
	}
	return rawjson.Set(nil, "roots", append(list, ']'))
}

// rootURI is the file URI of a path or of a URI; ~ is our home folder.
func rootURI(root string) *url.URL {
	if u, err := url.Parse(root); err == nil && u.Scheme == "file" {
		return u
	}
	if root == "~" || strings.HasPrefix(root, "~/") {
		if home, err := os.UserHomeDir(); err == nil {
			root = home + root[1:]
		}
	}
	if absolute, err := filepath.Abs(root); err == nil {
		root = absolute
	}
	root = filepath.ToSlash(root)
	if !strings.HasPrefix(root, "/") { // a drive letter
		root = "/" + root
	}
	return &url.URL{Scheme: "file", Path: root}
}

// replyRoots answers roots/list of a server: with the roots of the client whose call it
// belongs to, or else with those of the connection.
func (s *session) replyRoots(ctx context.Context, call wire.ID, question tool.Question) (json.RawMessage, error) {
	p, count := s.callFor(call, func(c *tool.Caller) bool { return canAnswer(c, wire.MethodRoots) })
	switch {
	case p != nil:
		return p.ask(ctx, question)
	case call == "" && count == 0:
		return s.connection.roots(ctx), nil
	}
	if configured := s.connection.configuredRoots(); configured != nil {
		return configured, nil
	}
	return noRoots, nil
}

// clients are the clients with roots that have used a server in sessions that still last.
type clients struct {
	mu   sync.Mutex
	list map[tool.Client]bool // true: it has announced other roots
}

// add adds the client of a request. Outside of its own calls, only the roots of clients
// that may do everything are used: servers such as server-filesystem serve whatever roots
// they are given.
func (l *clients) add(ctx context.Context, caller *tool.Caller) {
	if caller == nil || caller.Client == nil || l.has(caller.Client) ||
		!canAnswer(caller, wire.MethodRoots) || !principal.Of(ctx).Admin() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prune()
	if l.list == nil {
		l.list = map[tool.Client]bool{}
	}
	l.list[caller.Client] = false
}

// announce records that a client has announced other roots, and reports whether that is
// the first time.
func (l *clients) announce(client tool.Client) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.list[client]
	l.list[client] = true
	return !before
}

func (l *clients) has(client tool.Client) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.list[client]
	return ok
}

// only is the client if exactly one is connected, or else nil.
func (l *clients) only() (one tool.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prune()
	for client := range l.list {
		switch {
		case !client.Connected():
		case one != nil:
			return nil
		default:
			one = client
		}
	}
	return one
}

// prune removes clients whose sessions have ended; l.mu is held.
func (l *clients) prune() {
	for client := range l.list {
		select {
		case <-client.Ended():
			delete(l.list, client)
		default:
		}
	}
}

// RootsChanged passes on that a client's roots have changed, to the servers that it uses.
func (m *Manager) RootsChanged(client tool.Client) {
	for _, c := range m.everyConnection() {
		if !c.clients.has(client) {
			continue
		}
		c.sendRootsChanged()
		if c.clients.announce(client) {
			c.life.run(func(ctx context.Context) { c.restoreRoots(ctx, client) })
		}
	}
}

// restoreRoots tells the server that its roots have changed when a client leaves that has
// announced other roots.
func (c *connection) restoreRoots(ctx context.Context, client tool.Client) {
	select {
	case <-client.Ended():
		c.sendRootsChanged()
	case <-ctx.Done():
	}
}

// sendRootsChanged tells the server that roots/list has another answer. A modern server
// asks anew in every call.
func (c *connection) sendRootsChanged() {
	s := c.phase.session.Load()
	if s == nil || s.era != wire.Legacy {
		return
	}
	s.life.run(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, rootsTimeout)
		defer cancel()
		if err := s.transport.Send(ctx, wire.Notification(wire.NoteRootsChanged, nil)); err != nil {
			c.log.DebugContext(ctx, "changed roots were not passed on", "error", err)
		}
	})
}
