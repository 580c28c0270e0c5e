package approval

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/store/db"
)

// Webhook is an address that is told of requests, signed by Standard Webhooks.
type Webhook struct {
	URL    string
	Secret secret.Text // base64 after whsec_
	Client *http.Client
}

// Notice is what the webhook gets. It has nothing of the arguments, which may be secret.
type Notice struct {
	Type string     `json:"type"` // "approval.requested"
	Time time.Time  `json:"timestamp"`
	Data NoticeData `json:"data"`
}

// NoticeData describes the request.
type NoticeData struct {
	ID      string    `json:"approval_id"`
	Subject string    `json:"subject"`
	Script  string    `json:"script"`
	AskedBy string    `json:"asked_by"`
	Org     string    `json:"org,omitempty"`
	Role    string    `json:"role,omitempty"`
	Needed  int       `json:"needed"`
	Expires time.Time `json:"expires_at"`
}

// noticeTimeout is how long an attempt may take, and after which another process tries.
const noticeTimeout = 30 * time.Second

// stopTimeout is how long an attempt that has begun may go on when the process stops.
const stopTimeout = 5 * time.Second

// noticeRetries is how long to wait after an attempt that failed. It is repeated until the
// request is decided or expires.
var noticeRetries = backoff.Policy{First: 5 * time.Second, Max: 10 * time.Minute}

// sendNotices sends the notices that are due, each in a goroutine of its own.
func (o *Store) sendNotices(ctx context.Context, running *sync.WaitGroup) error {
	if o.options.Webhook == nil {
		return nil
	}
	const due = `state = 'pending' AND notice > 0 AND notice <= $1`
	now, count := o.now(), 0
	err := o.db.QueryRow(ctx, `SELECT count(*) FROM approvals WHERE `+due, now.UnixMicro()).Scan(&count)
	if err != nil || count == 0 {
		return err
	}
	var list []Approval
	err = o.db.Write(ctx, func(tx *db.Tx) (err error) { // another process may have taken them
		list, err = db.All(ctx, tx, scan, `UPDATE approvals SET notice = $2, notice_tries = notice_tries + 1 WHERE `+due+` RETURNING `+columns,
			now.UnixMicro(), now.Add(2*noticeTimeout).UnixMicro())
		return err
	})
	for _, a := range list {
		running.Go(func() { o.sendNotice(ctx, a) })
	}
	return err
}

// sendNotice sends one notice, and stores when to repeat it if that fails.
func (o *Store) sendNotice(ctx context.Context, a Approval) {
	if ctx.Err() != nil {
		return // the next process sends it
	}
	problem := finish(ctx, func(ctx context.Context) error { return o.options.Webhook.send(ctx, &a, o.now()) })
	if problem != nil && ctx.Err() != nil {
		return // the next process repeats it
	}
	err := finish(ctx, func(ctx context.Context) error { return o.storeNotice(ctx, a.ID, problem) })
	if err = errors.Join(problem, err); err != nil {
		o.options.Log.WarnContext(ctx, "webhook not told of an approval", "approval", a.ID, "error", err)
	}
}

// storeNotice stores that a notice was sent, or when it is repeated.
func (o *Store) storeNotice(ctx context.Context, id string, problem error) error {
	return o.db.Write(ctx, func(tx *db.Tx) error {
		next, tries := int64(0), 0
		if problem != nil {
			if err := tx.QueryRow(ctx, `SELECT notice_tries FROM approvals WHERE id = $1`, id).Scan(&tries); err != nil {
				return err
			}
			next = o.now().Add(noticeRetries.Delay(tries)).UnixMicro()
		}
		_, err := tx.Exec(ctx, `UPDATE approvals SET notice = $2 WHERE id = $1`, id, next)
		return err
	})
}

// finish calls f with a context that ends a while after ctx: if f were cut where the other
// side has accepted something already, the next process would send it again.
func finish(ctx context.Context, f func(context.Context) error) error {
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), noticeTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		select {
		case <-time.After(stopTimeout):
			cancel()
		case <-lasting.Done():
		}
	})()
	return f(lasting)
}

// send posts the notice. Its id is the approval's, so that a receiver recognises one that
// comes again.
func (w *Webhook) send(ctx context.Context, a *Approval, now time.Time) error {
	body, err := json.Marshal(Notice{Type: Requested{}.EventType(), Time: now, Data: NoticeData{
		ID: a.ID, Subject: a.Subject, Script: a.Name, AskedBy: a.Asker.Title(), Org: a.Org, Role: a.Role, Needed: a.Needed, Expires: a.Expires,
	}})
	if err != nil {
		return err
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(w.Secret.Reveal(), "whsec_"))
	if err != nil || len(key) == 0 {
		return errors.New("the secret of the webhook is not base64 after whsec_")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(a.ID + "." + at + "."))
	mac.Write(body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Webhook-Id", a.ID)
	r.Header.Set("Webhook-Timestamp", at)
	r.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	response, err := w.Client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16)) // so that the connection can be used again
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("the webhook answered %s", response.Status)
	}
	return nil
}
