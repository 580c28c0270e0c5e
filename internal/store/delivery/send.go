package delivery

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/store/db"
)

const (
	// tryTime is how long a try may take. After twice that, another process tries.
	tryTime = 15 * time.Second
	// stopTime is how long a try that has begun may go on when the process stops.
	stopTime = 5 * time.Second
	// lookTime is how often Run looks for deliveries of processes that have stopped.
	lookTime = 5 * time.Second
	// perOrigin is how many tries to one origin are under way at a time: one that does not
	// answer delays no other.
	perOrigin = 8
	// againPerOrigin is how many of those were tried before: what a receiver never accepts does
	// not delay what else it gets.
	againPerOrigin = perOrigin / 2
)

// load is how many tries to an origin are under way.
type load struct{ all, again int }

func (l *load) count(again bool, n int) {
	l.all += n
	if again {
		l.again += n
	}
}

// full reports whether another try has to wait.
func (l *load) full(again bool) bool {
	return l.all >= perOrigin || again && l.again >= againPerOrigin
}

// Run sends what is due until ctx ends, and waits for the tries that have begun.
func (s *Store) Run(ctx context.Context) {
	var tries sync.WaitGroup
	defer tries.Wait()
	var tidied time.Time
	for ctx.Err() == nil {
		pause, wake := context.WithCancel(ctx)
		s.mu.Lock()
		s.wake = wake
		s.mu.Unlock()
		wait, err := s.sendDue(ctx, &tries)
		if err == nil && s.now().Sub(tidied) > time.Hour {
			tidied = s.now()
			err = s.db.Exec(ctx, `DELETE FROM deliveries WHERE ended > 0 AND ended < $1`, tidied.Add(-keep).UnixMicro())
		}
		if err != nil && ctx.Err() == nil {
			s.options.Log.WarnContext(ctx, "webhooks that are due not sent", "error", err)
			wait = lookTime
		}
		_ = s.options.Clock.Sleep(pause, wait)
		wake()
	}
}

// Wake lets Run send at once what was added.
func (s *Store) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake()
}

// due is a delivery whose time has come.
type due struct {
	id, kind, url, origin string
	again                 bool // it was tried before
	body                  []byte
	number, outcome       int
	tries                 string
}

// sendDue begins the tries that are due, each in a goroutine of its own, and returns when to
// look again.
func (s *Store) sendDue(ctx context.Context, tries *sync.WaitGroup) (wait time.Duration, err error) {
	now := s.now()
	busy, args := s.busy(now.UnixMicro())
	ready, err := db.Find(ctx, s.db, func(row db.Scanner) (d due, err error) { return d, row.Scan(&d.id, &d.kind, &d.origin, &d.again) },
		`SELECT id, kind, origin, number > 0 FROM deliveries WHERE next > 0 AND next <= $1`+busy+` ORDER BY next LIMIT 100`, args...)
	if err != nil {
		return 0, err
	}
	crowded := false
	for _, d := range ready {
		if begun, full := s.begin(&d); !begun {
			crowded = crowded || full
			continue
		}
		taken, err := s.take(ctx, &d, now)
		if err != nil || !taken {
			s.end(&d)
			if err != nil {
				return 0, err
			}
			continue
		}
		tries.Go(func() {
			defer s.end(&d)
			s.try(ctx, &d)
		})
	}
	if crowded { // those to other origins may be behind them
		return 0, nil
	}
	return s.untilNext(ctx, now)
}

// untilNext returns how long nothing is due, at most lookTime.
func (s *Store) untilNext(ctx context.Context, now time.Time) (time.Duration, error) {
	var next time.Time
	err := s.db.QueryRow(ctx, `SELECT coalesce(min(next), 0) FROM deliveries WHERE next > $1`, now.UnixMicro()).Scan(db.Micros(&next))
	if err != nil || next.IsZero() {
		return lookTime, err
	}
	return min(lookTime, next.Sub(now)), nil
}

