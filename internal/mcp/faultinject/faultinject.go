// Package faultinject decides which requests to a server are delayed, fail or lose their
// connection, so that those who use the server can be tested. The decisions follow from a
// seed: the same requests in the same order meet the same faults.
package faultinject

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/duration"
)

// Faults are what is done to requests. The zero value does nothing.
type Faults struct {
	Delay duration.Duration `toml:"delay,omitempty" help:"how long each call is delayed, such as 200ms"`
	Fail  float64           `toml:"fail,omitempty" help:"share of the calls that are answered with an error, from 0 to 1"`
	Drop  float64           `toml:"drop,omitempty" help:"share of the calls during which the connection is lost, from 0 to 1"`
	Seed  uint64            `toml:"seed,omitempty" help:"another seed chooses other calls; with the same seed the same calls are chosen"`
}

// Any reports whether there are any faults.
func (f Faults) Any() bool { return f.Delay != 0 || f.Fail != 0 || f.Drop != 0 }

// Validate reports what is wrong with the faults.
func (f Faults) Validate() error {
	switch {
	case f.Delay < 0:
		return fmt.Errorf("faults.delay %v is negative", f.Delay)
	case !(f.Fail >= 0 && f.Fail <= 1):
		return fmt.Errorf("faults.fail %v is not between 0 and 1", f.Fail)
	case !(f.Drop >= 0 && f.Drop <= 1):
		return fmt.Errorf("faults.drop %v is not between 0 and 1", f.Drop)
	case f.Fail+f.Drop > 1:
		return fmt.Errorf("faults.fail and faults.drop are more than 1 together")
	}
	return nil
}

// String describes the faults for people.
func (f Faults) String() string {
	var parts []string
	if f.Delay > 0 {
		parts = append(parts, "delay "+f.Delay.String())
	}
	if f.Fail > 0 {
		parts = append(parts, "fail "+percent(f.Fail))
	}
	if f.Drop > 0 {
		parts = append(parts, "drop "+percent(f.Drop))
	}
	return strings.Join(append(parts, fmt.Sprintf("seed %d", f.Seed)), ", ")
}

func percent(share float64) string {
	return strconv.FormatFloat(share*100, 'g', 4, 64) + " %"
}

// Kind is what happens to a request.
type Kind uint8

// The kinds.
const (
	Pass Kind = iota // it is sent
	Fail             // it is answered with an error, without being sent
	Drop             // the connection is lost, without an answer
)

// Plan decides about the requests to one server. It is safe for concurrent use.
type Plan struct {
	faults Faults

	mu     sync.Mutex
	random *rand.Rand
	count  uint64
}

// NewPlan returns the plan of a server. Servers of different names meet different faults
// with the same seed.
func NewPlan(name string, faults Faults) *Plan {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))                                                        // never fails
	return &Plan{faults: faults, random: rand.New(rand.NewPCG(faults.Seed, h.Sum64()))} // faults are to be predictable
}

// Next decides about the next request: how long it is delayed, and then what happens.
// number counts the requests from 1.
func (p *Plan) Next() (delay time.Duration, kind Kind, number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	switch share := p.random.Float64(); {
	case share < p.faults.Fail:
		kind = Fail
	case share < p.faults.Fail+p.faults.Drop:
		kind = Drop
	}
	return time.Duration(p.faults.Delay), kind, p.count
}

// Plans has the plan of each server by name. A plan lasts as long as its faults do not
// change, also when the server is connected anew: otherwise the request after a lost
// connection would always meet the first decision again.
type Plans struct {
	mu    sync.Mutex
	plans map[string]*Plan
}

// Of returns the plan of a server; nil if it has no faults.
func (p *Plans) Of(name string, faults Faults) *Plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.plans[name]
	switch {
	case !faults.Any():
		delete(p.plans, name)
		return nil
	case known != nil && known.faults == faults:
		return known
	}
	if p.plans == nil {
		p.plans = map[string]*Plan{}
	}
	p.plans[name] = NewPlan(name, faults)
	return p.plans[name]
}
