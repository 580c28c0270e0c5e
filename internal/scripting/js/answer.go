package js

import (
	"encoding/json"
	"errors"

	"github.com/luanette/luanette/internal/base/fault"
)

// Answers are passed to the prelude as one string whose first letter is the type.
const (
	answerValue     = "v" // JSON
	answerBig       = "b" // JSON with integers that a JavaScript number cannot hold
	answerUndefined = "u" // nothing
	answerError     = "e" // JSON: message, code, hint
)

// encodeAnswer encodes the host's answer for the prelude.
func encodeAnswer(result json.RawMessage, err error) string {
	switch {
	case err != nil:
		return encodeError(err)
	case len(result) == 0:
		return answerUndefined
	case !json.Valid(result):
		return encodeError(fault.New(fault.Internal, "the answer is not JSON"))
	default:
		return encodeJSON(result)
	}
}

// encodeJSON marks valid JSON for the prelude.
func encodeJSON(b []byte) string {
	if hasBigInteger(b) {
		return answerBig + string(b)
	}
	return answerValue + string(b)
}

func encodeError(err error) string {
	var body struct {
		Message string `json:"message"`
		Code    string `json:"code,omitempty"`
		Hint    string `json:"hint,omitempty"`
	}
	body.Message = err.Error()
	var f *fault.Error
	if errors.As(err, &f) {
		body.Code, body.Hint = string(f.Code), fault.HintOf(err)
	}
	b, _ := json.Marshal(body) // strings always marshal
	return answerError + string(b)
}

// hasBigInteger reports whether valid JSON has 16 or more digits in a row outside
// strings: an integer that may exceed 2^53. The prelude checks exactly.
func hasBigInteger(b []byte) bool {
	digits, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString:
			if c == '\\' {
				i++
			} else if c == '"' {
				inString = false
			}
		case c == '"':
			inString, digits = true, 0
		case c >= '0' && c <= '9':
			if digits++; digits >= 16 {
				return true
			}
		default:
			digits = 0
		}
	}
	return false
}
