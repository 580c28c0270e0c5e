package approval

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/mail"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/delivery"
)

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

// Notices are the deliveries of this package.
const Notices = "approval"

// addNotice stores a notice of a new request. Its id is the approval's.
func (s *Store) addNotice(ctx context.Context, tx *db.Tx, a *Approval) error {
	if s.options.Webhook == "" {
		return nil
	}
	body, err := json.Marshal(Notice{Type: Requested{}.EventType(), Time: a.Created, Data: NoticeData{
		ID: a.ID, Subject: a.Subject, Script: a.Name, AskedBy: a.Asker.Title(), Org: a.Org, Role: a.Role, Needed: a.Needed, Expires: a.Expires,
	}})
	if err != nil {
		return err
	}
	return s.options.Deliveries.Add(ctx, tx, delivery.Delivery{ID: a.ID, Kind: Notices, Org: a.Org, URL: s.options.Webhook, Body: body})
}

// NoticeWanted reports whether a request still waits for a decision.
func (s *Store) NoticeWanted(ctx context.Context, id string) (wanted bool, err error) {
	err = s.db.QueryRow(ctx, `SELECT count(*) > 0 FROM approvals WHERE id = $1 AND state = 'pending'`, id).Scan(&wanted)
	return wanted, err
}

// Mail tells people by mail of requests that need their role.
type Mail struct {
	Sender *mail.Sender
	Page   string // the address of the page of approvals
}

const (
	// mailPause is how long somebody gets no further mail after one: requests of that time
	// are in one message.
	mailPause = 5 * time.Minute
	// mailTries is how often a message is tried.
	mailTries = 12
	// mailTime is how long an attempt may take. After twice that, another process tries.
	mailTime = 30 * time.Second
	// mailSize is how many requests a message names.
	mailSize = 20
)

// mailRetries is how long to wait after an attempt that failed.
var mailRetries = backoff.Policy{First: 10 * time.Second, Max: time.Hour}

// sendMails tells people of requests, each person in a goroutine of its own. What is to be
// sent is stored, so that another process goes on after a crash.
func (s *Store) sendMails(ctx context.Context, running *sync.WaitGroup) error {
	if s.options.Mail == nil || s.options.People == nil {
		return nil
	}
	if err := s.addressMails(ctx); err != nil {
		return err
	}
	all, err := s.directory(ctx)
	if err != nil {
		return err
	}
	due, err := s.takeMails(ctx)
	for person, list := range due {
		running.Go(func() { s.sendMail(ctx, all, person, list) })
	}
	return err
}

