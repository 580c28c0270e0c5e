package js

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"
)

// TestPooledInstancesAreClean checks that pooled instances contain nothing of earlier scripts,
// and that the pool does not exceed its size.
func TestPooledInstancesAreClean(t *testing.T) {
	t.Parallel()
	const size = 3
	e := newEngine(t, Options{PoolSize: size})
	var all sync.WaitGroup
	failures := make([]error, 4*size)
	for i := range failures {
		all.Go(func() {
			_, failures[i] = e.Run(t.Context(), Program{Source: "const secret = 'sesame'.repeat(1000); globalThis.list = Array.from(secret); secret.length", Limits: Limits{Time: time.Minute}}, HostFuncs{})
		})
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
	if err := e.underway.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.pool.mu.Lock()
	defer e.pool.mu.Unlock()
	if len(e.pool.ready) == 0 || len(e.pool.ready) > size || len(e.pool.used) != 0 || e.pool.tidying {
		t.Errorf("%d are ready, %d are not", len(e.pool.ready), len(e.pool.used))
	}
	for _, in := range e.pool.ready {
		if memory := in.memory.bytes(); !bytes.Equal(memory, e.prepared.machine.template.full) || bytes.Contains(memory, []byte("sesamesesame")) {
			t.Error("an instance is not as the template is")
		}
	}
}
