package host

import (
	"context"
	"time"
)

// sleepEffect only waits.
const sleepEffect = "clock.sleep"

// longSleep is the duration from which the beginning of a sleep is worth a record.
const longSleep = time.Second

// isLongSleep reports whether a step waits so long that a resumed run should not wait
// again from the beginning.
func isLongSleep(s *Step) bool {
	if s.Name != sleepEffect || len(s.Args) == 0 {
		return false
	}
	switch milliseconds := s.Args[0].(type) {
	case int64:
		return milliseconds >= longSleep.Milliseconds()
	case float64:
		return milliseconds >= float64(longSleep.Milliseconds())
	default:
		return false
	}
}

// beganKey is the context key of the time at which an earlier process began the effect.
type beganKey struct{}

// Began returns when an effect began in the process that stopped during it; the zero time
// for an effect that begins now.
func Began(ctx context.Context) time.Time {
	began, _ := ctx.Value(beganKey{}).(time.Time)
	return began
}
