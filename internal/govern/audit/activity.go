package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

// Activity is what an entry about a call has beside its hashed text: what people who
// watch their agents read, for Options.Activity.
type Activity struct {
	Own    bool // a read of our own page, or for a plan
	Detail Detail

	client  string // the connection or user behind it: whoever asked, not who decided
	agent   string
	session string // public name of the client's session or the job; "" if it has none
	title   string // what the call says about the purpose of the session
}

// Detail is stored as JSON. Arguments and results are previews without secrets.
type Detail struct {
	Parent  string          `json:"parent,omitempty"` // the request that made the call: its entry's Request
	Args    json.RawMessage `json:"args,omitempty"`
	Sent    int64           `json:"sent,omitempty"` // bytes of the arguments
	Result  json.RawMessage `json:"result,omitempty"`
	Message string          `json:"message,omitempty"` // what went wrong
	Waited  int64           `json:"waited_us,omitempty"`
	Job     string          `json:"job,omitempty"` // id of the job that it started

	// Approval is the id of the request that the call, or the script that it ran, waits for.
	Approval string `json:"approval,omitempty"`
}

// pageAgent is how our own page calls itself.
const pageAgent = "luanette-hud"

// jobSession is the prefix of the names of sessions that are jobs.
const jobSession = "job:"

// activityOf describes a call, or returns nil if it is not wanted. While many entries wait to be written,
// they are stored without, so that they take little memory.
func (l *Log) activityOf(ctx context.Context, i *tool.Invocation) *Activity {
	if l.options.Activity <= 0 || l.isBusy() {
		return nil
	}
	a := &Activity{Own: isOwn(ctx, i), Detail: Detail{Sent: int64(len(i.Args)), Job: i.Result.Task}}
	if caller := i.Call.Caller; caller != nil {
		a.setClient(caller.ID, caller.Agent)
	}
	if origin := tool.OriginOf(ctx); origin != nil {
		a.setOrigin(origin, i.Relayed)
	}
	if scope := tool.ScopeOf(ctx); scope == nil || !scope.HideArgs {
		a.describe(i)
	}
	return a
}

func (a *Activity) setClient(id, agent string) {
	a.client, a.agent, a.session = id, agent, ""
	if strings.HasPrefix(id, "session:") {
		a.session = id
	}
}

// setOrigin adds what the call is part of. The origin is the call's own, unless it was relayed.
func (a *Activity) setOrigin(origin *tool.Origin, relayed bool) {
	if asker := origin.Asker; asker != nil {
		a.setClient(asker.ID, asker.Agent)
	}
	if origin.Job != "" {
		a.session, a.title = jobSession+origin.Job, origin.Name
	}
	parent := origin
	if !relayed {
		a.Detail.Waited, parent = origin.Waited().Microseconds(), origin.Outer()
	}
	if parent != nil && parent.Call != [8]byte{} {
		a.Detail.Parent = hex.EncodeToString(parent.Call[:])
	}
}

// isBusy reports whether much waits to be written.
func (l *Log) isBusy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.accepted-l.settled > l.options.Queue/2
}

// isOwn reports whether nobody asked for the call: it reads what a page or a plan shows. What
// our page shows of a server it reads through call_tool_read; people call tools otherwise.
func isOwn(ctx context.Context, i *tool.Invocation) bool {
	if tool.IsForPlan(ctx) {
		return true
	}
	caller := i.Call.Caller
	reads := i.Info.Hints.ReadOnly && (i.Info.Ref.Space == "" || tool.IsOnlyReading(ctx))
	return reads && caller != nil && strings.HasPrefix(caller.Agent, pageAgent)
}

// describe adds what the call was about.
func (a *Activity) describe(i *tool.Invocation) {
	a.Detail.Args = preview(i.Args)
	switch {
	case i.Err != nil:
		a.Detail.Message = redact.Cut(redact.Text(i.Err.Error()), longestText)
	case a.Own:
	default:
		a.Detail.Result, a.Detail.Approval = previewOf(i.Result.Raw), pendingApproval(i.Result)
	}
	if a.title == "" && i.Info.Ref == (tool.Ref{Name: "search_tools"}) {
		a.title = searched(i.Args)
	}
}

