package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/plural"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db"
)

// SessionFilter selects sessions. Zero fields select all.
type SessionFilter struct {
	Since, Until time.Time // of the latest call
	Agent        string    // the program's name, or its beginning
	Who          string    // id or name
	Tool         string    // a called tool
	Server       string
	Outcome      string // ok, failed, denied or asked
	Find         string // words that all occur
	Before       string // the id of a session: those that ended before it
	Own          bool   // those with nothing but reads of our own page, too
	Limit        int    // 0 is 50
}

// Outcomes are what SessionFilter.Outcome can be.
func Outcomes() []string { return []string{"ok", "failed", "denied", "asked"} }

// Sessions lists the sessions that the principal of ctx sees, the latest first.
func (s *Store) Sessions(ctx context.Context, f SessionFilter) (list []Session, err error) {
	if f.Limit <= 0 {
		f.Limit = 50
	}
	var where conditions
	where.visibleTo(principal.Of(ctx))
	f.conditions(&where)
	query := fmt.Sprintf(`SELECT %s FROM audit_sessions%s ORDER BY latest DESC, id DESC LIMIT %d`, sessionColumns, where.String(), f.Limit)
	list, err = db.Find(ctx, s.db, scanSession, query, where.args...)
	for i := range list {
		list[i].settle()
	}
	return list, reading(err)
}

func (f *SessionFilter) conditions(where *conditions) {
	if !f.Own {
		where.add(`steps > 0`)
	}
	if f.Before != "" {
		where.add(`(latest, id) < (SELECT latest, id FROM audit_sessions WHERE id = ?)`, column(f.Before))
	}
	if !f.Since.IsZero() {
		where.add(`latest >= ?`, microsecondsUp(f.Since))
	}
	if !f.Until.IsZero() {
		where.add(`began < ?`, microsecondsUp(f.Until))
	}
	if f.Agent != "" {
		where.add(`lower(agent) LIKE ? ESCAPE '\'`, contained(f.Agent)[1:])
	}
	if f.Who != "" {
		where.add(`(who = ? OR name = ?)`, column(f.Who), column(f.Who))
	}
	if f.Tool != "" {
		where.add(`words LIKE ? ESCAPE '\'`, contained("\n"+f.Tool+"\n"))
	}
	if f.Server != "" {
		where.add(`words LIKE ? ESCAPE '\'`, contained("\n"+f.Server+"."))
	}
	f.outcomeCondition(where)
	f.wordConditions(where)
}

func (f *SessionFilter) outcomeCondition(where *conditions) {
	switch f.Outcome {
	case "ok":
		where.add(`failed = 0 AND denied = 0`)
	case "failed":
		where.add(`failed > denied`)
	case "denied":
		where.add(`denied > 0`)
	case "asked":
		where.add(`asked > 0`)
	}
}

// wordConditions has one for each word: it occurs in one of the texts of a session.
func (f *SessionFilter) wordConditions(where *conditions) {
	for _, word := range strings.Fields(f.Find) {
		where.add(`(words LIKE ? ESCAPE '\' OR lower(title) LIKE ? ESCAPE '\' OR lower(agent) LIKE ? ESCAPE '\' OR lower(name) LIKE ? ESCAPE '\')`,
			contained(word), contained(word), contained(word), contained(word))
	}
}

// contained is the pattern of LIKE for texts that contain another.
func contained(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(strings.ToLower(column(text))) + "%"
}

// settle gives a session without a title one.
func (s *Session) settle() {
	server, others := strings.CutSuffix(s.Server, "+")
	switch {
	case s.Title != "":
	case server == "" && s.Steps == 1:
		s.Title = s.firstTool()
	case server == "":
		s.Title = s.firstTool() + " and " + plural.Count(int(s.Steps)-1, "other request")
	case others:
		s.Title = plural.Count(int(s.Calls), "call") + " to " + server + " and others"
	default:
		s.Title = plural.Count(int(s.Calls), "call") + " to " + server
	}
}

// firstTool is what was called first, as the session is found by it.
func (s *Session) firstTool() string {
	first, _, _ := strings.Cut(strings.TrimPrefix(s.words, "\n"), "\n")
	return cmp.Or(first, "requests")
}

// Step is an entry of a session, as people read it.
type Step struct {
	ID       string    `json:"id"` // of the request
	Trace    string    `json:"trace,omitempty"`
	At       time.Time `json:"at"`
	Tool     string    `json:"tool"`
	Decision string    `json:"decision"`
	Rule     string    `json:"rule,omitempty"`
	Error    string    `json:"error,omitempty"`
	Size     int64     `json:"size"`
	Took     int64     `json:"took_us"`
	Own      bool      `json:"own,omitempty"`
	Detail
}

// stepsAtOnce bounds what one request for a session returns.
const stepsAtOnce = 500

