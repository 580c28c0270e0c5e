package hub

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// canAsk tells whether the client can be asked for input during this request. The modern
// era allows it for three methods only.
func (req *request) canAsk() bool {
	if req.era == wire.Legacy {
		return true
	}
	switch req.method {
	case wire.MethodToolsCall, wire.MethodPromptsGet, wire.MethodResourcesRead:
		return true
	}
	return false
}

// ask sends questions to the client and waits for all answers. In the sessions era they
// are requests of the hub, in the modern era the result input_required.
func (req *request) ask(ctx context.Context, questions []tool.Question) ([]json.RawMessage, error) {
	if err := checkDeclared(req.caps, questions); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, req.ep.hub.opts.Limits.Question,
		fault.New(fault.Timeout, "no answer from the client within %s", req.ep.hub.opts.Limits.Question))
	defer cancel()
	if req.era == wire.Modern {
		return req.askByInputRequired(ctx, questions)
	}
	return req.askByRequest(ctx, questions)
}

// askByRequest sends each question as a request of the hub, on the call's stream.
func (req *request) askByRequest(ctx context.Context, questions []tool.Question) ([]json.RawMessage, error) {
	answers := make([]json.RawMessage, len(questions))
	group, ctx := errgroup.WithContext(ctx)
	for i, q := range questions {
		group.Go(func() error {
			answer, err := req.session.ask(ctx, req.send, q)
			answers[i] = answer
			return err
		})
	}
	return answers, group.Wait()
}

func waitFault(ctx context.Context) error {
	return fault.Wrap(fault.CodeOf(context.Cause(ctx)), context.Cause(ctx), "wait for the client's answer")
}

// checkDeclared refuses questions that need a capability the client did not declare.
func checkDeclared(caps json.RawMessage, questions []tool.Question) error {
	missing := map[string]json.RawMessage{}
	for _, q := range questions {
		name, detail, ok := capabilityOf(q)
		if !ok {
			return fault.New(fault.InvalidParams, "ask the client: %q is not a method for asking clients", q.Method)
		}
		declared, found := rawjson.Get(caps, name)
		if !found || rawjson.IsNull(declared) {
			missing[name] = json.RawMessage("{}")
			continue
		}
		if _, found := rawjson.Get(declared, detail); detail != "" && !found {
			missing[name] = rawjson.Set(nil, detail, json.RawMessage("{}"))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	refusal := wire.Errorf(wire.CodeMissingCapability, "the client did not declare a capability this request needs")
	return fault.Wrap(fault.Denied, refusal.WithData(map[string]any{"requiredCapabilities": missing}), "ask the client").
		WithHint("use a client that supports elicitation, sampling or roots, as the tool demands")
}

// capabilityOf is what a client must declare to be asked q: the capability, and
// where that has kinds, which.
func capabilityOf(q tool.Question) (name, detail string, ok bool) {
	switch q.Method {
	case wire.MethodElicit:
		if mode, _ := rawjson.GetText(q.Params, "mode"); mode == "url" {
			return "elicitation", "url", true
		}
		return "elicitation", "", true
	case wire.MethodSample:
		return "sampling", "", true
	case wire.MethodRoots:
		return "roots", "", true
	}
	return "", "", false
}

// ask sends one question as a request on a call's stream and waits for its answer.
func (s *session) ask(ctx context.Context, say func(wire.Message, bool) bool, q tool.Question) (json.RawMessage, error) {
	id, reply := s.expectAnswer()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.questions, id)
	}()
	if !say(wire.Request(id, q.Method, q.Params), true) {
		return nil, fault.New(fault.Denied, "ask the client: it accepts no event streams").
			WithHint("the client must accept text/event-stream to be asked anything")
	}
	s.touch(time.Now())
	select {
	case m := <-reply:
		if m.Error != nil {
			return nil, fault.Wrap(fault.Denied, m.Error, "ask the client")
		}
		return m.Result, nil
	case <-s.ended:
		return nil, errSessionEnded
	case <-ctx.Done():
		params := append(append([]byte(`{"requestId":`), id...), '}')
		say(wire.Notification(wire.NoteCancelled, params), false)
		return nil, waitFault(ctx)
	}
}