// pendingApproval is what a call waits for. Most results are not decoded for it.
func pendingApproval(result tool.Result) string {
	if !bytes.Contains(result.Raw, []byte(tool.StatusPending)) {
		return ""
	}
	view, err := result.View()
	if err != nil {
		return ""
	}
	id, _ := view.PendingApproval()
	return id
}

// searched is what a client has searched for.
func searched(args json.RawMessage) string {
	query, _ := rawjson.GetText(args, "query")
	if query == "" {
		var all struct{ Queries []string }
		if json.Unmarshal(args, &all) == nil && len(all.Queries) > 0 {
			query = all.Queries[0]
		}
	}
	return redact.Cut(redact.Text(query), 120)
}

// Session is what a client did in one go: until it ended its session or, without one,
// until it made no call for sessionGap. A job is a session of its own.
type Session struct {
	ID     string    `json:"id"`
	Who    string    `json:"who"`
	Name   string    `json:"name,omitempty"` // of who
	Org    string    `json:"org,omitempty"`
	Agent  string    `json:"agent,omitempty"`
	Title  string    `json:"title"`
	Server string    `json:"server,omitempty"` // whose tools were called; ends with + if there are others
	Began  time.Time `json:"began"`
	Latest time.Time `json:"latest"`

	Steps  int64 `json:"steps"`
	Calls  int64 `json:"calls"` // of servers' tools
	Failed int64 `json:"failed"`
	Denied int64 `json:"denied"`
	Asked  int64 `json:"asked"`     // calls that needed approval
	Worked int64 `json:"worked_us"` // without waiting for people
	Waited int64 `json:"waited_us"`
	Given  int64 `json:"given"` // bytes that the client sent and got
	Used   int64 `json:"used"`  // bytes that it would have sent and got without scripts

	grouped string
	words   string
}

// sessionGap separates the sessions of clients that have none.
const sessionGap = 30 * time.Minute

const sessionColumns = `id, grouped, who, name, org, agent, title, server, began, latest, steps, calls, failed, denied, asked, worked, waited, given, used, words`

func scanSession(from db.Scanner) (s Session, err error) {
	var began, latest int64
	err = from.Scan(&s.ID, &s.grouped, &s.Who, &s.Name, &s.Org, &s.Agent, &s.Title, &s.Server, &began, &latest,
		&s.Steps, &s.Calls, &s.Failed, &s.Denied, &s.Asked, &s.Worked, &s.Waited, &s.Given, &s.Used, &s.words)
	s.Began, s.Latest = time.UnixMicro(began).UTC(), time.UnixMicro(latest).UTC()
	return s, err
}

