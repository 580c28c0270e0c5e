// Package approval is where people decide what scripts may do. A run that reaches
// an effect which needs somebody's word is kept here as a pending approval, with
// the plan of what it would do; what is decided is kept with it, and remembered
// for the next time where the one who decides wants that.
//
// It does not know what a script or a job is: those bring paused runs and go on
// with them.
package approval

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/scripting/host"
)

// State is where an approval stands.
type State string

// The states. All but the first are final.
const (
	Pending   State = "pending"
	Allowed   State = "allowed"
	Denied    State = "denied"
	Withdrawn State = "withdrawn" // nobody waits for it any more
)

// Approval is a question about a run, and its answer.
type Approval struct {
	ID string
	host.RunInfo
	Subject  string // what it is about: "git.push", "fs.write"
	Space    string // the namespace or module of that: "git", "fs"
	State    State
	Plan     []host.Planned
	Certain  bool
	Complete bool
	Output   []host.OutputLine
	Resume   []byte          // what the runner needs to go on
	Outcome  json.RawMessage // what became of the run after the answer; nil before, and for jobs
	Created  time.Time
	Expires  time.Time
	Decided  time.Time // zero while it is pending
	By       string    // who decided
}

// Job is the id of the job that waits, or "".
func (a *Approval) Job() string {
	id, ok := strings.CutPrefix(a.Key, "job:")
	if !ok {
		return ""
	}
	return id
}

// The scopes for which an answer can be remembered.
const (
	Tool      = "tool"      // the tool or function it is about
	Namespace = "namespace" // all tools of the namespace, or functions of the module
	Script    = "script"    // whatever the same script does
)

// Rule is a remembered answer.
type Rule struct {
	ID      string
	Scope   string
	Subject string // "git.push", "git", or the hash of a script
	Allow   bool
	Created time.Time
	By      string
}

// subjectOf is what an effect is about, and the namespace or module of that: for
// what has none itself.
func subjectOf(e host.Effect) (subject, space string) {
	subject = e.DisplayName()
	if ref, ok := e.Tool(); ok {
		return subject, cmp.Or(ref.Space, subject)
	}
	space, _, _ = strings.Cut(subject, ".")
	return subject, space
}

func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()[:16]) }
