package zmtp

import (
	"maps"
	"sync"
)

// maxTopic is the longest subscription of a peer in bytes.
const maxTopic = 4 << 10

// topics is a set of subscriptions, which are prefixes of messages. Subscribing
// twice is the same as once.
type topics struct {
	mu  sync.RWMutex
	set map[string]struct{}
}

func newTopics() *topics { return &topics{set: make(map[string]struct{})} }

// add reports whether topic is new. A set has at most limit topics.
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

// match reports whether a topic is a prefix of frame. It tries each topic or each
// prefix of the frame, whichever are fewer.
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

// copy returns a copy of the set.
func (t *topics) copy() map[string]struct{} {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return maps.Clone(t.set)
}