// begin counts a try to an origin, unless it has to wait, or the origin is busy.
func (s *Store) begin(d *due) (begun, busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	channel, known := s.channels[d.kind]
	to := s.sending[d.origin]
	if to == nil {
		to = &load{}
	}
	if busy = to.full(d.again); busy || !known || channel.Ready != nil && !channel.Ready(d.id) {
		return false, busy
	}
	to.count(d.again, 1)
	s.sending[d.origin] = to
	return true, false
}

// end counts a try that has ended.
func (s *Store) end(d *due) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.sending[d.origin]
	if to.full(true) {
		s.wake() // others to this origin may wait
	}
	if to.count(d.again, -1); to.all == 0 {
		delete(s.sending, d.origin)
	}
}

// busy are the conditions, beside the time, of what is not sent now because its origin is busy.
func (s *Store) busy(now int64) (conditions string, args []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	args = []any{now}
	for origin, to := range s.sending {
		if !to.full(true) {
			continue
		}
		args = append(args, origin)
		conditions += fmt.Sprintf(" AND (origin <> $%d", len(args))
		if !to.full(false) {
			conditions += " OR number = 0"
		}
		conditions += ")"
	}
	return conditions, args
}

// take claims a delivery, unless another process did.
func (s *Store) take(ctx context.Context, d *due, now time.Time) (taken bool, err error) {
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		err := tx.QueryRow(ctx, `UPDATE deliveries SET number = number + 1, next = $3 WHERE id = $1 AND next > 0 AND next <= $2
			RETURNING url, body, number, outcome, tries`, d.id, now.UnixMicro(), now.Add(2*tryTime).UnixMicro()).Scan(&d.url, &d.body, &d.number, &d.outcome, &d.tries)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		taken = err == nil
		return err
	})
	return taken, err
}

// try sends a delivery once, and stores the outcome.
func (s *Store) try(ctx context.Context, d *due) {
	if ctx.Err() != nil {
		s.release(ctx, d)
		return
	}
	s.mu.Lock()
	channel := s.channels[d.kind]
	s.mu.Unlock()
	if channel.Wanted != nil {
		if wanted, err := channel.Wanted(ctx, d.id); err != nil || !wanted {
			s.drop(ctx, d, err)
			return
		}
	}
	began := s.now()
	status := 0
	problem := Finish(ctx, tryTime, func(ctx context.Context) (err error) {
		status, err = channel.post(ctx, d, began)
		return err
	})
	if problem != nil && ctx.Err() != nil {
		s.release(ctx, d)
		return
	}
	err := Finish(ctx, tryTime, func(ctx context.Context) error { return s.store(ctx, d, began, status, problem) })
	if err = errors.Join(problem, err); err != nil {
		s.options.Log.WarnContext(ctx, "webhook_error", "event", "webhook_error", "kind", d.kind, "webhook_id", d.id, "origin", d.origin, "try", d.number, "error", err)
	}
}

// release lets the next process send a delivery at once.
func (s *Store) release(ctx context.Context, d *due) {
	err := Finish(ctx, tryTime, func(ctx context.Context) error {
		return s.db.Exec(ctx, `UPDATE deliveries SET number = number - 1, next = $3 WHERE id = $1 AND number = $2 AND outcome = $4`, d.id, d.number, s.now().UnixMicro(), d.outcome)
	})
	if err != nil {
		s.options.Log.WarnContext(ctx, "webhook not left to the next process", "kind", d.kind, "webhook_id", d.id, "error", err)
	}
}

// drop removes a delivery that nobody wants any more, unless there was an error.
func (s *Store) drop(ctx context.Context, d *due, err error) {
	if err == nil {
		err = s.db.Exec(ctx, `DELETE FROM deliveries WHERE id = $1 AND number = $2 AND outcome = $3`, d.id, d.number, d.outcome)
	}
	if err != nil && ctx.Err() == nil {
		s.options.Log.WarnContext(ctx, "webhook not sent", "kind", d.kind, "webhook_id", d.id, "error", err)
	}
}

