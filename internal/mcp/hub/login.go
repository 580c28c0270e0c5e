package hub

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

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
	if fault.CodeOf(err) != fault.NeedsAuth {
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
		if req.awaitLogin(ctx, missing.Upstream, wait) == nil {
			req.endQuestion(id)
			return nil
		}
		if ctx.Err() != nil {
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

// awaitLogin waits for a time: that the person accepted only says that the page was opened.
func (req *request) awaitLogin(ctx context.Context, upstream string, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return req.ep.hub.opts.Logins.AwaitLogin(ctx, upstream)
}

// endQuestion tells a client of the sessions era that its page has done its work.
func (req *request) endQuestion(id string) {
	if req.era == wire.Legacy {
		req.send(wire.Notification(wire.NoteElicitationComplete, rawjson.SetText(nil, "elicitationId", id)), false)
	}
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
