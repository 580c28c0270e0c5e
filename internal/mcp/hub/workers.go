package hub

import (
	"sync"
	"sync/atomic"
)

// mostIdle is how many workers wait for the next task.
const mostIdle = 64

// workers run tasks in goroutines that stay for the next one: a fresh goroutine
// would have to grow its stack for every call anew, which costs more than most of
// what it does.
type workers struct {
	tasks chan func() // taken by those who wait
	idle  atomic.Int32
	group sync.WaitGroup
}

// run runs task at once, in a worker that waits or in a new one. When closing is
// closed, those who wait leave.
func (w *workers) run(task func(), closing <-chan struct{}) {
	select {
	case w.tasks <- task:
	default:
		w.group.Go(func() { w.work(task, closing) })
	}
}

func (w *workers) work(task func(), closing <-chan struct{}) {
	for {
		task()
		task = nil // it holds a whole request
		if w.idle.Add(1) > mostIdle {
			w.idle.Add(-1)
			return
		}
		select {
		case task = <-w.tasks:
			w.idle.Add(-1)
		case <-closing:
			return
		}
	}
}
