package faultinject

import (
	"math"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/duration"
)

// kinds are the decisions about the next requests, one letter each.
func kinds(p *Plan, n int) string {
	out := make([]byte, n)
	for i := range out {
		_, kind, _ := p.Next()
		out[i] = "pfd"[kind]
	}
	return string(out)
}

func TestSeedDecides(t *testing.T) {
	t.Parallel()
	faults := Faults{Fail: 0.3, Drop: 0.2, Seed: 7}
	first := kinds(NewPlan("git", faults), 200)
	if again := kinds(NewPlan("git", faults), 200); again != first {
		t.Errorf("the same seed decided\n%s, then\n%s", first, again)
	}
	if other := kinds(NewPlan("mail", faults), 200); other == first {
		t.Error("two servers meet the same faults")
	}
	faults.Seed++
	if other := kinds(NewPlan("git", faults), 200); other == first {
		t.Error("two seeds decide the same")
	}
	// Written down, so that a seed means the same in every version.
	if got := kinds(NewPlan("git", Faults{Fail: 0.3, Drop: 0.2, Seed: 7}), 24); got != pinned {
		t.Errorf("seed 7 decides %s, in earlier versions %s", got, pinned)
	}
}

const pinned = "pfpdpfpffppppppfdpfdppff"

func TestShares(t *testing.T) {
	t.Parallel()
	p := NewPlan("git", Faults{Fail: 0.3, Drop: 0.1, Delay: duration.Duration(time.Second)})
	counts := map[Kind]int{}
	const n = 10_000
	for i := range n {
		delay, kind, number := p.Next()
		if delay != time.Second || number != uint64(i+1) {
			t.Fatalf("request %d is number %d and delayed by %v", i+1, number, delay)
		}
		counts[kind]++
	}
	for kind, want := range map[Kind]float64{Pass: 0.6, Fail: 0.3, Drop: 0.1} {
		if got := float64(counts[kind]) / n; math.Abs(got-want) > 0.02 {
			t.Errorf("share of kind %d is %v, want %v", kind, got, want)
		}
	}
}

// A plan goes on after a reconnect, and begins anew when its faults change.
func TestPlansLastUntilTheyChange(t *testing.T) {
	t.Parallel()
	var plans Plans
	faults := Faults{Fail: 0.5}
	first := plans.Of("git", faults)
	if plans.Of("git", faults) != first {
		t.Error("the plan of the same faults began anew")
	}
	if plans.Of("git", Faults{Fail: 0.5, Seed: 1}) == first {
		t.Error("other faults have the same plan")
	}
	if plans.Of("git", Faults{Seed: 3}) != nil {
		t.Error("there is a plan without faults")
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, wrong := range []Faults{{Delay: -1}, {Fail: -0.1}, {Fail: 1.1}, {Drop: 2}, {Fail: 0.6, Drop: 0.5}, {Fail: math.NaN()}} {
		if wrong.Validate() == nil {
			t.Errorf("%+v is valid", wrong)
		}
	}
	right := Faults{Delay: duration.Duration(200 * time.Millisecond), Fail: 0.1, Drop: 0.01, Seed: 5}
	if err := right.Validate(); err != nil {
		t.Error(err)
	}
	if got, want := right.String(), "delay 200ms, fail 10 %, drop 1 %, seed 5"; got != want {
		t.Errorf("described as %q, want %q", got, want)
	}
}
