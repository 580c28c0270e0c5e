package hub

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"
)

// streamBytes is how much a stream stores: unread messages before notifications are
// dropped, and read messages for replay.
const streamBytes = 1 << 20

// stream is a queue of messages to one client. Senders never block. A stream with a name
// numbers its messages from 1 and stores the latest, so that a client that lost its
// connection can resume after the last message it saw.
type stream struct {
	name string

	mu     sync.Mutex
	wake   chan struct{} // see changed
	log    [][]byte      // messages first, first+1, …
	first  uint64        // number of log[0]
	next   uint64        // number of the first message not yet taken
	size   int           // bytes in log
	ended  bool          // nothing more will come
	cut    bool          // the reader has to disconnect and to reconnect later
	retry  time.Duration // after which the reader reconnects
	reader reader        // the current reader; nil if there is only ever one
}

// reader is a connection that reads a stream. It is closed when another connection
// replaces it.
type reader chan struct{}

func newStream(name string) *stream {
	s := new(stream)
	s.open(name)
	return s
}

// open prepares a zero stream.
func (s *stream) open(name string) {
	s.name, s.first, s.next = name, 1, 1
}

// send adds a message that must not be dropped.
func (s *stream) send(message []byte) { s.add(message, true) }

// offer adds a message that is dropped if the client reads too slowly.
func (s *stream) offer(message []byte) { s.add(message, false) }

func (s *stream) add(message []byte, must bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || !must && s.waiting() > streamBytes {
		return
	}
	s.log = append(s.log, message)
	s.size += len(message)
	s.trim()
	s.signal()
}

// end ends the stream after its last message.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.signal()
}

// disconnect makes the reader disconnect, and reconnect for the rest after retry.
func (s *stream) disconnect(retry time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut, s.retry = true, retry
	s.signal()
}

// changed returns a channel that holds a token when there is something to read. It is made
// when first needed, since the streams of most requests are never read.
func (s *stream) changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wake == nil {
		s.wake = make(chan struct{}, 1)
		if s.ended || s.cut || s.untaken() {
			s.signal()
		}
	}
	return s.wake
}

func (s *stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// waiting is the number of unread bytes.
func (s *stream) waiting() int {
	n := 0
	for _, m := range s.log[s.next-s.first:] {
		n += len(m)
	}
	return n
}

// trim drops read messages: all of them in a stream without a name, otherwise the oldest
// beyond streamBytes.
func (s *stream) trim() {
	for len(s.log) > 0 && s.first < s.next && (s.name == "" || s.size > streamBytes) {
		s.size -= len(s.log[0])
		s.log[0] = nil
		s.log = s.log[1:]
		s.first++
	}
}

func (s *stream) pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.untaken()
}

func (s *stream) untaken() bool { return s.next < s.first+uint64(len(s.log)) }

// position is the number of the last message taken.
func (s *stream) position() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next - 1
}

// batch is what a reader takes: messages, the number of the first, and the state of the
// stream after them.
type batch struct {
	messages [][]byte
	from     uint64
	ended    bool
	cut      bool
	retry    time.Duration
}

// take returns the unread messages. A reader that was replaced gets none.
func (s *stream) take(by reader) batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if by != s.reader {
		return batch{}
	}
	b := batch{from: s.next, ended: s.ended, cut: s.cut, retry: s.retry}
	if rest := s.log[s.next-s.first:]; len(rest) > 0 {
		b.messages = append(b.messages, rest...)
		s.next += uint64(len(rest))
	}
	s.cut = false
	s.trim()
	return b
}

// attach makes a new reader, which replaces the one before.
func (s *stream) attach() reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replaceReader()
}

var errNotStored = errors.New("events after that id are no longer stored")

// attachAfter makes a new reader that begins after a message.
func (s *stream) attachAfter(number uint64) (reader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number+1 < s.first || number >= s.first+uint64(len(s.log)) {
		return nil, errNotStored
	}
	s.next = number + 1
	return s.replaceReader(), nil
}

func (s *stream) replaceReader() reader {
	if s.reader != nil {
		close(s.reader)
	}
	s.reader = make(reader)
	return s.reader
}

// eventID names a message of a stream: "name-number". Number 0 stands before the
// first message.
func eventID(name string, number uint64) string {
	return name + "-" + strconv.FormatUint(number, 10)
}

func parseEventID(id string) (name string, number uint64, ok bool) {
	name, digits, found := strings.Cut(id, "-")
	number, err := strconv.ParseUint(digits, 10, 64)
	return name, number, found && err == nil
}
