package chatapi

import (
	"errors"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
)

// Failure is the body of every error.
type Failure struct {
	Error      string `json:"error"`
	Code       string `json:"code"`
	Message    string `json:"message"`
	RetryAfter int    `json:"retry_after_ms,omitempty"`
	MessageKey string `json:"message_key,omitempty" doc:"of MOVED: with it the message is the same message"`
}

// kind is a type of failure as clients know it.
type kind struct {
	status int
	name   string
	code   string
	retry  int // seconds after which a retry may succeed
}

var (
	validation    = kind{http.StatusBadRequest, "ValidationError", "VALIDATION_ERROR", 0}
	tooLarge      = kind{http.StatusRequestEntityTooLarge, "RequestTooLargeError", "REQUEST_BODY_TOO_LARGE", 0}
	unauthorized  = kind{http.StatusUnauthorized, "AuthenticationError", "AUTHENTICATION_ERROR", 0}
	forbidden     = kind{http.StatusForbidden, "AuthorizationError", "AUTHORIZATION_ERROR", 0}
	notFound      = kind{http.StatusNotFound, "NotFoundError", "NOT_FOUND", 0}
	conflict      = kind{http.StatusConflict, "ConflictError", "CONFLICT", 0}
	queueFull     = kind{http.StatusTooManyRequests, "QueueDepthError", "QUEUE_DEPTH_EXCEEDED", 5}
	rateLimited   = kind{http.StatusTooManyRequests, "RateLimitError", "RATE_LIMIT_EXCEEDED", 10}
	modelRefused  = kind{http.StatusRequestEntityTooLarge, "ClaudeRequestTooLargeError", "CLAUDE_REQUEST_BODY_TOO_LARGE", 0}
	modelFailed   = kind{http.StatusBadGateway, "ClaudeAPIError", "CLAUDE_API_ERROR", 0}
	overBudget    = kind{http.StatusTooManyRequests, "BudgetError", "BUDGET_EXCEEDED", 0}
	timedOut      = kind{http.StatusGatewayTimeout, "TimeoutError", "TIMEOUT_ERROR", 0}
	shuttingDown  = kind{http.StatusServiceUnavailable, "UnavailableError", "UNAVAILABLE", 5}
	moved         = kind{http.StatusServiceUnavailable, "MovedError", "MOVED", 2}
	internalError = kind{http.StatusInternalServerError, "InternalError", "INTERNAL_ERROR", 0}
	noAudio       = kind{http.StatusBadRequest, "AudioTranscriptionError", "AUDIO_TRANSCRIPTION_ERROR", 0}
)

// kindError is an error with a known kind.
type kindError struct {
	kind kind
	err  error
}

func (t kindError) Error() string { return t.err.Error() }
func (t kindError) Unwrap() error { return t.err }

// kindOf returns the kind of an error of this API. Errors of turns are classified by
// ofTurn first.
func kindOf(err error) kind {
	var known kindError
	if errors.As(err, &known) {
		return known.kind
	}
	switch fault.CodeOf(err) {
	case fault.InvalidParams:
		return validation
	case fault.NeedsAuth:
		return unauthorized
	case fault.Denied:
		return forbidden
	case fault.NotFound, fault.ToolNotFound:
		return notFound
	case fault.Conflict:
		return conflict
	case fault.Limit:
		return queueFull
	case fault.Timeout:
		return timedOut
	case fault.Unavailable, fault.Cancelled:
		return shuttingDown
	default:
		return internalError
	}
}

// ofTurn classifies an error of the agent, whose upstream is the model.
func ofTurn(err error) error {
	switch fault.CodeOf(err) {
	case fault.NeedsAuth, fault.Upstream, fault.Unavailable, fault.Denied, fault.Config:
		return kindError{modelFailed, err}
	case fault.Limit:
		if _, budget := principal.RetryAfter(err); budget {
			return kindError{overBudget, err}
		}
		return kindError{modelRefused, err}
	default:
		return err
	}
}

// failureOf converts an error for clients.
func failureOf(err error) (Failure, kind) {
	k := kindOf(err)
	message := err.Error()
	if hint := fault.HintOf(err); hint != "" {
		message += " (" + hint + ")"
	}
	f := Failure{Error: k.name, Code: k.code, Message: message, RetryAfter: k.retry * 1000}
	if after, ok := principal.RetryAfter(err); ok {
		f.RetryAfter = int(after.Milliseconds())
	}
	var to movedTo
	if errors.As(err, &to) {
		f.MessageKey = to.key
	}
	return f, k
}

// refuse responds with an error.
func refuse(w http.ResponseWriter, err error) {
	body, k := failureOf(err)
	if body.RetryAfter > 0 {
		w.Header().Set("Retry-After", principal.RetryHeader(time.Duration(body.RetryAfter)*time.Millisecond))
	}
	if k == unauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	httpjson.JSON(w, k.status, body)
}
