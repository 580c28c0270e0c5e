// Package failure classifies the errors of the chat service. Each of its APIs has its
// own words and statuses for the kinds of failure.
package failure

import (
	"crypto/rand"
	"errors"
	"net/http"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/core/principal"
)

// Kind is why a request failed.
type Kind int

const (
	Internal Kind = iota
	Invalid
	InvalidAudio
	NoHearing // the endpoint for transcription does not answer
	TooLarge
	Unauthorized
	Forbidden
	NotFound
	UnknownModel
	Conflict
	Busy         // too many messages wait
	RateLimited  // too many messages were sent
	OverBudget   // until the budget is renewed
	ModelLimited // the provider's limit of requests is reached
	ModelBusy    // overloaded, or cannot be reached
	ModelKey     // the provider does not accept the key
	ModelUnset   // there is no key, or no model
	ModelBroken  // it failed, or its answer broke off, and may recover
	ModelFailed  // in another way, as it would again
	ModelRefused // what was sent is too long for the model
	TimedOut
	Unavailable
	Moved // to another node, which will answer
)

type marked struct {
	kind Kind
	error
}

func (m marked) Unwrap() error { return m.error }

// As returns err with a known kind.
func As(kind Kind, err error) error { return marked{kind, err} }

// Of returns the kind of an error. Errors of turns are marked by OfTurn first.
func Of(err error) Kind {
	var known marked
	if errors.As(err, &known) {
		return known.kind
	}
	switch fault.CodeOf(err) {
	case fault.InvalidParams:
		return Invalid
	case fault.NeedsAuth:
		return Unauthorized
	case fault.Denied:
		return Forbidden
	case fault.NotFound, fault.ToolNotFound:
		return NotFound
	case fault.Conflict:
		return Conflict
	case fault.Limit:
		return Busy
	case fault.Timeout:
		return TimedOut
	case fault.Unavailable, fault.Cancelled:
		return Unavailable
	default:
		return Internal
	}
}

// OfTurn marks an error of the agent.
func OfTurn(err error) error {
	if status, ok := llm.Refusal(err); ok {
		return As(ofModel(status, fault.CodeOf(err)), err)
	}
	switch fault.CodeOf(err) {
	case fault.Config:
		return As(ModelUnset, err)
	case fault.NeedsAuth, fault.Upstream, fault.Denied:
		return As(ModelFailed, err)
	case fault.Limit:
		if _, budget := principal.RetryAfter(err); budget {
			return As(OverBudget, err)
		}
		return As(ModelRefused, err)
	default:
		return err
	}
}

// ofModel is the kind of an error of the model's endpoint.
func ofModel(status int, code fault.Code) Kind {
	switch {
	case status == http.StatusTooManyRequests:
		return ModelLimited
	case code == fault.Limit:
		return ModelRefused
	case code == fault.Unavailable && (status == 0 || status == http.StatusServiceUnavailable || status == llm.StatusOverloaded):
		return ModelBusy
	case code == fault.Unavailable, code == fault.Upstream && status == 0:
		return ModelBroken
	case code == fault.NeedsAuth:
		return ModelKey
	case code == fault.Timeout:
		return TimedOut
	case code == fault.Cancelled:
		return Unavailable
	default:
		return ModelFailed
	}
}

// RequestID returns the id of a request, by which its records are found in the log. Its
// response has it as a header.
func RequestID(w http.ResponseWriter) string {
	const header = "X-Request-Id"
	if w.Header().Get(header) == "" {
		w.Header().Set(header, "req_"+rand.Text())
	}
	return w.Header().Get(header)
}

// Message is the text of an error for people, with what they can do.
func Message(err error) string {
	if hint := fault.HintOf(err); hint != "" {
		return err.Error() + " (" + hint + ")"
	}
	return err.Error()
}
