package clock

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// told is a Waiter that notes when it was told.
type told struct {
	name string
	in   *notes
}

type notes struct {
	began time.Time
	mu    sync.Mutex
	list  []string
}

func (o told) Overdue() {
	o.in.mu.Lock()
	defer o.in.mu.Unlock()
	o.in.list = append(o.in.list, o.name+" "+time.Since(o.in.began).String())
}

// taken are the notes since they were last taken.
func (n *notes) taken() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.list
	n.list = nil
	return list
}

func TestVigil(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var v Vigil
		in := &notes{began: time.Now()}
		waits := map[string]*Wait{}
		begin := func(name string, after time.Duration) {
			waits[name] = &Wait{}
			v.Begin(waits[name], told{name, in}, after)
		}
		end := func(name string, want bool) {
			if got := v.End(waits[name]); got != want {
				t.Errorf("%s was waiting: %v, want %v", name, got, want)
			}
		}
		begin("first", 10*time.Second)
		begin("second", 12*time.Second)
		begin("sooner", 5*time.Second)
		begin("between", 11*time.Second)
		begin("moved", 6*time.Second)
		begin("last", 20*time.Second)
		time.Sleep(4 * time.Second)
		v.Move(waits["moved"], 9*time.Second)
		end("first", true)
		end("first", false)
		end("last", true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []string{"sooner 5s", "between 11s", "second 12s", "moved 13s"}; !slices.Equal(in.taken(), want) {
			t.Errorf("not told %q", want)
		}
		end("second", false)
		v.Move(waits["second"], time.Second) // it is over

		begin("again", time.Minute) // though there was nothing to wait for
		end("again", true)
		v.Rest()
		begin("after a rest", time.Second)
		time.Sleep(time.Hour)
		synctest.Wait()
		if want := []string{"after a rest 1m5s"}; !slices.Equal(in.taken(), want) {
			t.Errorf("not told %q", want)
		}
	})
}

func BenchmarkWait(b *testing.B) {
	b.Run("vigil", func(b *testing.B) {
		b.ReportAllocs()
		var v Vigil
		var w Wait
		for b.Loop() {
			v.Begin(&w, nobody{}, time.Minute)
			v.End(&w)
		}
		v.Rest()
	})
	b.Run("timer", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			time.AfterFunc(time.Minute, nobody{}.Overdue).Stop()
		}
	})
}

type nobody struct{}

func (nobody) Overdue() {}