// addActivity gives new rows their sessions, and counts them there.
func (s *Store) addActivity(ctx context.Context, tx *db.Tx, entries []Entry, rows []newRow) error {
	sessions := map[string]*Session{} // by group
	for i := range entries {
		e := &entries[i]
		if e.Activity == nil {
			continue
		}
		group := e.group()
		found := sessions[group]
		if found == nil || e.At.Sub(found.Latest) > sessionGap && e.Activity.session == "" {
			if found != nil {
				if err := found.store(ctx, tx); err != nil {
					return err
				}
			}
			var err error
			if found, err = sessionOf(ctx, tx, e, group); err != nil {
				return err
			}
			sessions[group] = found
		}
		found.count(e)
		detail, _ := json.Marshal(e.Activity.Detail) // previews are valid JSON
		rows[i].session, rows[i].detail = found.ID, column(string(detail))
		if e.Activity.Own {
			rows[i].own = 1
		}
	}
	for _, found := range sessions {
		if err := found.store(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// group is what entries of one session have in common.
func (e *Entry) group() string {
	if e.Activity.session != "" {
		return e.Activity.session + " " + e.Who
	}
	return strings.Join([]string{e.Who, e.For, e.Activity.client, e.Activity.agent}, " ")
}

// sessionOf finds the session of an entry, or makes it.
func sessionOf(ctx context.Context, tx *db.Tx, e *Entry, group string) (*Session, error) {
	since := e.At.Add(-sessionGap).UnixMicro()
	if e.Activity.session != "" {
		since = 0
	}
	found, err := scanSession(tx.QueryRow(ctx, `SELECT `+sessionColumns+` FROM audit_sessions WHERE grouped = $1 AND latest >= $2 ORDER BY latest DESC LIMIT 1`,
		column(group), since))
	if !errors.Is(err, sql.ErrNoRows) {
		return &found, err
	}
	return &Session{
		ID: e.newSessionID(group), grouped: column(group), Who: column(e.Who), Name: column(e.Name), Org: column(e.Org), Agent: column(e.Activity.agent),
		Began: e.At, Latest: e.At,
	}, nil
}

// newSessionID is a public name: that of the client's session or job, if there is one that
// belongs to one principal only.
func (e *Entry) newSessionID(group string) string {
	if e.Activity.session != "" {
		return column(e.Activity.session)
	}
	sum := sha256.Sum256([]byte(group + strconv.FormatInt(e.At.UnixMicro(), 10)))
	return "run:" + hex.EncodeToString(sum[:6])
}

// count adds an entry to the session.
func (s *Session) count(e *Entry) {
	s.extend(e.At, e.At.Add(time.Duration(e.Took)*time.Microsecond))
	a := e.Activity
	if a.Own {
		return
	}
	s.Steps++
	if s.Title == "" {
		s.Title = column(a.title)
	}
	size := e.Size + a.Detail.Sent
	if a.Detail.Parent == "" {
		s.Given += size
		s.Waited += a.Detail.Waited
		s.Worked += max(0, e.Took-a.Detail.Waited)
	}
	s.remember(mostTools, e.Subject)
	s.remember(mostWords, a.title, e.Error, a.Detail.Message, string(a.Detail.Args))
	if e.Decision == "ask" {
		s.Asked++
		return
	}
	if server, _, isUpstream := strings.Cut(e.Subject, "."); isUpstream {
		s.countCall(e, size)
		s.addServer(server)
	}
}

// extend makes the session last at least from one time to another.
func (s *Session) extend(from, to time.Time) {
	if from.Before(s.Began) {
		s.Began = from
	}
	if to.After(s.Latest) {
		s.Latest = to
	}
}

// countCall counts a call of a server's tool, of so many bytes.
func (s *Session) countCall(e *Entry, size int64) {
	s.Calls++
	s.Used += size
	if e.Error != "" {
		s.Failed++
	}
	if e.Decision == "deny" || e.Error == string(fault.Denied) {
		s.Denied++
	}
}

// addServer names the first server whose tools were called, and marks that there are others.
func (s *Session) addServer(name string) {
	switch {
	case s.Server == "":
		s.Server = column(name)
	case s.Server != name && !strings.HasSuffix(s.Server, "+"):
		s.Server += "+"
	}
}

// Bounds of the text that a session is found by: up to mostWords for what calls say, up to
// mostTools for names of tools, which are few, and by which sessions are filtered.
const (
	mostWords = 4 << 10
	mostTools = 16 << 10
)

// remember adds texts that the session is found by, each once.
func (s *Session) remember(most int, texts ...string) {
	for _, text := range texts {
		text = strings.ToLower(column(redact.Cut(text, 300)))
		if text == "" || len(s.words)+len(text) > most || strings.Contains(s.words, "\n"+text+"\n") {
			continue
		}
		if s.words == "" {
			s.words = "\n"
		}
		s.words += text + "\n"
	}
}

// store writes the session.
func (s *Session) store(ctx context.Context, tx *db.Tx) error {
	_, err := tx.Exec(ctx, `INSERT INTO audit_sessions (`+sessionColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
		ON CONFLICT (id) DO UPDATE SET title = excluded.title, server = excluded.server, began = excluded.began, latest = excluded.latest,
			steps = excluded.steps, calls = excluded.calls, failed = excluded.failed, denied = excluded.denied, asked = excluded.asked,
			worked = excluded.worked, waited = excluded.waited, given = excluded.given, used = excluded.used, words = excluded.words`,
		s.ID, s.grouped, s.Who, s.Name, s.Org, s.Agent, s.Title, s.Server, s.Began.UnixMicro(), s.Latest.UnixMicro(),
		s.Steps, s.Calls, s.Failed, s.Denied, s.Asked, s.Worked, s.Waited, s.Given, s.Used, s.words)
	return err
}

// eraseSessions deletes what was kept about the sessions of a person.
func (l *Log) eraseSessions(ctx context.Context, p personal.Person) error {
	return l.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM audit_sessions WHERE grouped LIKE $1 OR who LIKE $1`, "%"+p.ID+"%")
		return err
	})
}