// pendingCalls are the requests of the modern era that wait for input of their client, by
// their tickets. The client gets the ticket as requestState. A ticket is a secret, and valid
// once, until a deadline, for the same request of the same principal, and as long as the
// process runs.
type pendingCalls struct {
	max int

	mu      sync.Mutex
	waiting map[string]*pendingCall
}

// pendingCall is one request that waits. The goroutine that claims it sends on back.
type pendingCall struct {
	task     *request
	ticket   string
	bound    [sha256.Size]byte // what the ticket is valid for
	deadline time.Time
	back     chan json.RawMessage // the client's input; buffered for one
}

// add registers a request, with a new ticket that is bound to it.
func (l *pendingCalls) add(req *request, deadline time.Time) (*pendingCall, error) {
	p := &pendingCall{
		task: req, ticket: rand.Text(), deadline: deadline, bound: req.ep.binding(req.who, req.method, req.params),
		back: make(chan json.RawMessage, 1),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= l.max {
		return nil, fault.New(fault.Limit, "%d calls wait for their clients' input already", l.max).WithHint("try again later")
	}
	l.waiting[p.ticket] = p
	return p, nil
}

var errBadState = wire.Errorf(wire.CodeInvalidParams,
	"requestState is not valid for this request, or its call no longer waits: make the request again without it")

// claim removes and returns the call that a ticket identifies.
func (l *pendingCalls) claim(ticket string, bound [sha256.Size]byte, now time.Time) (*pendingCall, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.waiting[ticket]
	if !ok || now.After(p.deadline) || p.bound != bound {
		return nil, errBadState
	}
	delete(l.waiting, ticket)
	return p, nil
}

// remove removes p. It returns false if p was claimed, so that input is on its way.
func (l *pendingCalls) remove(p *pendingCall) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.waiting[p.ticket]
	delete(l.waiting, p.ticket)
	return ok
}

// binding is what a ticket is valid for: this principal making this request at this
// endpoint. The order of keys and the spacing of the arguments do not matter.
func (e *endpoint) binding(who, method string, params json.RawMessage) [sha256.Size]byte {
	sum := sha256.New()
	for _, part := range []string{e.name, who, method} {
		sum.Write([]byte(part))
		sum.Write([]byte{0})
	}
	for _, key := range []string{"name", "uri", "arguments"} {
		value, _ := rawjson.Get(params, key)
		sum.Write(canonical(value))
		sum.Write([]byte{0})
	}
	return [sha256.Size]byte(sum.Sum(nil))
}

// canonical writes JSON with sorted keys and no space, numbers as they were
// written, so that equal values have equal bytes. What is no JSON stays as it is.
func canonical(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return raw
	}
	out, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	return out
}

// questionSet is a set of questions that a tool asks at once, and their answers.
type questionSet struct {
	questions []tool.Question
	answers   []json.RawMessage
}

// questionSets are those that a request waits for. One goroutine at a time, the one that
// holds the turn, sends all open questions to the client.
type questionSets struct {
	turn chan struct{} // holds one token
	mu   sync.Mutex
	open []*questionSet
}

// gatherWindow is how long a single question waits for others to be sent with it, since a
// tool may ask several at the same time from different goroutines.
const gatherWindow = 20 * time.Millisecond

// askByInputRequired answers the request with the questions and waits for the client to
// repeat the request with the answers, until it has sent all of them.
func (req *request) askByInputRequired(ctx context.Context, questions []tool.Question) ([]json.RawMessage, error) {
	own := &questionSet{questions: questions, answers: make([]json.RawMessage, len(questions))}
	all := req.questionSets()
	all.mu.Lock()
	all.open = append(all.open, own)
	all.mu.Unlock()
	defer func() {
		all.mu.Lock()
		all.open = slices.DeleteFunc(all.open, func(i *questionSet) bool { return i == own })
		all.mu.Unlock()
	}()
	select {
	case all.turn <- struct{}{}:
		defer func() { <-all.turn }()
	case <-ctx.Done():
		return nil, waitFault(ctx)
	}
	if !slices.ContainsFunc(own.answers, func(answer json.RawMessage) bool { return answer == nil }) {
		return own.answers, nil // the holder before sent these questions too
	}
	if len(questions) == 1 && questions[0].Key == "" {
		wait(ctx, gatherWindow)
	}
	return own.answers, req.askAll(ctx, all)
}

