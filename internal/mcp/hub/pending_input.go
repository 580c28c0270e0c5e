package hub

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

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

func newQuestionSets() *questionSets {
	return &questionSets{turn: make(chan struct{}, 1)}
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
	if !slices.ContainsFunc(own.answers, isMissing) {
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
		req.questions = newQuestionSets()
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

func isMissing(answer json.RawMessage) bool { return answer == nil }

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
	p, state, err := pending.add(req, req.ep.binding(req.who, req.method, req.params), deadline)
	if err != nil {
		return nil, err
	}
	result := append([]byte(`{"resultType":"`+wire.ResultInputRequired+`","inputRequests":`), open...)
	result = rawjson.AppendText(append(result, `,"requestState":`...), req.ep.hub.tag(state))
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
