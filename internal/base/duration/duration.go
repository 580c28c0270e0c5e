// Package duration has time.Duration as settings have it.
package duration

import (
	"fmt"
	"time"
)

// Duration is a time.Duration written as people write it: "30s", "5m".
type Duration time.Duration

// UnmarshalText reads what MarshalText writes.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 30s or 5m", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes "1m30s".
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String is "1m30s".
func (d Duration) String() string { return time.Duration(d).String() }
