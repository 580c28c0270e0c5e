package openaiapi

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/chat/failure"
	"github.com/luanette/luanette/internal/core/principal"
)

// errorBody is the body of every error, and an event of a stream that breaks off.
type errorBody struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// word is how clients of OpenAI know a kind of failure.
type word struct {
	status     int
	name, code string // code may be empty
	retry      int    // seconds after which a retry may succeed
}

var words = map[failure.Kind]word{
	failure.Internal:     {http.StatusInternalServerError, "server_error", "internal_error", 0},
	failure.Invalid:      {http.StatusBadRequest, "invalid_request_error", "", 0},
	failure.InvalidAudio: {http.StatusBadRequest, "invalid_request_error", "", 0},
	failure.TooLarge:     {http.StatusRequestEntityTooLarge, "invalid_request_error", "request_too_large", 0},
	failure.Unauthorized: {http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", 0},
	failure.Forbidden:    {http.StatusForbidden, "permission_error", "insufficient_permissions", 0},
	failure.NotFound:     {http.StatusNotFound, "invalid_request_error", "unknown_url", 0},
	failure.UnknownModel: {http.StatusNotFound, "invalid_request_error", "model_not_found", 0},
	failure.Conflict:     {http.StatusConflict, "invalid_request_error", "conflict", 0},
	failure.Busy:         {http.StatusTooManyRequests, "requests", "rate_limit_exceeded", 10},
	failure.RateLimited:  {http.StatusTooManyRequests, "requests", "rate_limit_exceeded", 10},
	failure.OverBudget:   {http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota", 0},
	failure.ModelFailed:  {http.StatusBadGateway, "server_error", "model_error", 0},
	failure.ModelRefused: {http.StatusBadRequest, "invalid_request_error", "context_length_exceeded", 0},
	failure.TimedOut:     {http.StatusGatewayTimeout, "server_error", "timeout", 0},
	failure.Unavailable:  {http.StatusServiceUnavailable, "server_error", "unavailable", 5},
	failure.Moved:        {http.StatusServiceUnavailable, "server_error", "unavailable", 5},
}

// paramError is an error in one field of a request.
type paramError struct {
	param string
	error
}

func (e paramError) Unwrap() error { return e.error }

// bad returns the error of a field.
func bad(param, format string, args ...any) error {
	return paramError{param, fault.New(fault.InvalidParams, format, args...)}
}

// spentError is an error after which clients must not send the request again by
// themselves: tools were called for it.
type spentError struct{ error }

func (e spentError) Unwrap() error { return e.error }

// ofTurn classifies an error of the agent.
func ofTurn(err error) error {
	err = failure.OfTurn(err)
	if failure.Of(err) == failure.OverBudget {
		return spentError{err} // it stays so for hours
	}
	return err
}

func bodyOf(err error, w word) errorBody {
	detail := errorDetail{Message: failure.Message(err), Type: w.name}
	var field paramError
	if errors.As(err, &field) {
		detail.Param = &field.param
	}
	if w.code != "" {
		detail.Code = &w.code
	}
	return errorBody{detail}
}

// refuse responds with an error.
func refuse(w http.ResponseWriter, err error) { refuseWith(w, words[failure.Of(err)], err) }

// refuseAs responds to a request that was refused before it reached this package.
func refuseAs(w http.ResponseWriter, status int, err error) {
	known := words[failure.Of(err)]
	if status == http.StatusUnauthorized {
		known = words[failure.Unauthorized]
	}
	known.status = status
	refuseWith(w, known, err)
}

func refuseWith(w http.ResponseWriter, known word, err error) {
	var spent spentError
	if errors.As(err, &spent) {
		w.Header().Set("X-Should-Retry", "false") // OpenAI's libraries repeat requests otherwise
	}
	if after, ok := principal.RetryAfter(err); ok {
		w.Header().Set("Retry-After", principal.RetryHeader(after))
	} else if known.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(known.retry))
	}
	httpjson.JSON(w, known.status, bodyOf(err, known))
}
