package db

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/backoff"
)

const (
	maxFrame = 7000             // Postgres accepts fewer than 8000 bytes per notification
	maxQueue = 4096             // notes queued while the server is unreachable
	silence  = 20 * time.Second // time without a notification after which the connection is checked
)

// pgCarrier uses LISTEN and NOTIFY, with all topics on one channel of the schema. It sends
// notifications in batches that do not wait for the disk: Postgres commits transactions
// that notify one at a time.
type pgCarrier struct {
	p       *postgres
	broker  *broker
	channel string
	ctx     context.Context // of the background goroutines, until close
	stop    context.CancelFunc
	work    sync.WaitGroup
	begin   sync.Once // listening
	speak   sync.Once // sending

	mu      sync.Mutex
	queue   []note
	dropped bool          // the queue was full
	waiting chan struct{} // holds one value when the queue is not empty
}

func (p *postgres) carrier(b *broker) carrier {
	ctx, stop := context.WithCancel(context.Background())
	return &pgCarrier{
		p: p, broker: b, channel: fmt.Sprintf("luanette_%x", uint64(p.key("news"))),
		ctx: ctx, stop: stop, waiting: make(chan struct{}, 1),
	}
}

func (r *pgCarrier) listen() { r.begin.Do(func() { r.work.Go(r.receive) }) }

// receive delivers the notifications of the server, and reconnects when necessary.
func (r *pgCarrier) receive() {
	last := map[string]uint64{}
	for failures := 0; r.ctx.Err() == nil; failures++ {
		if failures > 0 && sleep(r.ctx, backoff.Policy{Jitter: 0.5}.Delay(failures)) != nil {
			return
		}
		if r.receiveAll(last) {
			failures = 0
		}
		r.broker.setConnected(false)
	}
}

// receiveAll listens until the connection is lost, and reports whether there was one. last
// has the numbers of the notes received before.
func (r *pgCarrier) receiveAll(last map[string]uint64) (connected bool) {
	conn, err := r.p.dialPlain(r.ctx)
	if err != nil {
		return false
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx) // it is lost, or no longer needed
	}()
	if _, err := conn.Exec(r.ctx, "LISTEN "+r.channel); err != nil {
		return false
	}
	r.broker.setConnected(true)
	mail := inbox{parts: map[string][]string{}, last: last}
	for {
		ctx, cancel := context.WithTimeout(r.ctx, silence)
		n, err := conn.WaitForNotification(ctx)
		quiet := ctx.Err() != nil
		cancel()
		switch {
		case err == nil:
			r.decode(mail, n.Payload)
		case r.ctx.Err() != nil, !quiet, conn.Ping(r.ctx) != nil:
			return true
		}
	}
}

func (r *pgCarrier) send(notes ...note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return
	}
	r.speak.Do(func() { r.work.Go(r.transmit) })
	if len(r.queue)+len(notes) > maxQueue {
		r.queue, r.dropped = nil, true
	} else {
		r.queue = append(r.queue, notes...)
	}
	select {
	case r.waiting <- struct{}{}:
	default:
	}
}

// transmit sends the queue, all of it at once, and the rest of it before it ends.
func (r *pgCarrier) transmit() {
	var count uint64
	sender := rand.Text()
	for ending := false; !ending; {
		select {
		case <-r.waiting:
		case <-r.ctx.Done():
			ending = true
		}
		r.mu.Lock()
		notes, dropped := r.queue, r.dropped
		r.queue, r.dropped = nil, false
		r.mu.Unlock()
		var frames []string
		if dropped {
			frames = append(frames, gapFrame)
		}
		for _, n := range notes {
			count++
			frames = append(frames, encode(sender+"."+strconv.FormatUint(count, 36), n)...)
		}
		if len(frames) > 0 {
			r.deliver(frames)
		}
	}
}

// deliver sends frames to the server, and retries while it is unreachable. The server may
// get them twice if its reply was slow; receivers drop duplicates.
func (r *pgCarrier) deliver(frames []string) {
	for failures := 1; ; failures++ {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), 2*time.Second)
		_, err := r.p.all.Exec(ctx, `WITH soon AS (SELECT set_config('synchronous_commit', 'off', true))
			SELECT pg_notify($1, frame) FROM soon, unnest($2::TEXT[]) AS frame`, r.channel, frames)
		cancel()
		if err == nil || r.ctx.Err() != nil {
			return
		}
		_ = sleep(r.ctx, backoff.Policy{Jitter: 0.5}.Delay(failures))
	}
}

func (r *pgCarrier) close() {
	r.mu.Lock()
	r.stop()
	r.mu.Unlock()
	r.work.Wait()
}

// gapFrame says that notes were dropped.
const gapFrame = "gap"

// encode frames a note: its id, the index and number of its parts, whether it is text or
// base64, its topic, the part. The parts of one note are sent together.
func encode(id string, n note) []string {
	kind, body := "t", n.payload
	if len(body) > maxFrame || !utf8.ValidString(body) || strings.ContainsRune(body, 0) {
		kind, body = "b", base64.RawStdEncoding.EncodeToString([]byte(body))
	}
	total := max(1, (len(body)+maxFrame-1)/maxFrame)
	frames := make([]string, total)
	for i := range frames {
		part := body[i*maxFrame : min(len(body), (i+1)*maxFrame)]
		frames[i] = fmt.Sprintf("%s %d %d %s %s %s", id, i, total, kind, n.topic, part)
	}
	return frames
}

// inbox is the state of a receiver: the parts of notes by their id, and the number of the
// last note of each sender.
type inbox struct {
	parts map[string][]string
	last  map[string]uint64
}

// known reports whether a note was received before: the numbers of a sender increase.
func (in inbox) known(id string) bool {
	sender, number := numbered(id)
	return number <= in.last[sender]
}

func (in inbox) note(id string) {
	sender, number := numbered(id)
	in.last[sender] = number
}

// numbered splits an id into sender and number.
func numbered(id string) (sender string, number uint64) {
	sender, digits, _ := strings.Cut(id, ".")
	number, _ = strconv.ParseUint(digits, 36, 64) // no note has the number zero
	return sender, number
}

// decode reads a frame, and delivers the note if the frame is its last part. It ignores
// frames that it cannot read: they are not from this program.
func (r *pgCarrier) decode(in inbox, frame string) {
	if frame == gapFrame {
		r.broker.notifyMissed()
		return
	}
	field := strings.SplitN(frame, " ", 6)
	if len(field) != 6 {
		return
	}
	id, kind, topic, body := field[0], field[3], field[4], field[5]
	if in.known(id) {
		return
	}
	if field[2] != "1" {
		in.parts[id] = append(in.parts[id], body)
		if field[2] != strconv.Itoa(len(in.parts[id])) {
			return
		}
		body = strings.Join(in.parts[id], "")
		delete(in.parts, id)
	}
	in.note(id)
	if kind == "b" {
		raw, err := base64.RawStdEncoding.DecodeString(body)
		if err != nil {
			return
		}
		body = string(raw)
	}
	r.broker.deliver(note{topic, body})
}
