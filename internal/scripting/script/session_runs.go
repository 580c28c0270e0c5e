package script

import "sync"

// runCounts counts the turns of sessions since they were last saved. A turn that changes
// nothing is not saved, but has a number of its own. It is safe for concurrent use.
type runCounts struct {
	mu     sync.Mutex
	counts map[string]int64 // by id; the count of all turns
}

// of returns how many turns a session has had, at least as many as were saved.
func (c *runCounts) of(id string, saved int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.counts[id], saved)
}

// set records the number of turns of a session that was not saved.
func (c *runCounts) set(id string, count int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int64{}
	}
	c.counts[id] = count
}

// forget removes a session, which was saved or closed.
func (c *runCounts) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.counts, id)
}
