package eventrelay

import "sync"

// counts is the number of events that each other node has sent.
type counts struct {
	mu      sync.Mutex
	gap     bool               // notifications may have been missed since the start
	senders map[string]*sender // by node id
}

// sender is another node that sent events.
type sender struct {
	name     string
	sent     uint64
	doubtful bool // it may have sent more
	lost     bool // it did not reply when it was asked
}

// doubt notes that notifications may have been missed. Again is false before the
// first notification, when there was nothing to miss.
func (c *counts) doubt(again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gap = c.gap || again
	for _, s := range c.senders {
		s.doubtful = true
	}
}

// silent returns the names of nodes that did not report their count since it became
// doubtful, each once. A node that reports later is still known, and the events it
// sent meanwhile are counted.
func (c *counts) silent() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.senders {
		if s.doubtful && !s.lost {
			s.lost = true
			names = append(names, s.name)
		}
	}
	return names
}

// add makes a node known from its first message. The events it sent before that are
// missing only if notifications may have been missed since the start.
func (c *counts) add(m *message) *sender {
	if c.senders == nil {
		c.senders = map[string]*sender{}
	}
	for id, s := range c.senders {
		if s.lost && s.name == m.Node { // m comes from its restart
			delete(c.senders, id)
		}
	}
	s := &sender{name: m.Node}
	if !c.gap {
		s.sent = m.Before
	}
	c.senders[m.ID] = s
	return s
}

// update removes from a message the events that were received before, and returns the
// number of events that were sent in between and are missing.
func (c *counts) update(m *message) (missing uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.senders[m.ID]
	if s == nil {
		s = c.add(m)
	}
	s.doubtful, s.lost = false, false
	before, after := s.sent, m.Before+uint64(len(m.Events))
	switch {
	case m.Before > before:
		missing = m.Before - before
	case after <= before:
		m.Events = nil
		return 0
	default:
		m.Events = m.Events[before-m.Before:]
	}
	s.sent = after
	return missing
}
