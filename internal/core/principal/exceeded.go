package principal

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Exceeded describes a limit that was reached, and when to try again.
type Exceeded struct {
	What  string        // what is limited: requests, tool calls
	Of    string        // whose limit it is: the key web, the user ada, the upstream fs
	Most  int           // the limit
	Per   string        // the period: minute, day; empty: at the same time
	After time.Duration // when to try again
}

// Fault returns the error for the caller.
func (x Exceeded) Fault() *fault.Error {
	after := x.After.Round(time.Second)
	if x.After < time.Second {
		after = max(x.After.Round(time.Millisecond), time.Millisecond)
	}
	per := "at a time"
	if x.Per != "" {
		per = "a " + x.Per
	}
	return fault.New(fault.Limit, "%s may have %d %s %s", x.Of, x.Most, x.What, per).
		WithHint("try again in %v", after).
		WithDetails(details{Limit: x.Most, What: x.What, Of: x.Of, Per: x.Per, RetryAfterMS: after.Milliseconds()})
}

type details struct {
	Limit        int    `json:"limit"`
	What         string `json:"what"`
	Of           string `json:"of"`
	Per          string `json:"per,omitempty"`
	RetryAfterMS int64  `json:"retry_after_ms"`
}

// RetryAfter returns the delay after which a refused request may be retried.
func RetryAfter(err error) (time.Duration, bool) {
	for f := (*fault.Error)(nil); errors.As(err, &f); err = errors.Unwrap(f) {
		var d struct { // only this: other limits than those of Exceeded are not whole numbers
			RetryAfterMS float64 `json:"retry_after_ms"`
		}
		if f.Code == fault.Limit && json.Unmarshal(f.Details, &d) == nil && d.RetryAfterMS > 0 {
			return time.Duration(d.RetryAfterMS * float64(time.Millisecond)), true
		}
	}
	return 0, false
}

// RetryHeader returns the value of the Retry-After header: whole seconds, at least
// one.
func RetryHeader(after time.Duration) string {
	return fmt.Sprint(max(1, int64((after+time.Second-1)/time.Second)))
}
