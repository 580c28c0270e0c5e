package zmtp

import (
	"maps"
	"sync"
)

// maxTopic bounds a subscription of a peer in bytes.
const maxTopic = 4 << 10

// topics is a set of subscriptions: beginnings of messages somebody wants.
// Subscribing twice is the same as once.
type topics struct {
	mu  sync.RWMutex
	set map[string]struct{}
}

func newTopics() *topics { return &topics{set: make(map[string]struct{})} }

// add reports whether topic is new to a set of fewer than limit.
func (t *topics) add(topic string, limit int) (added bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.set[topic]; known {
		return false, nil
	}
	if len(t.set) >= limit {
		return false, violation("subscribe: more than %d subscriptions", limit)
	}
	t.set[topic] = struct{}{}
	return true, nil
}

// remove reports whether topic was in the set.
func (t *topics) remove(topic string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, known := t.set[topic]
	delete(t.set, topic)
	return known
}

// match tells whether a message with this first frame is wanted. It costs no
// more than the number of topics or the length of the frame, whichever is less.
func (t *topics) match(frame []byte) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.set) <= len(frame) {
		for topic := range t.set {
			if len(topic) <= len(frame) && topic == string(frame[:len(topic)]) {
				return true
			}
		}
		return false
	}
	for n := range len(frame) + 1 {
		if _, wanted := t.set[string(frame[:n])]; wanted {
			return true
		}
	}
	return false
}

// copy is the set as it is now.
func (t *topics) copy() map[string]struct{} {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return maps.Clone(t.set)
}
