package job_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/host"
)

// empty runs scripts that do nothing.
type empty struct{}

func (e empty) RunJob(context.Context, job.Task) (job.Outcome, error) { return job.Outcome{}, nil }

// BenchmarkJobs measures durable jobs from Submit to the stored end, 64 at once.
func BenchmarkJobs(b *testing.B) {
	q := open(b, database(b), empty{}, job.Options{Workers: 64})
	defer shut(b, q)
	var all sync.WaitGroup
	slots := make(chan struct{}, 64)
	b.ResetTimer()
	for range b.N {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			id := submit(b, q, job.Spec{Source: "empty"})
			if _, _, err := q.Poll(b.Context(), []string{id}, longTime, true); err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkSubmit measures how long one caller waits for its job's id.
func BenchmarkSubmit(b *testing.B) {
	q := open(b, database(b), empty{}, job.Options{})
	defer shut(b, q)
	for b.Loop() {
		submit(b, q, job.Spec{Source: "empty"})
	}
}

// BenchmarkEffect measures what the journal adds to one effect of a job, by kind.
func BenchmarkEffect(b *testing.B) {
	for _, kind := range []host.Kind{host.Read, host.Idempotent, host.Write} {
		b.Run(kind.String(), func(b *testing.B) {
			s := newStage()
			q := open(b, database(b), s, job.Options{})
			defer shut(b, q)
			b.ResetTimer()
			await(b, q, submit(b, q, job.Spec{Source: strings.Repeat(kind.String()+":x ", b.N)}))
		})
	}
}