// store stores the outcome of a try.
func (s *Store) store(ctx context.Context, d *due, began time.Time, status int, problem error) error {
	var tries []Try
	if err := json.Unmarshal([]byte(d.tries), &tries); err != nil {
		return err
	}
	now := s.now()
	last := Try{At: began, MS: now.Sub(began).Milliseconds(), Status: status}
	state, next, ended := Delivered, int64(0), now.UnixMicro()
	switch {
	case problem == nil:
		d.body = nil
	case status == http.StatusGone || d.number > len(Pauses):
		state = Failed
	default:
		state, next, ended = Waiting, now.Add(Pauses[d.number-1]).UnixMicro(), 0
	}
	if problem != nil {
		last.Error = redact.Cut(redact.Text(problem.Error()), 300)
	}
	tries = append(tries, last)
	text, err := json.Marshal(tries[max(0, len(tries)-2*len(Pauses)):])
	if err != nil {
		return err
	}
	// Not if it was replaced meanwhile, or is sent again.
	return s.db.Exec(ctx, `UPDATE deliveries SET state = $3, tries = $4, next = $5, ended = $6, body = $7 WHERE id = $1 AND number = $2 AND state = 'waiting' AND outcome = $8`,
		d.id, d.number, state, string(text), next, ended, append([]byte{}, d.body...), d.outcome)
}

// post sends a delivery and returns the status of the answer.
func (c *Channel) post(ctx context.Context, d *due, now time.Time) (status int, err error) {
	header := http.Header{"Webhook-Try": {fmt.Sprintf("%d of %d", d.number, len(Pauses)+1)}}
	if d.number <= len(Pauses) {
		header.Set("Webhook-Next-Try", now.Add(Pauses[d.number-1]).Format(time.RFC3339))
	}
	id := d.id
	if d.outcome > 1 { // receivers ignore an ID that they have had
		id = fmt.Sprintf("%s_%d", id, d.outcome)
	}
	return c.Post(ctx, d.url, id, now, d.body, header)
}

// Post sends JSON to an address once, as Standard Webhooks says. An answer with a status other
// than 2xx is an error.
func (c *Channel) Post(ctx context.Context, to, id string, now time.Time, body []byte, header http.Header) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	maps.Copy(r.Header, header)
	at := strconv.FormatInt(now.Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Webhook-Id", id)
	r.Header.Set("Webhook-Timestamp", at)
	if c.Trusted == nil || c.Trusted(r.URL) {
		maps.Copy(r.Header, c.Header)
		if err := c.sign(r.Header, id+"."+at+".", body); err != nil {
			return 0, err
		}
	}
	response, err := c.Client.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16)) // so that the connection can be used again
	if response.StatusCode/100 != 2 {
		return response.StatusCode, fmt.Errorf("the webhook answered %s", response.Status)
	}
	return response.StatusCode, nil
}

// sign adds the signature, if there is a secret.
func (c *Channel) sign(header http.Header, prefix string, body []byte) error {
	if c.Secret.IsZero() {
		return nil
	}
	key, err := KeyOf(c.Secret)
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(prefix))
	mac.Write(body)
	header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return nil
}

// KeyOf returns the key that a secret of signatures stands for.
func KeyOf(s secret.Text) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s.Reveal(), "whsec_"))
	if err != nil || len(key) == 0 {
		return nil, fault.New(fault.Config, "the secret of webhooks is not base64 after whsec_").WithHint("make one: echo whsec_$(openssl rand -base64 32)")
	}
	return key, nil
}

// Finish calls f with a context that lasts as long as f may take, and ends a while after ctx:
// if f were cut where the other side has accepted something already, the next process would
// send it again.
func Finish(ctx context.Context, most time.Duration, f func(context.Context) error) error {
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		select {
		case <-time.After(stopTime):
			cancel()
		case <-lasting.Done():
		}
	})()
	return f(lasting)
}
