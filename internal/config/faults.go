package config

import (
	"time"

	"github.com/luanette/luanette/internal/mcp/faultinject"
)

// UpstreamFaults are the faults that calls of an upstream meet.
type UpstreamFaults struct {
	Delay Duration `toml:"delay,omitempty" help:"how long each call is delayed, such as 200ms"`
	Fail  float64  `toml:"fail,omitempty" help:"share of the calls that are answered with an error, from 0 to 1"`
	Drop  float64  `toml:"drop,omitempty" help:"share of the calls during which the connection is lost, from 0 to 1"`
	Seed  int64    `toml:"seed,omitempty" help:"another seed chooses other calls; with the same seed the same calls are chosen"`
}

func (u *UpstreamFaults) settings() faultinject.Faults {
	if u == nil {
		return faultinject.Faults{}
	}
	return faultinject.Faults{Delay: time.Duration(u.Delay), Fail: u.Fail, Drop: u.Drop, Seed: uint64(u.Seed)}
}
