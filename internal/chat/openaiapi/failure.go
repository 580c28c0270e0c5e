package openaiapi

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
)

// failure is the body of every error, and an event of a stream that breaks off.
type failure struct {
	Error failureDetail `json:"error"`
}

type failureDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// kind is a type of failure as clients of OpenAI know it.
type kind struct {
	status     int
	name, code string // code may be empty
	retry      int    // seconds after which a retry may succeed
}

var (
	invalid     = kind{http.StatusBadRequest, "invalid_request_error", "", 0}
	unknownURL  = kind{http.StatusNotFound, "invalid_request_error", "unknown_url", 0}
	noModel     = kind{http.StatusNotFound, "invalid_request_error", "model_not_found", 0}
	tooLong     = kind{http.StatusBadRequest, "invalid_request_error", "context_length_exceeded", 0}
	tooLarge    = kind{http.StatusRequestEntityTooLarge, "invalid_request_error", "request_too_large", 0}
	wrongKey    = kind{http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", 0}
	forbidden   = kind{http.StatusForbidden, "permission_error", "insufficient_permissions", 0}
	rateLimited = kind{http.StatusTooManyRequests, "requests", "rate_limit_exceeded", 10}
	overBudget  = kind{http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota", 0}
	modelFailed = kind{http.StatusBadGateway, "server_error", "model_error", 0}
	timedOut    = kind{http.StatusGatewayTimeout, "server_error", "timeout", 0}
	unavailable = kind{http.StatusServiceUnavailable, "server_error", "unavailable", 5}
	internal    = kind{http.StatusInternalServerError, "server_error", "internal_error", 0}
)

// kindError is an error with a known kind.
type kindError struct {
	kind kind
	err  error
}

func (e kindError) Error() string { return e.err.Error() }
func (e kindError) Unwrap() error { return e.err }

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

func kindOf(err error) kind {
	var known kindError
	if errors.As(err, &known) {
		return known.kind
	}
	switch fault.CodeOf(err) {
	case fault.InvalidParams:
		return invalid
	case fault.NeedsAuth:
		return wrongKey
	case fault.Denied:
		return forbidden
	case fault.NotFound:
		return unknownURL
	case fault.Limit:
		return rateLimited
	case fault.Timeout:
		return timedOut
	case fault.Unavailable, fault.Cancelled:
		return unavailable
	default:
		return internal
	}
}

// ofTurn classifies an error of the agent, whose upstream is the model.
func ofTurn(err error) error {
	switch fault.CodeOf(err) {
	case fault.NeedsAuth, fault.Upstream, fault.Denied, fault.Config:
		return kindError{modelFailed, err}
	case fault.Limit:
		if _, budget := principal.RetryAfter(err); budget {
			return spentError{kindError{overBudget, err}} // it stays so for hours
		}
		return kindError{tooLong, err}
	default:
		return err
	}
}

func failureOf(err error) (failure, kind) {
	k := kindOf(err)
	body := failureDetail{Message: err.Error(), Type: k.name}
	if hint := fault.HintOf(err); hint != "" {
		body.Message += " (" + hint + ")"
	}
	var field paramError
	if errors.As(err, &field) {
		body.Param = &field.param
	}
	if k.code != "" {
		body.Code = &k.code
	}
	return failure{body}, k
}

// refuse responds with an error.
func refuse(w http.ResponseWriter, err error) {
	body, k := failureOf(err)
	var spent spentError
	if errors.As(err, &spent) {
		w.Header().Set("X-Should-Retry", "false") // OpenAI's libraries repeat requests otherwise
	}
	if after, ok := principal.RetryAfter(err); ok {
		w.Header().Set("Retry-After", principal.RetryHeader(after))
	} else if k.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(k.retry))
	}
	httpjson.JSON(w, k.status, body)
}

// refuseAs responds to a request that was refused before it reached this package.
func refuseAs(w http.ResponseWriter, status int, err error) {
	if k := kindOf(err); k.status != status {
		k.status = status
		if status == http.StatusUnauthorized {
			k = wrongKey
		}
		err = kindError{k, err}
	}
	refuse(w, err)
}