// Steps returns a session that the principal of ctx sees, and its steps before a time in the
// order they began: the latest 500. The zero time stands for now.
func (s *Store) Steps(ctx context.Context, id string, before time.Time, own bool) (found Session, steps []Step, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		var where conditions
		where.visibleTo(principal.Of(ctx))
		where.add(`id = ?`, column(id))
		all, err := db.All(ctx, tx, scanSession, `SELECT `+sessionColumns+` FROM audit_sessions`+where.String(), where.args...)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return fault.New(fault.NotFound, "no session %q", id).WithHint("the setting activity.keep says how long sessions are there; luanette activity lists them")
		}
		found = all[0]
		where = conditions{}
		where.visibleTo(principal.Of(ctx))
		where.add(`session = ? AND session <> ''`, column(id))
		if !before.IsZero() {
			where.add(`at < ?`, microsecondsUp(before))
		}
		if !own {
			where.add(`own = 0`)
		}
		steps, err = db.All(ctx, tx, scanStep, fmt.Sprintf(`SELECT entry, own, detail FROM audit_log%s ORDER BY at DESC LIMIT %d`, where.String(), stepsAtOnce), where.args...)
		return err
	})
	if fault.CodeOf(err) == fault.NotFound {
		return found, nil, err
	}
	found.settle()
	slices.Reverse(steps)
	return found, withoutRelays(steps), reading(err)
}

func scanStep(row db.Scanner) (s Step, err error) {
	var entry, detail string
	var own int
	if err := row.Scan(&entry, &own, &detail); err != nil {
		return s, err
	}
	e, err := decode(entry)
	if err != nil {
		return Step{Tool: "?", Error: "changed"}, nil //nolint:nilerr // Verify reports it
	}
	s = Step{
		ID: e.Request, Trace: e.Trace, At: e.At, Tool: e.Subject, Decision: e.Decision, Rule: e.Rule, Error: e.Error, Size: e.Size, Took: e.Took, Own: own != 0,
	}
	if detail != "" {
		_ = json.Unmarshal([]byte(detail), &s.Detail) // without a preview the rest is still shown
	}
	return s, nil
}

// isRelay reports whether a step is a call of call_tool or its like.
func (s *Step) isRelay() bool { return tool.Ref{Name: s.Tool}.IsRelay() }

// withoutRelays leaves out calls of call_tool that reached a tool: the client called that.
func withoutRelays(steps []Step) []Step {
	relays := map[string]string{} // by id: what the relay is part of
	for i := range steps {
		if steps[i].isRelay() {
			relays[steps[i].ID] = steps[i].Parent
		}
	}
	reached := map[string]bool{}
	for i := range steps {
		if parent, relayed := relays[steps[i].Parent]; relayed {
			reached[steps[i].Parent] = true
			steps[i].Parent = parent
		}
	}
	return slices.DeleteFunc(steps, func(s Step) bool { return s.isRelay() && reached[s.ID] })
}

// Sessions is Store.Sessions, with the entries that were just recorded.
func (l *Log) Sessions(ctx context.Context, f SessionFilter) ([]Session, error) {
	l.flush(ctx)
	return l.Store.Sessions(ctx, f)
}

// Steps is Store.Steps, with the entries that were just recorded.
func (l *Log) Steps(ctx context.Context, id string, before time.Time, own bool) (Session, []Step, error) {
	l.flush(ctx)
	return l.Store.Steps(ctx, id, before, own)
}

// forgottenAtOnce bounds the sessions that one transaction deletes, or shortens.
const forgottenAtOnce = 100

// ForgetActivity removes what activity shows of calls before a time. The entries stay.
func (s *Store) ForgetActivity(ctx context.Context, before time.Time) error {
	_, err := s.repeat(ctx, func(tx *db.Tx) (int, bool, error) {
		ids, err := db.All(ctx, tx, db.Column[string],
			fmt.Sprintf(`SELECT id FROM audit_sessions WHERE began < $1 ORDER BY latest LIMIT %d`, forgottenAtOnce), before.UnixMicro())
		for _, id := range ids {
			if err == nil {
				err = forgetSession(ctx, tx, id, before)
			}
		}
		return len(ids), err == nil && len(ids) == forgottenAtOnce, err
	})
	return err
}

// forgetSession deletes a session that ended before a time, and the beginning of another.
func forgetSession(ctx context.Context, tx *db.Tx, id string, before time.Time) error {
	for _, statement := range []string{
		`UPDATE audit_log SET session = '', detail = '' WHERE session = $1 AND session <> '' AND at < $2`,
		`DELETE FROM audit_sessions WHERE id = $1 AND latest < $2`,
		`UPDATE audit_sessions SET began = $2 WHERE id = $1 AND began < $2`,
	} {
		if _, err := tx.Exec(ctx, statement, id, before.UnixMicro()); err != nil {
			return err
		}
	}
	return nil
}