func (req *request) questionSets() *questionSets {
	req.mu.Lock()
	defer req.mu.Unlock()
	if req.questions == nil {
		req.questions = &questionSets{turn: make(chan struct{}, 1)}
	}
	return req.questions
}

// askAll sends the open questions of all sets until they are answered.
func (req *request) askAll(ctx context.Context, all *questionSets) error {
	all.mu.Lock()
	open := slices.Clone(all.open)
	all.mu.Unlock()
	var questions []tool.Question
	var answers []json.RawMessage
	for _, i := range open {
		questions = append(questions, i.questions...)
		answers = append(answers, i.answers...)
	}
	keys := questionKeys(questions)
	fillAnswers(answers, keys, req.supplied)
	req.supplied = nil
	for {
		requests := inputRequests(questions, keys, answers)
		if requests == nil {
			break
		}
		back, err := req.waitForInput(ctx, requests)
		if err != nil {
			return err
		}
		fillAnswers(answers, keys, back)
	}
	for _, i := range open {
		answers = answers[copy(i.answers, answers):]
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// waitForInput finishes the response with the questions and waits for the next one.
func (req *request) waitForInput(ctx context.Context, open json.RawMessage) (responses json.RawMessage, err error) {
	deadline, _ := ctx.Deadline()
	pending := req.ep.hub.pending
	p, err := pending.add(req, deadline)
	if err != nil {
		return nil, err
	}
	result := append([]byte(`{"resultType":"`+wire.ResultInputRequired+`","inputRequests":`), open...)
	result = rawjson.AppendText(append(result, `,"requestState":`...), req.ep.hub.tag(p.ticket))
	req.finish(req.ep.setServerInfo(append(result, '}')), nil, false)
	select {
	case responses = <-p.back:
		return responses, nil
	case <-ctx.Done():
	}
	if !pending.remove(p) {
		<-p.back // the client returned at the last moment: its response gets the error
	}
	return nil, waitFault(ctx)
}

// resume gives a waiting request its next response and the input it waits for.
func (p *pendingCall) resume(resp *response, responses json.RawMessage) {
	req := p.task
	req.mu.Lock()
	req.response = resp
	req.mu.Unlock()
	if req.session != nil {
		_ = req.session.begin(resp.id, req) // a request with an id that is in use cannot be cancelled by it
	}
	p.back <- responses
}

// questionKeys returns the key of every question: the one the tool chose, or a new one.
func questionKeys(questions []tool.Question) []string {
	keys := make([]string, len(questions))
	taken := map[string]bool{}
	for i, q := range questions {
		key := q.Key
		for n := 1; key == "" || taken[key]; n++ {
			kind, _, _ := strings.Cut(q.Method, "/")
			key = kind + "-" + strconv.Itoa(n)
		}
		keys[i] = key
		taken[key] = true
	}
	return keys
}

// fillAnswers copies missing answers from a client's inputResponses. It ignores values
// that are no objects and keys that were not asked for.
func fillAnswers(answers []json.RawMessage, keys []string, responses json.RawMessage) {
	for i, key := range keys {
		if answers[i] != nil {
			continue
		}
		if answer, ok := rawjson.Get(responses, key); ok && rawjson.IsObject(answer) {
			answers[i] = answer
		}
	}
}

// inputRequests writes the questions without an answer, or nil when there are none.
func inputRequests(questions []tool.Question, keys []string, answers []json.RawMessage) json.RawMessage {
	out := []byte{'{'}
	for i, q := range questions {
		if answers[i] != nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(rawjson.AppendText(out, keys[i]), ':')
		out = rawjson.AppendText(append(out, `{"method":`...), q.Method)
		params := q.Params
		if rawjson.IsNull(params) {
			params = json.RawMessage("{}")
		}
		out = append(append(append(out, `,"params":`...), params...), '}')
	}
	if len(out) == 1 {
		return nil
	}
	return append(out, '}')
}

// Logins are the logins of people to upstreams with accounts of their own.
type Logins interface {
	// AwaitLogin waits until the principal of ctx has a login to an upstream.
	AwaitLogin(ctx context.Context, upstream string) error
}

// How long a call waits for a person who has opened the page of a login.
const (
	loginWait    = 5 * time.Minute
	loginRounds  = 3                // how often a client without a session is asked
	loginRepeats = 20 * time.Second // before it is asked again
)

// missingLogin is a login that a call lacks, from the details of its fault.
type missingLogin struct {
	Upstream string `json:"upstream"`
	URL      string `json:"url"` // of the page on which the person logs in
}

// missingLoginOf returns the login that a call lacks; ok is false if it failed otherwise.
func missingLoginOf(err error) (m missingLogin, ok bool) {
	if err == nil || fault.CodeOf(err) != fault.NeedsAuth {
		return m, false
	}
	for f := (*fault.Error)(nil); errors.As(err, &f); err = f.Err {
		var details struct {
			Login missingLogin `json:"login"`
		}
		if json.Unmarshal(f.Details, &details) == nil && details.Login.URL != "" {
			return details.Login, true
		}
	}
	return m, false
}

// withLogin makes a call, and once more if it lacked a login that the person could be asked
// for.
func (req *request) withLogin(ctx context.Context, call func() (tool.Result, error)) (tool.Result, error) {
	result, err := call()
	missing, ok := missingLoginOf(err)
	if !ok || req.ep.hub.opts.Logins == nil {
		return result, err
	}
	if refusal := req.askLogin(ctx, missing, err); refusal != nil {
		return result, refusal
	}
	return call()
}

// askLogin asks the person to log in and waits until they have. Without a login it returns
// the error that the call ends with: cause, which has the link for clients that cannot show
// a page.
func (req *request) askLogin(ctx context.Context, missing missingLogin, cause error) error {
	id := rand.Text()
	question := tool.Question{Key: "login", Method: wire.MethodElicit, Params: missing.params(req.era, id)}
	if !req.canAsk() || checkDeclared(req.caps, []tool.Question{question}) != nil {
		return cause
	}
	rounds, wait := 1, loginWait
	if req.era == wire.Modern {
		rounds, wait = loginRounds, loginRepeats
	}
	for range rounds {
		switch accepted, err := req.accepts(ctx, question); {
		case err != nil && req.era == wire.Legacy && ctx.Err() == nil:
			return wire.Errorf(wire.CodeURLElicitationMissing, "%s", cause.Error()).WithData(map[string]any{"elicitations": []json.RawMessage{question.Params}})
		case err != nil, !accepted:
			return cause
		}
		// That the person accepted only says that the page was opened.
		soon, cancel := context.WithTimeout(ctx, wait)
		err := req.ep.hub.opts.Logins.AwaitLogin(soon, missing.Upstream)
		cancel()
		switch {
		case err == nil && req.era == wire.Legacy: // the page has done its work
			req.send(wire.Notification(wire.NoteElicitationComplete, rawjson.SetText(nil, "elicitationId", id)), false)
			return nil
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
	return cause
}

// accepts asks one question, and reports whether the person agreed.
func (req *request) accepts(ctx context.Context, question tool.Question) (bool, error) {
	answers, err := req.ask(ctx, []tool.Question{question})
	if err != nil {
		return false, err
	}
	action, _ := rawjson.GetText(answers[0], "action")
	return action == "accept", nil
}

// params are those of the question. Only the sessions era has ids.
func (m missingLogin) params(era wire.Era, id string) json.RawMessage {
	params := rawjson.SetText(nil, "mode", "url")
	params = rawjson.SetText(params, "message", "Log in to "+m.Upstream+" with your own account.")
	params = rawjson.SetText(params, "url", m.URL)
	if era == wire.Legacy {
		params = rawjson.SetText(params, "elicitationId", id)
	}
	return params
}
