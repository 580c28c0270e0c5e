package builtin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
)

// SessionStore keeps environments that persist between runs.
type SessionStore interface {
	Create(ctx context.Context, want script.SessionSpec) (script.Session, error)
	Eval(ctx context.Context, owner, id string, q script.Request) (script.Turn, error)
	List(ctx context.Context, owner string) ([]script.Session, error)
	Reset(ctx context.Context, owner, id string) (script.Session, error)
	Fork(ctx context.Context, owner, id, name string) (script.Session, error)
	Close(ctx context.Context, owner, id string) error
	Script(ctx context.Context, owner, id, name string) (script.ExtractedScript, error)
}

// Sessions makes the tools that begin, end and look at sessions. lua_eval, one of
// Scripts, runs code in them.
func Sessions(s SessionStore) []Tool {
	t := sessionTools{s}
	return []Tool{
		Define("session_create", tool.Hints{NonDestructive: true, ClosedWorld: true}, t.create),
		Define("session_list", tool.Hints{ReadOnly: true, ClosedWorld: true}, t.list),
		Define("session_reset", tool.Hints{Idempotent: true, ClosedWorld: true}, t.reset),
		Define("session_fork", tool.Hints{NonDestructive: true, ClosedWorld: true}, t.fork),
		Define("session_script", tool.Hints{ReadOnly: true, ClosedWorld: true}, t.script),
		Define("session_close", tool.Hints{ClosedWorld: true}, t.close),
	}
}

type sessionTools struct{ sessions SessionStore }

// ownerOf is the user a call's sessions belong to.
func ownerOf(call tool.Call) string {
	if call.Caller == nil {
		return ""
	}
	return call.Caller.User
}

// SessionView is a session as these tools show it.
type SessionView struct {
	SessionID string    `json:"session_id" jsonschema:"give it to lua_eval; keep it to yourself"`
	Name      string    `json:"name,omitempty"`
	Language  string    `json:"language"`
	Turns     int64     `json:"turns" jsonschema:"how often its state changed"`
	Bytes     int64     `json:"bytes" jsonschema:"size of its saved state"`
	CreatedAt time.Time `json:"created_at"`
	UsedAt    time.Time `json:"used_at"`
	ExpiresAt time.Time `json:"expires_at" jsonschema:"unless it is used before"`
}

func sessionView(s *script.Session) SessionView {
	return SessionView{s.ID, s.Name, s.Language, s.Turns, s.Size, s.Created, s.Used, s.Expires}
}

// Text gives the id and what is known of it.
func (v SessionView) Text() string {
	text := "Session " + v.SessionID
	if v.Name != "" {
		text += " (" + v.Name + ")"
	}
	return fmt.Sprintf("%s: %d turns, %d bytes, expires %s", text, v.Turns, v.Bytes, v.ExpiresAt.Format(time.RFC3339))
}

type sessionCreateIn struct {
	Name     string `json:"name,omitempty" jsonschema:"what you call it" max:"128"`
	Language string `json:"language,omitempty" jsonschema:"of its code; lua unless told" enum:"lua,javascript"`

	TimeoutMS int64 `json:"timeout_ms,omitempty" jsonschema:"how long a turn may take, when that is to be less than the server allows" min:"1" max:"3600000"`
	MemoryMB  int64 `json:"memory_mb,omitempty" jsonschema:"how much memory a turn may hold, likewise" min:"1" max:"65536"`
}

func (t sessionTools) create(ctx context.Context, call tool.Call, in sessionCreateIn) (SessionView, error) {
	s, err := t.sessions.Create(ctx, script.SessionSpec{
		Owner: ownerOf(call), Name: in.Name, Language: in.Language,
		Limits: script.Limits{Time: time.Duration(in.TimeoutMS) * time.Millisecond, Memory: in.MemoryMB << 20},
	})
	return sessionView(&s), err
}

// SessionList is what session_list answers.
type SessionList struct {
	Sessions []SessionView `json:"sessions" jsonschema:"the oldest first"`
}

// Text has a line for each.
func (l SessionList) Text() string {
	if len(l.Sessions) == 0 {
		return "No sessions. session_create makes one."
	}
	lines := make([]string, len(l.Sessions))
	for i, v := range l.Sessions {
		lines[i] = v.Text()
	}
	return strings.Join(lines, "\n")
}

func (t sessionTools) list(ctx context.Context, call tool.Call, _ struct{}) (SessionList, error) {
	all, err := t.sessions.List(ctx, ownerOf(call))
	list := SessionList{Sessions: []SessionView{}}
	for i := range all {
		list.Sessions = append(list.Sessions, sessionView(&all[i]))
	}
	return list, err
}

type sessionIn struct {
	SessionID string `json:"session_id" jsonschema:"id of a session, as session_create gave it" min:"1" max:"64"`
}

func (t sessionTools) reset(ctx context.Context, call tool.Call, in sessionIn) (SessionView, error) {
	s, err := t.sessions.Reset(ctx, ownerOf(call), in.SessionID)
	return sessionView(&s), err
}

type sessionForkIn struct {
	SessionID string `json:"session_id" jsonschema:"id of the session to copy" min:"1" max:"64"`
	Name      string `json:"name,omitempty" jsonschema:"what you call the copy; the same name unless told" max:"128"`
}

func (t sessionTools) fork(ctx context.Context, call tool.Call, in sessionForkIn) (SessionView, error) {
	s, err := t.sessions.Fork(ctx, ownerOf(call), in.SessionID, in.Name)
	return sessionView(&s), err
}

// SessionClosed is what session_close answers.
type SessionClosed struct {
	SessionID string `json:"session_id"`
	Closed    bool   `json:"closed"`
}

// Text says it in a line.
func (c SessionClosed) Text() string { return "Session " + c.SessionID + " closed" }

func (t sessionTools) close(ctx context.Context, call tool.Call, in sessionIn) (SessionClosed, error) {
	err := t.sessions.Close(ctx, ownerOf(call), in.SessionID)
	return SessionClosed{in.SessionID, err == nil}, err
}

type sessionScriptIn struct {
	SessionID string `json:"session_id" jsonschema:"id of a session, as session_create gave it" min:"1" max:"64"`
	Name      string `json:"name" jsonschema:"the function to write down; the script's name" min:"1" max:"48"`
}

// SessionScript is what session_script answers.
type SessionScript struct {
	Source   string   `json:"source" jsonschema:"the script; script_store keeps it"`
	Warnings []string `json:"warnings,omitempty" jsonschema:"what could not be written down"`
}

// Text is the script.
func (s SessionScript) Text() string {
	text := s.Source
	for _, warning := range s.Warnings {
		text += "-- warning: " + warning + "\n"
	}
	return text
}

func (t sessionTools) script(ctx context.Context, call tool.Call, in sessionScriptIn) (SessionScript, error) {
	w, err := t.sessions.Script(ctx, ownerOf(call), in.SessionID, in.Name)
	if err != nil {
		return SessionScript{}, scriptFault(err)
	}
	return SessionScript{w.Source, w.Warnings}, nil
}
