package script

import "sync"

// recent caches what was used recently. It has two generations: a value that is used moves
// to the younger one, and when that is full, the older one is dropped. It is safe for
// concurrent use; the zero value is ready to use.
type recent[K comparable, V any] struct {
	mu         sync.Mutex
	young, old map[K]V
	weight     int // of young
}

// generation is the weight of a full generation, in bytes.
const generation = 4 << 20

// find returns a value that was kept. weight is its approximate size in memory.
func (r *recent[K, V]) find(key K, weight int) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found, ok := r.young[key]; ok {
		return found, true
	}
	found, ok := r.old[key]
	if ok {
		r.put(key, found, weight)
	}
	return found, ok
}

// keep keeps a value, unless it would displace many others.
func (r *recent[K, V]) keep(key K, value V, weight int) {
	if weight > generation/8 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(key, value, weight)
}

// put puts a value into the younger generation; mu is held.
func (r *recent[K, V]) put(key K, value V, weight int) {
	if r.young == nil || r.weight+weight > generation {
		r.young, r.old, r.weight = map[K]V{}, r.young, 0
	}
	if _, ok := r.young[key]; !ok { // another goroutine may have added it
		r.weight += weight
	}
	r.young[key] = value
}