// addressMails stores who is told of requests that are new.
func (s *Store) addressMails(ctx context.Context) error {
	const fresh = `SELECT ` + columns + ` FROM approvals WHERE state = 'pending' AND role <> '' AND NOT EXISTS (SELECT 1 FROM approval_mails WHERE approval = id)`
	var list []Approval
	list, err := db.Find(ctx, s.db, scan, fresh)
	if err != nil || len(list) == 0 {
		return err
	}
	all, err := s.directory(ctx)
	if err != nil {
		return err
	}
	for i := range list {
		people, err := s.deciders(ctx, all, &list[i])
		if err != nil {
			return err
		}
		next := s.now().UnixMicro()
		if len(people) == 0 {
			people, next = []string{""}, 0
		}
		err = s.db.Write(ctx, func(tx *db.Tx) error {
			for _, person := range people {
				if _, err := tx.Exec(ctx, `INSERT INTO approval_mails (approval, person, next, tries, sent) SELECT id, $2, $3, 0, 0 FROM approvals WHERE id = $1 ON CONFLICT DO NOTHING`, list[i].ID, person, next); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// deciders returns the people with the role of a request, and those who decide in their
// place, whose address their provider has verified. The asker does not decide, and neither
// does who would in the asker's place.
func (s *Store) deciders(ctx context.Context, all directory, a *Approval) (list []string, err error) {
	substitutes, err := s.substitutes(ctx, all, a)
	for id, p := range all {
		may := all.has(id, a.Org, a.Role) || slices.ContainsFunc(substitutes, func(d Delegation) bool { return d.To == id && !a.askedBy(d.Person) })
		if may && p.Verified && !a.askedBy(id) {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list, err
}

// takeMails returns the requests that people are told of now. Others do not take them for
// a while.
func (s *Store) takeMails(ctx context.Context) (due map[string][]Approval, err error) {
	now := s.now()
	const ready = `next > 0 AND next <= $1 AND person NOT IN (SELECT person FROM approval_mails WHERE sent > $2)`
	args := []any{now.UnixMicro(), now.Add(-mailPause).UnixMicro()}
	count := 0
	err = s.db.QueryRow(ctx, `SELECT count(*) FROM approval_mails WHERE `+ready, args...).Scan(&count)
	if err != nil || count == 0 {
		return nil, err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		type place struct{ approval, person string }
		places, err := db.All(ctx, tx, func(row db.Scanner) (p place, err error) { return p, row.Scan(&p.approval, &p.person) },
			`UPDATE approval_mails SET next = $3, tries = tries + 1 WHERE `+ready+` RETURNING approval, person`, append(args, now.Add(2*mailTime).UnixMicro())...)
		due = map[string][]Approval{}
		for _, p := range places {
			if err != nil {
				return err
			}
			var a Approval
			a, err = scan(tx.QueryRow(ctx, `SELECT `+columns+` FROM approvals WHERE id = $1`, p.approval))
			due[p.person] = append(due[p.person], a)
		}
		return err
	})
	return due, err
}

// sendMail tells one person of requests, and stores when to repeat it if that fails.
func (s *Store) sendMail(ctx context.Context, all directory, person string, list []Approval) {
	slices.SortFunc(list, func(a, b Approval) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	open, problem := s.openFor(ctx, all, person, list)
	if problem == nil && len(open) > 0 {
		problem = delivery.Finish(ctx, mailTime, func(ctx context.Context) error {
			return s.options.Mail.Sender.Send(ctx, s.options.Mail.message(all[person].Email, open, s.now()))
		})
	}
	if problem != nil && ctx.Err() != nil {
		return // the next process repeats it
	}
	if err := delivery.Finish(ctx, mailTime, func(ctx context.Context) error { return s.storeMails(ctx, person, list, len(open) > 0, problem) }); err != nil {
		problem = err
	}
	if problem != nil {
		s.options.Log.WarnContext(ctx, "no mail sent of approvals", "person", person, "approvals", len(open), "error", problem)
	}
}

// openFor returns those requests of a list that a person is to decide. What was decided
// meanwhile, or is not theirs any more, is not mentioned.
func (s *Store) openFor(ctx context.Context, all directory, person string, list []Approval) (open []Approval, err error) {
	for i := range list {
		deciders, err := s.deciders(ctx, all, &list[i])
		if err != nil {
			return nil, err
		}
		if list[i].State == Pending && slices.Contains(deciders, person) {
			open = append(open, list[i])
		}
	}
	return open, nil
}

// storeMails stores that requests were sent, or when they are tried again.
func (s *Store) storeMails(ctx context.Context, person string, list []Approval, sent bool, problem error) error {
	now := s.now()
	return s.db.Write(ctx, func(tx *db.Tx) error {
		for i := range list {
			var tries int
			if err := tx.QueryRow(ctx, `SELECT coalesce(max(tries), 0) FROM approval_mails WHERE approval = $1 AND person = $2`, list[i].ID, person).Scan(&tries); err != nil {
				return err
			}
			next, at := int64(0), int64(0)
			switch {
			case problem != nil && tries < mailTries:
				next = now.Add(mailRetries.Delay(tries)).UnixMicro()
			case problem == nil && sent:
				at = now.UnixMicro()
			}
			if _, err := tx.Exec(ctx, `UPDATE approval_mails SET next = $3, sent = $4 WHERE approval = $1 AND person = $2`, list[i].ID, person, next, at); err != nil {
				return err
			}
		}
		return nil
	})
}

// message names the requests. It has nothing of the arguments, which may be secret.
func (m *Mail) message(to string, list []Approval, now time.Time) mail.Message {
	var text strings.Builder
	text.WriteString("Somebody waits for your decision:\n\n")
	for i := range min(len(list), mailSize) {
		a := &list[i]
		fmt.Fprintf(&text, "%s, asked by %s", plain(a.Subject), plain(a.Asker.Title()))
		if a.Name != "" {
			fmt.Fprintf(&text, " in the script %s", plain(a.Name))
		}
		fmt.Fprintf(&text, "\n  needs %d of the role %s until %s (%s)\n", a.Needed, plain(a.Role), a.Expires.Format("2006-01-02 15:04 MST"), a.ID)
	}
	if more := len(list) - mailSize; more > 0 {
		fmt.Fprintf(&text, "and %d more\n", more)
	}
	fmt.Fprintf(&text, "\nWhat exactly will be done is on the page, after you sign in:\n%s\n", m.Page)
	subject := "Approval needed: " + plain(list[0].Subject)
	if len(list) > 1 {
		subject = fmt.Sprintf("%d approvals needed", len(list))
	}
	return mail.Message{To: to, Subject: subject, Text: text.String(), ID: messageID(to, list), Date: now}
}

// messageID is the same when somebody is told of the same requests again, after a crash
// that left unclear whether the first message was accepted.
func messageID(to string, list []Approval) string {
	content := to
	for i := range list {
		content += "\n" + list[i].ID
	}
	hash := sha256.Sum256([]byte(content))
	return hex.EncodeToString(hash[:16])
}

// plain is text from elsewhere on one line of limited length.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > 100 {
		text = string(runes[:100]) + "…"
	}
	return text
}
