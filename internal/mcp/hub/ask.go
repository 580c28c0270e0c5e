package hub

import (
	"context"
	"encoding/json"
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
	defer s.cancelAnswer(id)
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
