package job_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/jobs/job"
)

func TestSubmitOnce(t *testing.T) {
	t.Parallel()
	q := open(t, database(t), newStage(), job.Options{})
	defer shut(t, q)
	spec := job.Spec{Source: "write:a"}
	first, repeated, err := q.SubmitOnce(t.Context(), spec, "one", time.Hour)
	if err != nil || repeated {
		t.Fatalf("first: repeated %t, %v", repeated, err)
	}
	again, repeated, err := q.SubmitOnce(t.Context(), spec, "one", time.Hour)
	if err != nil || !repeated || again.ID != first.ID {
		t.Errorf("again: job %s, repeated %t, %v; want %s", again.ID, repeated, err, first.ID)
	}
	other, repeated, err := q.SubmitOnce(t.Context(), spec, "two", time.Hour)
	if err != nil || repeated || other.ID == first.ID {
		t.Errorf("other: job %s, repeated %t, %v", other.ID, repeated, err)
	}
	if page, err := q.List(t.Context(), job.Filter{}, 0, ""); err != nil || page.Total != 2 {
		t.Errorf("%d jobs, %v; want 2", page.Total, err)
	}
	if _, _, err := q.SubmitOnce(t.Context(), job.Spec{}, "three", time.Hour); err == nil {
		t.Error("a job without a script was accepted")
	}
	if _, repeated, err := q.SubmitOnce(t.Context(), spec, "three", time.Hour); err != nil || repeated {
		t.Errorf("a key whose job was refused: repeated %t, %v", repeated, err)
	}
}

// Many requests with one key at the same time start one job.
func TestSubmitOnceAtOnce(t *testing.T) {
	t.Parallel()
	q := open(t, database(t), newStage(), job.Options{})
	defer shut(t, q)
	ids := make(chan string, 20)
	for range cap(ids) {
		go func() {
			j, _, err := q.SubmitOnce(t.Context(), job.Spec{Source: "write:a"}, "same", time.Hour)
			if err != nil {
				t.Error(err)
			}
			ids <- j.ID
		}()
	}
	first := <-ids
	for range cap(ids) - 1 {
		if id := <-ids; id != first {
			t.Errorf("jobs %s and %s", first, id)
		}
	}
}

func TestKeysExpire(t *testing.T) {
	t.Parallel()
	d := database(t)
	synctest.Test(t, func(t *testing.T) {
		q := open(t, d, newStage(), job.Options{})
		defer shut(t, q)
		first, _, err := q.SubmitOnce(t.Context(), job.Spec{Source: "write:a"}, "one", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute) // past its end, and a sweep
		again, repeated, err := q.SubmitOnce(t.Context(), job.Spec{Source: "write:a"}, "one", time.Minute)
		if err != nil || repeated || again.ID == first.ID {
			t.Errorf("after its end: repeated %t, %v", repeated, err)
		}
	})
}
