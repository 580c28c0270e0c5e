package scripttools

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/plural"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/scripting/script/session"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// Sessions makes the tools that manage sessions. lua_eval, one of Scripts, runs code
// in them.
func Sessions(s *session.Sessions) []toolset.Tool {
	t := sessionTools{s}
	return []toolset.Tool{
		toolset.Define(texts, "session_create", tool.Hints{NonDestructive: true, ClosedWorld: true}, t.create),
		toolset.Define(texts, "session_list", tool.Hints{ReadOnly: true, ClosedWorld: true}, t.list),
		toolset.Checked(toolset.Define(texts, "session_reset", tool.Hints{Idempotent: true, ClosedWorld: true}, t.reset), t.refusesChange),
		toolset.Checked(toolset.Define(texts, "session_fork", tool.Hints{NonDestructive: true, ClosedWorld: true}, t.fork), t.refusesFork),
		toolset.Define(texts, "session_script", tool.Hints{ReadOnly: true, ClosedWorld: true}, t.script),
		toolset.Checked(toolset.Define(texts, "session_close", tool.Hints{ClosedWorld: true}, t.close), t.refusesChange),
	}
}

type sessionTools struct{ sessions *session.Sessions }

// SessionView is a session as these tools show it.
type SessionView struct {
	SessionID string    `json:"session_id" jsonschema:"for lua_eval; keep it secret"`
	Name      string    `json:"name,omitempty"`
	Language  string    `json:"language"`
	Turns     int64     `json:"turns" jsonschema:"number of turns so far"`
	Bytes     int64     `json:"bytes" jsonschema:"size of its saved state"`
	CreatedAt time.Time `json:"created_at"`
	UsedAt    time.Time `json:"used_at"`
	ExpiresAt time.Time `json:"expires_at" jsonschema:"unless it is used before"`
	builtin.Shared
}

func sessionView(s *session.Session) SessionView {
	return SessionView{s.ID, s.Name, s.Language, s.Runs, s.Size, s.Created, s.Used, s.Expires, builtin.Shared{Owner: s.Sharer, Level: s.Shared}}
}

// Text returns one line.
func (v SessionView) Text() string {
	text := "Session " + v.SessionID
	if v.Name != "" {
		text += " (" + v.Name + ")"
	}
	if v.Owner != "" {
		text += " of " + v.Owner
	}
	return fmt.Sprintf("%s: %s, %s, expires %s", text, plural.Count(v.Turns, "turn"), plural.Count(v.Bytes, "byte"), v.ExpiresAt.Format(time.RFC3339))
}

type sessionCreateIn struct {
	Name     string `json:"name,omitempty" jsonschema:"a name of your choice" max:"128"`
	Language string `json:"language,omitempty" jsonschema:"of its code; default lua" enum:"lua,javascript"`

	TimeoutMS int64 `json:"timeout_ms,omitempty" jsonschema:"time limit of a turn, if lower than the server's" min:"1" max:"3600000"`
	MemoryMB  int64 `json:"memory_mb,omitempty" jsonschema:"memory limit of a turn, if lower than the server's" min:"1" max:"65536"`
}

func (t sessionTools) create(ctx context.Context, call tool.Call, in sessionCreateIn) (SessionView, error) {
	s, err := t.sessions.Create(ctx, session.Spec{
		Owner: call.Owner(), Name: in.Name, Language: in.Language,
		Limits: script.Limits{Time: time.Duration(in.TimeoutMS) * time.Millisecond, Memory: in.MemoryMB << 20},
	})
	return sessionView(&s), err
}

// SessionList is the result of session_list.
type SessionList struct {
	Sessions []SessionView `json:"sessions" jsonschema:"the oldest first"`
}

// Text returns one line per entry.
func (l SessionList) Text() string {
	if len(l.Sessions) == 0 {
		return "No sessions. session_create creates one."
	}
	lines := make([]string, len(l.Sessions))
	for i, v := range l.Sessions {
		lines[i] = v.Text()
	}
	return strings.Join(lines, "\n")
}

func (t sessionTools) list(ctx context.Context, call tool.Call, _ struct{}) (SessionList, error) {
	all, err := t.sessions.List(ctx, call.Owner())
	list := SessionList{Sessions: []SessionView{}}
	for i := range all {
		list.Sessions = append(list.Sessions, sessionView(&all[i]))
	}
	return list, err
}

type sessionIn struct {
	SessionID string `json:"session_id" jsonschema:"id or name of a session" min:"1" max:"64"`
}

func (t sessionTools) refusesChange(ctx context.Context, call tool.Call, in sessionIn) error {
	return t.sessions.Permits(ctx, call.Owner(), in.SessionID, principal.Edit)
}

func (t sessionTools) refusesFork(ctx context.Context, call tool.Call, in sessionForkIn) error {
	return t.sessions.Permits(ctx, call.Owner(), in.SessionID, principal.Use)
}

func (t sessionTools) reset(ctx context.Context, call tool.Call, in sessionIn) (SessionView, error) {
	s, err := t.sessions.Reset(ctx, call.Owner(), in.SessionID)
	return sessionView(&s), err
}

type sessionForkIn struct {
	SessionID string `json:"session_id" jsonschema:"id or name of the session to copy" min:"1" max:"64"`
	Name      string `json:"name,omitempty" jsonschema:"name of the copy; default: the same name" max:"128"`
}

func (t sessionTools) fork(ctx context.Context, call tool.Call, in sessionForkIn) (SessionView, error) {
	s, err := t.sessions.Fork(ctx, call.Owner(), in.SessionID, in.Name)
	return sessionView(&s), err
}

// SessionClosed is the result of session_close.
type SessionClosed struct {
	SessionID string `json:"session_id"`
	Closed    bool   `json:"closed"`
}

// Text returns it as one line.
func (c SessionClosed) Text() string { return "Session " + c.SessionID + " closed" }

func (t sessionTools) close(ctx context.Context, call tool.Call, in sessionIn) (SessionClosed, error) {
	err := t.sessions.Close(ctx, call.Owner(), in.SessionID)
	return SessionClosed{in.SessionID, err == nil}, err
}

type sessionScriptIn struct {
	SessionID string `json:"session_id" jsonschema:"id or name of a session" min:"1" max:"64"`
	Name      string `json:"name" jsonschema:"the function to extract; also the name of the script" min:"1" max:"48"`
}

// SessionScript is the result of session_script.
type SessionScript struct {
	Source   string   `json:"source" jsonschema:"the script, for script_store"`
	Warnings []string `json:"warnings,omitempty" jsonschema:"values that could not be extracted"`
}

// Text returns the script.
func (s SessionScript) Text() string {
	text := s.Source
	for _, warning := range s.Warnings {
		text += "-- warning: " + warning + "\n"
	}
	return text
}

func (t sessionTools) script(ctx context.Context, call tool.Call, in sessionScriptIn) (SessionScript, error) {
	w, err := t.sessions.Script(ctx, call.Owner(), in.SessionID, in.Name)
	if err != nil {
		return SessionScript{}, Fault(err)
	}
	return SessionScript{w.Source, w.Warnings}, nil
}
