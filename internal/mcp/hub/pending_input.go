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

// questionSet is one set of questions on its way to being answered by parking.
type questionSet struct {
	questions []tool.Question
	answers   []json.RawMessage
}

// questionSets are those of one task. Only who has the turn puts questions, its own
// and those that others wait for.
type questionSets struct {
	turn chan struct{} // holds one token
	mu   sync.Mutex
	open []*questionSet
}

func newQuestionSets() *questionSets {
	return &questionSets{turn: make(chan struct{}, 1)}
}

// gatherWindow is how long a question waits for others to go with it, when its
// asker may have more that it asks at the same time but one by one.
const gatherWindow = 20 * time.Millisecond

// askByInputRequired answers the round with the questions and waits for the client to
// come back with the answers, until it has sent all of them.
func (t *request) askByInputRequired(ctx context.Context, questions []tool.Question) ([]json.RawMessage, error) {
	own := &questionSet{questions: questions, answers: make([]json.RawMessage, len(questions))}
	all := t.questionSets()
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
		return own.answers, nil // somebody before us asked for us too
	}
	if len(questions) == 1 && questions[0].Key == "" {
		wait(ctx, gatherWindow)
	}
	return own.answers, t.askAll(ctx, all)
}

func (t *request) questionSets() *questionSets {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.questions == nil {
		t.questions = newQuestionSets()
	}
	return t.questions
}

// askAll puts the questions of all open inquiries until they are answered.
func (t *request) askAll(ctx context.Context, all *questionSets) error {
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
	fillAnswers(answers, keys, t.supplied)
	t.supplied = nil
	for {
		requests := inputRequests(questions, keys, answers)
		if requests == nil {
			break
		}
		back, err := t.waitForInput(ctx, requests)
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

// waitForInput settles the round with what is to be asked and waits for the next one.
func (t *request) waitForInput(ctx context.Context, open json.RawMessage) (responses json.RawMessage, err error) {
	deadline, _ := ctx.Deadline()
	lot := t.ep.hub.pending
	p, state, err := lot.add(t, t.ep.binding(t.who, t.method, t.params), deadline)
	if err != nil {
		return nil, err
	}
	result := append([]byte(`{"resultType":"`+wire.ResultInputRequired+`","inputRequests":`), open...)
	result = rawjson.AppendText(append(result, `,"requestState":`...), t.ep.hub.tag(state))
	t.finish(t.ep.setServerInfo(append(result, '}')), nil, false)
	select {
	case responses = <-p.back:
		return responses, nil
	case <-ctx.Done():
	}
	if !lot.remove(p) {
		<-p.back // the client came back at the last moment: its round gets the error
	}
	return nil, waitFault(ctx)
}

// resume gives a parked task its next round and the answers it waits for.
func (p *pendingCall) resume(rd *response, responses json.RawMessage) {
	t := p.task
	t.mu.Lock()
	t.response = rd
	t.mu.Unlock()
	if t.session != nil {
		_ = t.session.begin(rd.id, t) // an id used twice can only not be cancelled
	}
	p.back <- responses
}

// questionKeys gives every question the name its asker chose, or one of ours.
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

// fillAnswers takes the answers that were missing out of a client's
// inputResponses. What is not an object is no answer; what nobody asked for is
// ignored.
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
