package job_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/jobs/job"
)

// jumpingClock is the machine's clock, which somebody sets.
type jumpingClock struct {
	clock.Clock
	offset atomic.Int64
}

func (c *jumpingClock) Now() time.Time { return c.Clock.Now().Add(time.Duration(c.offset.Load())) }

func (c *jumpingClock) jump(d time.Duration) { c.offset.Add(int64(d)) }

// A clock that is set by a day, in either direction, stops no schedule, and makes none
// start many jobs at once.
func TestSchedulesFollowTheClock(t *testing.T) {
	t.Parallel()
	d := database(t)
	synctest.Test(t, func(t *testing.T) {
		now := &jumpingClock{Clock: clock.Real()}
		options := keep
		options.Clock = now
		q := open(t, d, newStage(), options)
		cron := schedule(t, q, job.Spec{Source: "read:a"}, "*/10 * * * * *")
		every := schedule(t, q, job.Spec{Source: "read:a"}, "@every 10s")
		counts := func() [2]int {
			synctest.Wait()
			return [2]int{len(started(t, q, cron.ID)), len(started(t, q, every.ID))}
		}
		const day = 24 * time.Hour
		time.Sleep(35 * time.Second)
		before := counts()
		for _, jump := range []time.Duration{-day, day, day, -2 * day} {
			now.jump(jump)
			time.Sleep(2 * time.Minute) // it is noticed within a minute
			after := counts()
			for i := range after {
				if n := after[i] - before[i]; n < 6 || n > 13 {
					t.Errorf("schedule %d: %d jobs in the 2 minutes after a jump of %v, want 6 to 13", i+1, n, jump)
				}
			}
			before = after
			all, err := q.Schedules(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range all {
				if wait := s.Next.Sub(now.Now()); wait > 10*time.Second {
					t.Errorf("after a jump of %v the next job of %s is in %v", jump, s.Cron, wait)
				}
			}
		}
		shut(t, q)

		now.jump(-day) // while no process runs
		q = open(t, d, newStage(), options)
		time.Sleep(21 * time.Second)
		if after := counts(); after[0] < before[0]+2 || after[1] < before[1]+1 {
			t.Errorf("after a start with a clock that was set back, %v jobs, before %v", after, before)
		}
		shut(t, q)
	})
}
