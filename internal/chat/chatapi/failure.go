package chatapi

import (
	"errors"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/chat/failure"
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

// word is how clients know a kind of failure.
type word struct {
	status int
	name   string
	code   string
	retry  int // seconds after which a retry may succeed
}

var words = map[failure.Kind]word{
	failure.Internal:     {http.StatusInternalServerError, "InternalError", "INTERNAL_ERROR", 0},
	failure.Invalid:      {http.StatusBadRequest, "ValidationError", "VALIDATION_ERROR", 0},
	failure.InvalidAudio: {http.StatusBadRequest, "AudioTranscriptionError", "AUDIO_TRANSCRIPTION_ERROR", 0},
	failure.TooLarge:     {http.StatusRequestEntityTooLarge, "RequestTooLargeError", "REQUEST_BODY_TOO_LARGE", 0},
	failure.Unauthorized: {http.StatusUnauthorized, "AuthenticationError", "AUTHENTICATION_ERROR", 0},
	failure.Forbidden:    {http.StatusForbidden, "AuthorizationError", "AUTHORIZATION_ERROR", 0},
	failure.NotFound:     {http.StatusNotFound, "NotFoundError", "NOT_FOUND", 0},
	failure.Conflict:     {http.StatusConflict, "ConflictError", "CONFLICT", 0},
	failure.Busy:         {http.StatusTooManyRequests, "QueueDepthError", "QUEUE_DEPTH_EXCEEDED", 5},
	failure.RateLimited:  {http.StatusTooManyRequests, "RateLimitError", "RATE_LIMIT_EXCEEDED", 10},
	failure.OverBudget:   {http.StatusTooManyRequests, "BudgetError", "BUDGET_EXCEEDED", 0},
	failure.ModelFailed:  {http.StatusBadGateway, "ClaudeAPIError", "CLAUDE_API_ERROR", 0},
	failure.ModelRefused: {http.StatusRequestEntityTooLarge, "ClaudeRequestTooLargeError", "CLAUDE_REQUEST_BODY_TOO_LARGE", 0},
	failure.TimedOut:     {http.StatusGatewayTimeout, "TimeoutError", "TIMEOUT_ERROR", 0},
	failure.Unavailable:  {http.StatusServiceUnavailable, "UnavailableError", "UNAVAILABLE", 5},
	failure.Moved:        {http.StatusServiceUnavailable, "MovedError", "MOVED", 2},
}

// ofTurn classifies an error of the agent. A model that cannot be reached is the model's
// failure here: a message that was not taken has failed before.
func ofTurn(err error) error {
	if fault.CodeOf(err) == fault.Unavailable {
		return failure.As(failure.ModelFailed, err)
	}
	return failure.OfTurn(err)
}

// failureOf converts an error for clients.
func failureOf(err error) (body Failure, status int) {
	w := words[failure.Of(err)]
	f := Failure{Error: w.name, Code: w.code, Message: failure.Message(err), RetryAfter: w.retry * 1000}
	if after, ok := principal.RetryAfter(err); ok {
		f.RetryAfter = int(after.Milliseconds())
	}
	var to movedTo
	if errors.As(err, &to) {
		f.MessageKey = to.key
	}
	return f, w.status
}

// refuse responds with an error.
func refuse(w http.ResponseWriter, err error) {
	body, status := failureOf(err)
	if body.RetryAfter > 0 {
		w.Header().Set("Retry-After", principal.RetryHeader(time.Duration(body.RetryAfter)*time.Millisecond))
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	httpjson.JSON(w, status, body)
}
